package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/demo"
	"github.com/livetree/livetree/internal/server"
)

func newDemoCommand(a *app) *cobra.Command {
	return demo.Surroundings{
		Takes: takes, GroupID: groupServer, Out: func() io.Writer { return a.stdout },
		Logger: func() *slog.Logger { return newLogger(a.stderr, slog.LevelWarn, true) },
		Run: func(ctx context.Context, c server.Config) error {
			c.Version, c.Abort, c.Terminal = buildVersion(), a.abort, a.isTerminal(a.stdout)
			return server.Run(ctx, c)
		},
	}.Command()
}
