package main

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
)

func newGetCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "get PATH [flags]",
		Short: "print what is at a path",
		Long: `livetree get prints the JSON at a path, / for everything: indented on a terminal,
compact elsewhere.

Filters need --order-by, and an index in the rules for orders by a child or by
value.` + remoteLong,
		Example: `  livetree get /rooms/blue
  livetree get /rooms/blue --url https://db.example.com --db shop
  livetree get / --shallow
  livetree get /users --order-by age --start-at 18 --limit-to-first 10`,
		GroupID: groupData,
		Args:    takes("PATH"),
	}
	r := remoteFlags(c.Flags())
	r.jsonFlag(c.Flags())
	filters := cli.NewFilters(c.Flags())
	shallow := c.Flags().Bool("shallow", false, "only the keys of the children, each with the value true")
	export := c.Flags().Bool("export", false, "with priorities, as livetree export writes it")
	pretty := c.Flags().Bool("pretty", a.isTerminal(a.stdout), "indent the JSON")
	moment := c.Flags().String("at", "", "as it was at a `moment`: "+momentUsage+"; for the app secret or a service account, of a server with an archive")
	explain := c.Flags().Bool("explain", false, "not the data, but how the server reads it; Livetree only")
	c.RunE = r.runs(a, func(c *cobra.Command, args []string) error {
		query := filters.Query()
		if *export {
			query.Set("format", "export")
		}
		if *moment != "" {
			at, err := cli.ParseMoment(*moment, time.Now())
			if err != nil {
				return fmt.Errorf("--at: %w", err)
			}
			query.Set("at", strconv.FormatInt(at.UnixMilli(), 10))
		}
		if *explain {
			query.Set("explain", "true")
		}
		if *shallow {
			query.Set("shallow", "true")
		} else if *pretty && !r.json { // which shallow cannot stand beside
			query.Set("print", "pretty")
		}
		at, server, err := r.connectTo(args[0])
		if err != nil {
			return err
		}
		defer server.Close()
		out := &lineWriter{Writer: a.stdout}
		_, err = server.Copy(c.Context(), out, client.Request{Method: http.MethodGet, Path: at, Query: query, Repeatable: true})
		if out.last != 0 {
			out.end()
		}
		return err
	})
	return c
}
