package main

import (
	"net/http"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/backup"
)

func newBackupCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "backup DIR [flags]",
		Short: "make a backup of a server that is running",
		Long: `livetree backup has a server make a backup of all its databases, with their rules,
indexes and secrets, in a directory of its machine, which must be empty or not exist.
The server goes on serving. All that was acknowledged before is in the backup. The
directory holds secrets: keep it as private as the data directory.

The key of the certificate authority that the server made for itself is not in the
backup, as it could sign for whatever clients trust that authority with. Without it a
restored server serves its certificate until that ends, within 13 months; then, or when
it gets another name, livetree dev-cert --renew makes another authority. With
--authority-key the key is in the backup.` + operatorLong,
		Example: "  livetree backup /backups/monday\n  livetree backup --data /var/lib/livetree /backups/monday",
		GroupID: groupCare,
		Args:    takes("DIR"),
	}
	o := operatorFlags(a, c.Flags())
	withKey := c.Flags().Bool("authority-key", false, "also the key of the server's own certificate authority")
	c.RunE = func(c *cobra.Command, args []string) error {
		target := args[0]
		if o.URL == "" {
			// The server may run in another directory.
			absolute, err := filepath.Abs(target)
			if err != nil {
				return err
			}
			target = absolute
		}
		var made backup.Manifest
		if err := o.do(c.Context(), http.MethodPost, "/v1/backup", admin.BackupRequest{Target: target, AuthorityKey: *withKey}, &made); err != nil {
			return err
		}
		o.print("made a backup of %s, %s, in %s\n", counted(len(made.Databases), "database"), counted(len(made.Files), "file"), target)
		return nil
	}
	c.AddCommand(newBackupVerifyCommand(a))
	return c
}
