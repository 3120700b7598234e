package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/login"
	"github.com/livetree/livetree/internal/logincli"
)

func newLoginCommand(a *app) *cobra.Command  { return logins(a).Login() }
func newLogoutCommand(a *app) *cobra.Command { return logins(a).Logout() }

func logins(a *app) logincli.Surroundings {
	return logincli.Surroundings{
		Secret: func(ctx context.Context, question string) (string, error) {
			return cli.ReadSecret(ctx, a.stdin, a.stderr, a.isTerminal, question)
		},
		Takes: takes, Out: func() io.Writer { return a.stdout }, File: login.File(), GroupID: groupData,
	}
}
