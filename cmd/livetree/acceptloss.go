package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/backup"
)

func newAcceptLossCommand(a *app) *cobra.Command {
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "accept-loss DATA TARGET [flags]",
		Short: "rescue what a damaged data directory still holds",
		Long: `livetree accept-loss makes a new data directory of what can still be read of a damaged
one. It is the last resort: restore a backup if there is one that is good enough.

Alone it only says what is lost: the damaged files, and for each database the parts of
its tree that are in them. With --yes-lose-data it writes all the rest to TARGET, which
must be empty or not exist: every tree, with rules and secrets, and indexes that
the server builds when it first opens a database. What is lost is not there any more,
and nothing is put in its place. Streams start again.

DATA is not changed, and its server must be stopped. Keep it: what is lost now may be
found later by other means. TARGET needs as much space as the data. A damaged
write-ahead log or manifest cannot be helped this way: exit code 65.`,
		Example: `  livetree accept-loss ./livetree-data ./rescued
  livetree accept-loss ./livetree-data ./rescued --yes-lose-data
  livetree serve --data ./rescued`,
		GroupID: groupCare,
		Args:    takes("DATA", "TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := backup.AcceptLoss(c.Context(), args[0], args[1], yes, newLogger(a.stderr, slog.LevelError, true))
			if err != nil {
				return err
			}
			if asJSON {
				text := json.NewEncoder(a.stdout)
				text.SetIndent("", "  ")
				if err := text.Encode(l); err != nil {
					return err
				}
			} else {
				say(a.stdout, l.String())
			}
			if !l.Accepted {
				return errors.New("nothing was written: if you accept this loss, say so with --yes-lose-data")
			}
			if !asJSON {
				say(a.stdout, fmt.Sprintf("wrote the rest, %d rows of %d databases, into %s\nserve it: livetree serve --data %s\n",
					l.Rows, l.Databases, l.Target, l.Target))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&yes, "yes-lose-data", false, "accept that all that is listed as lost is lost for good, and write the rest to TARGET")
	c.Flags().BoolVar(&asJSON, "json", false, "print what is lost as JSON")
	return c
}
