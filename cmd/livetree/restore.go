package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/archive/places"
	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/cli"
)

func newRestoreCommand(a *app) *cobra.Command {
	var opts backup.RestoreOptions
	t, source := &telling{}, &archiveSource{}
	var asJSON bool
	var at string
	c := &cobra.Command{
		Use:   "restore BACKUP|URL DATA [flags]",
		Short: "make a data directory from a backup or an archive",
		Long: `livetree restore verifies a backup and copies it into a data directory, which must be
empty or not exist. A backup that is damaged is not restored: exit code 65.

Of an archive (livetree serve --archive), named by its URL, it restores the newest state,
or with --at that of a moment, exact to the commit. Hashes are compared on the way; what
does not fit is refused, and the last good moment is named. If it is interrupted, the same
command goes on where it was. An archive that is not encrypted holds no app secrets: new
ones are drawn. --skip-content, --data and --admin-url are for backups: livetree archive
verify tells a server of its archive.` + tellingLong,
		Example: `  livetree restore /mnt/backups/monday ./livetree-data
  livetree serve --data ./livetree-data
  livetree restore /mnt/backups/monday /tmp/drill --data /var/lib/livetree
  livetree restore file:///mnt/other/livetree ./livetree-data --at 2026-11-15T14:05:00Z
  livetree restore s3://bucket/prefix ./livetree-data --at 10m`,
		GroupID: groupCare,
		Args:    takes("BACKUP", "DATA"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := refuseOthers(c, args[0], opts.SkipContent, t); err != nil {
				return err
			}
			if places.IsURL(args[0]) {
				return a.restoreArchive(c, source, args[0], args[1], at, asJSON)
			}
			if opts.SkipContent && t.wanted(c.Flags()) {
				return errors.New("--skip-content proves too little for a server to be told of it: leave that out, or --data and --admin-url")
			}
			p := newProgress(a, asJSON)
			opts.Progress, opts.Logger = p.backup, newLogger(a.stderr, slog.LevelError, true)
			r, err := backup.Restore(c.Context(), args[0], args[1], opts)
			p.end()
			if err != nil {
				if r != nil && !r.OK && !asJSON { // one that was cut short says nothing
					say(a.stderr, r.String())
				}
				return err
			}
			data, err := filepath.Abs(args[1])
			if err != nil {
				data = args[1]
			}
			if asJSON {
				printJSON(a.stdout, restored{data, r})
			} else {
				say(a.stdout, fmt.Sprintf("restored group %d, %s, %d bytes into %s\nserve it: livetree serve --data %s\n",
					r.Group, counted(len(r.Databases), "database"), r.Bytes, data, cli.QuoteShell(data)))
			}
			return t.tell(c, args[0])
		},
	}
	t.declare(a, c.Flags())
	source.declare(c.Flags())
	c.Flags().StringVar(&at, "at", "", "of an archive, the `moment`: "+momentUsage+"; or DATABASE:POSITION for a commit of one database")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, errors too")
	c.Flags().BoolVar(&opts.SkipContent, "skip-content", false, "compare only the files of the backup with their hashes, which is faster")
	return c
}

// refuseOthers returns an error if a flag is given that counts for a backup alone, or for an archive alone, and the source is the other.
// Variables may be there for the server that is restored.
func refuseOthers(c *cobra.Command, source string, skipContent bool, t *telling) error {
	if places.IsURL(source) {
		switch {
		case skipContent && cli.IsTyped(c.Flags(), "skip-content"):
			return errors.New("--skip-content is for backups: what is read of an archive is always compared with its hashes")
		case t.wanted(c.Flags()):
			return errors.New("--data and --admin-url are for backups: livetree archive verify reads all of an archive, and tells its server")
		}
		return nil
	}
	if cli.IsTyped(c.Flags(), "at") {
		return errors.New("--at is for archives: a backup holds one moment")
	}
	for _, name := range []string{"archive-endpoint", "archive-region", "archive-credentials", "archive-identity"} {
		if cli.IsTyped(c.Flags(), name) {
			return fmt.Errorf("--%s is for archives, which are named by a URL: %s is taken for the directory of a backup", name, source)
		}
	}
	return nil
}

// restored is what --json shows of a backup that was restored.
type restored struct {
	Data string `json:"data"`
	*backup.Report
}

func newBackupVerifyCommand(a *app) *cobra.Command {
	var asJSON bool
	t := &telling{}
	c := &cobra.Command{
		Use:   "verify BACKUP [flags]",
		Short: "say whether a backup is whole",
		Long: `livetree backup verify reads a backup and compares all of it with its manifest: every
file, every block and row, every tree. It needs no server and changes nothing. Exit
code 65 if something is damaged.` + tellingLong,
		Example: "  livetree backup verify /mnt/backups/monday\n  livetree backup verify /mnt/backups/monday --data /var/lib/livetree",
		Args:    takes("BACKUP"),
		RunE: func(c *cobra.Command, args []string) error {
			err := a.report(c.Context(), asJSON, func(ctx context.Context, p func(backup.Progress)) (*backup.Report, error) {
				return backup.Verify(ctx, args[0], p)
			})
			if err != nil {
				return err
			}
			return t.tell(c, args[0])
		},
	}
	t.declare(a, c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return c
}

// report runs something that reports, and prints it. The error says no more than
// that something is damaged, for the exit code.
func (a *app) report(ctx context.Context, asJSON bool, look func(context.Context, func(backup.Progress)) (*backup.Report, error)) error {
	p := newProgress(a, false)
	r, err := look(ctx, p.backup)
	p.end()
	if err != nil {
		return err
	}
	if asJSON {
		text := json.NewEncoder(a.stdout)
		text.SetIndent("", "  ")
		if err := text.Encode(r); err != nil {
			return err
		}
	} else {
		say(a.stdout, r.String())
	}
	return r.Err()
}

// backup shows how far a backup is read.
func (p *progress) backup(at backup.Progress) {
	if at.Step == "files" {
		p.text(fmt.Sprintf("%s %s", at.Step, size(at.Done)))
		return
	}
	p.text(fmt.Sprintf("%s %d of %d: %s", at.Step, at.Done, at.Total, at.Name))
}
