package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/client"
)

func newMigrateCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate [PATH] --from URL [flags]",
		Short: "copy a database from another service, and follow it until users have moved",
		Long: `livetree migrate copies what is at a path, all by default, from one server to another:
the original service, or a Livetree. Then it follows the changes of the source, shows
how far the copy is behind, and says when both sides were compared and are equal:
then it is safe to cut over. It goes on following until it is interrupted, or with
--once ends there.

To cut over, stop the writers of the source, wait until both sides are equal, stop
livetree migrate, and point the writers to the target: as long as it runs, it makes the
target what the source is. Rules and secrets are not copied: see livetree rules get and
set.

LIVETREE_FROM_AUTH is the secret of the source, LIVETREE_AUTH that of the target.` + remoteLong,
		Example: `  livetree migrate --from https://example.firebaseio.com
  livetree migrate /users --from https://old.example.com --url https://new.example.com --once`,
		GroupID: groupData,
		Args:    takes("[PATH]"),
	}
	to := remoteFlags(c.Flags())
	to.jsonFlag(c.Flags())
	from := remote{Options: client.Options{Source: true}}
	c.Flags().StringVar(&from.URL, "from", "", "the `URL` of the server to copy from")
	c.Flags().StringVar(&from.Database, "from-db", "", "the `name` of the database to copy from")
	c.Flags().StringVar(&from.Auth, "from-auth", "", "its `secret`; better in LIVETREE_FROM_AUTH")
	c.Flags().StringVar(&from.CA, "from-ca", "", "a PEM `file` with a certificate to trust there")
	replace := c.Flags().Bool("replace", false, "delete what is at the target first")
	once := c.Flags().Bool("once", false, "end when the copy was verified")
	yes := c.Flags().Bool("yes", false, "do not ask before deleting")
	quiet := c.Flags().Duration("quiet", client.DefaultQuiet, "the `time` that the source must rest before both sides are compared")
	c.RunE = to.runs(a, func(c *cobra.Command, args []string) error {
		m := client.Migration{Path: "/", Replace: *replace, Once: *once, Quiet: *quiet}
		if len(args) > 0 {
			m.Path = args[0]
		}
		if from.URL == "" {
			return fmt.Errorf("--from must say where to copy from, such as https://example.firebaseio.com")
		}
		var err error
		from.Attempts, to.Attempts = importAttempts, importAttempts
		if m.From, err = from.connect(); err != nil {
			return ofSource(err)
		}
		defer m.From.Close()
		if m.To, err = to.connect(); err != nil {
			return err
		}
		defer m.To.Close()
		p := newProgress(a, to.json)
		defer p.end()
		m.Confirm = func() error {
			return a.confirm(*yes, fmt.Sprintf("Delete %s of %s first?", tidy(m.Path), m.To))
		}
		m.Lag = func(l client.Lag) { p.text(lagLine(l)) }
		m.Tell = func(e client.MigrationEvent) {
			p.end()
			if to.json {
				printJSON(a.stdout, e)
				return
			}
			say(a.stdout, e.Text+"\n")
		}
		return m.Run(c.Context())
	})
	return c
}

// lagLine shows how far a copy is behind.
func lagLine(l client.Lag) string {
	return fmt.Sprintf("lag: %d paths, %s behind; %d changes, %s copied", l.Stale, l.Age.Round(time.Second), l.Events, size(l.Bytes))
}

// ofSource says of an error that it is one of the source. What is wrong with a flag names that itself.
func ofSource(err error) error {
	if _, ok := errors.AsType[*client.UsageError](err); ok {
		return err
	}
	return fmt.Errorf("--from: %w", err)
}
