package main

import (
	"net/http"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/backup"
)

func newBackupCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "backup DIR [flags]",
		Short: "make a backup of a server that is running",
		Long: `livetree backup has a server make a backup of all its databases, with their rules,
indexes and secrets, in a directory of its machine, which must be empty or not exist.
The server goes on serving. All that was acknowledged before is in the backup. The
directory holds secrets: keep it as private as the data directory.` + operatorLong,
		Example: "  livetree backup /backups/monday\n  livetree backup --data /var/lib/livetree /backups/monday",
		GroupID: groupCare,
		Args:    takes("DIR"),
	}
	o := operatorFlags(a, c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		target := args[0]
		if o.adminURL == "" {
			// The server may run in another directory.
			absolute, err := filepath.Abs(target)
			if err != nil {
				return err
			}
			target = absolute
		}
		var made backup.Manifest
		if err := o.do(c.Context(), http.MethodPost, "/v1/backup", map[string]string{"target": target}, &made); err != nil {
			return err
		}
		o.print("made a backup of %s, %s, in %s\n", counted(len(made.Databases), "database"), counted(len(made.Files), "file"), target)
		return nil
	}
	c.AddCommand(newBackupVerifyCommand(a))
	return c
}
