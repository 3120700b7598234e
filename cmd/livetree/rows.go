package main

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/rows"
)

func newListCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "ls PATH [flags]",
		Short: "list the children of a node, however many there are",
		Long: `livetree ls lists the children of a node by their keys, page by page: each with its
value if that is short, else with how many children it has, or how long it is. Unlike
get it never reads a whole node. It needs the app secret, or the token of a service
account.` + remoteLong,
		Example: `  livetree ls /
  livetree ls /users --limit 20
  livetree ls /users --start-at an --limit 20`,
		GroupID: groupData,
		Args:    takes("PATH"),
	}
	r := remoteFlags(c.Flags())
	r.jsonFlag(c.Flags())
	from := c.Flags().String("start-at", "", "begin at this `key`, or at the next one if it is not there")
	limit := c.Flags().Int("limit", 0, "at most this `number` of children; 0 for all")
	c.RunE = r.runs(a, func(c *cobra.Command, args []string) error {
		at, server, err := r.connectTo(args[0])
		if err != nil {
			return err
		}
		defer server.Close()
		return server.List(c.Context(), at, *from, *limit, func(page rows.Page) { showPage(a, page, r.json) })
	})
	return c
}

// showPage prints the rows of a page, one on a line.
func showPage(a *app, page rows.Page, asJSON bool) {
	if page.Type != "object" && page.Type != "none" {
		page.Rows = []rows.Row{{Shown: page.Shown}}
	}
	for _, row := range page.Rows {
		if asJSON {
			printJSON(a.stdout, row)
			continue
		}
		if page.Type == "object" {
			say(a.stdout, row.Key+"\t")
		}
		say(a.stdout, row.Text()+"\n")
	}
}

// databaseFlag declares the flag for the database that an operator works with.
func databaseFlag(c *cobra.Command) *string {
	return c.Flags().String("db", "default", "the `name` of the database")
}

func newFindCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "find TEXT [flags]",
		Short: "search keys and values below a path",
		Long: `livetree find searches the keys and the values below a path for a text, whose letter
case does not count, and prints where it is. It ends after 1,000 hits or 30 seconds, and
says so.` + operatorLong,
		Example: "  livetree find ann\n  livetree find ann@example.com --under /users --in values",
		GroupID: groupCare,
		Args:    takes("TEXT"),
	}
	o, db := operatorFlags(a, c.Flags()), databaseFlag(c)
	request := rows.FindRequest{Limit: 1000}
	c.Flags().StringVar(&request.Under, "under", "/", "search below this `path`")
	c.Flags().StringSliceVar(&request.In, "in", []string{"keys", "values"}, "where to search: keys, values, or both")
	c.Flags().Var((*cli.Count)(&request.Limit), "limit", "at most this `number` of hits")
	c.RunE = func(c *cobra.Command, args []string) error {
		request.Text = args[0]
		return o.Follow(c.Context(), http.MethodPost, databasePath(*db)+"/find", request, o.showFound)
	}
	return c
}

// showFound prints an event of a search, and reports whether it is the last.
func (o *operator) showFound(event string, data []byte) (last bool, err error) {
	switch event {
	case "hit":
		var hit rows.HitEvent
		if err := json.Unmarshal(data, &hit); err != nil {
			return false, err
		}
		if o.json {
			printJSON(o.app.stdout, hit)
		} else if say(o.app.stdout, hit.Path); hit.Value != "" {
			say(o.app.stdout, "\t"+hit.Value)
		}
		o.print("\n")
	case "end":
		var end rows.EndEvent
		if err := json.Unmarshal(data, &end); err != nil {
			return false, err
		}
		if !end.Complete {
			say(o.app.stderr, "there may be more: the search has ended early\n")
		}
		return true, nil
	}
	return false, nil
}

func newCopyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "copy FROM TO [flags]",
		Short: "copy or move a node, on the server",
		Long: `livetree copy copies a node with all below it, and all priorities, to a path that has no
data, in one write. With --move the node is gone from where it was, in the same write.
Rules are not asked.` + operatorLong,
		Example: "  livetree copy /users/ann /users/anna\n  livetree copy /old /new --move --db shop",
		GroupID: groupCare,
		Args:    takes("FROM", "TO"),
	}
	o, db := operatorFlags(a, c.Flags()), databaseFlag(c)
	move := c.Flags().Bool("move", false, "remove the node from where it was")
	c.RunE = func(c *cobra.Command, args []string) error {
		request := rows.CopyRequest{From: args[0], To: args[1], Move: *move}
		if err := o.do(c.Context(), http.MethodPost, databasePath(*db)+"/copy", request, nil); err != nil {
			return err
		}
		done := "copied"
		if *move {
			done = "moved"
		}
		o.print("%s %s to %s\n", done, args[0], args[1])
		return nil
	}
	return c
}
