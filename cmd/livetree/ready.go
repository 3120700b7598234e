package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/admin"
)

// readyTimeout is how long a server may take to say whether it is ready.
const readyTimeout = 4 * time.Second

func newReadyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "ready [flags]",
		Short: "tell whether a server is ready",
		Long: `livetree ready asks a server whether it is ready for requests. If it is, the exit code
is 0. If it is not, or does not answer, the exit code is 1, and the checks that fail
are printed with their state. It is made for health checks of containers, for
supervisors and for scripts that wait.

It asks the admin listener of the server that runs on --data, and needs no credential.
For another machine there is --admin-url.`,
		Example: "  livetree ready --data /var/lib/livetree\n  until livetree ready; do sleep 1; done",
		GroupID: groupCare,
		Args:    takes(),
	}
	o := operatorFlags(a, c.Flags())
	timeout := c.Flags().Duration("timeout", readyTimeout, "the `time` that the answer may take")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(c.Context(), *timeout)
		defer cancel()
		r, err := o.Readiness(ctx)
		if err != nil {
			return err
		}
		return o.showReadiness(r)
	}
	return c
}

// showReadiness prints the checks that fail, and with --json all of them. Not being
// ready is an error.
func (o *operator) showReadiness(r admin.Readiness) error {
	if o.json {
		printJSON(o.app.stdout, r)
	}
	if r.Ready {
		o.print("ready\n")
		return nil
	}
	for _, check := range r.Checks {
		if check.Result == "fail" {
			o.print("not ready: %s is %s\n", check.Name, check.State)
		}
	}
	return errSaid
}
