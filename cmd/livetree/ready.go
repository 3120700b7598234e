package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
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
		r, err := o.readiness(ctx)
		if err != nil {
			return err
		}
		return o.showReadiness(r)
	}
	return c
}

// readiness asks for that of the server.
func (o *operator) readiness(ctx context.Context) (admin.Readiness, error) {
	var r admin.Readiness
	base, err := o.base()
	if err != nil {
		return r, err
	}
	transport, err := o.transport()
	if err != nil {
		return r, err
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base.String(), "/")+"/readyz", nil)
	if err != nil {
		return r, err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return r, unanswered(ctx, base, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	if err != nil {
		return r, unanswered(ctx, base, err)
	}
	// Not being ready is an answer like another, but for its status.
	if json.Unmarshal(text, &r) != nil || len(r.Checks) == 0 {
		return r, refusal(answer.StatusCode, text)
	}
	return r, nil
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
