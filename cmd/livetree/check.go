package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/backup"
)

func newCheckCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check DATA [flags]",
		Short: "look for damage in a data directory",
		Long: `livetree check looks through the data directory of a server that is stopped: every file
and row, the indexes against the data, the change log. It says what is damaged and
what to do, and changes nothing. Exit code 65 if something is damaged.

A server that has met damage refuses writes, also after a restart. If check finds none,
it removes the note of it, DATA/damage, and the server accepts writes again.`,
		Example: "  livetree check ./livetree-data",
		GroupID: groupCare,
		Args:    takes("DATA"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.report(c.Context(), asJSON, func(ctx context.Context, p func(backup.Progress)) (*backup.Report, error) {
				return backup.Check(ctx, args[0], p)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return c
}
