package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/revert"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/rows/rowshttp"
)

// momentUsage is how moments are given.
const momentUsage = "a time such as 2026-11-15T14:05:00Z, the last 14:05 of this machine's clock, or 10m for ten minutes ago"

func newRevertCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "revert PATH --at MOMENT [flags]",
		Short: "bring back what was deleted, on the server that runs",
		Long: `livetree revert takes a part of a database back to a moment: it shows what would change,
asks, and writes it in one step, so that streams, indexes and the archive see it as any
other write. Rules are not asked.

What was deleted since comes back. A key that has other data by now, or that is new, is
listed and left alone, because somebody has written it since; with --overwrite the part
becomes exactly what it was.

The server must have an archive (livetree serve --archive).` + operatorLong,
		Example: "  livetree revert /users --at 14:05\n  livetree revert /users/ada --at 2026-11-15T14:05:00Z --overwrite --yes --db shop",
		GroupID: groupCare,
		Args:    takes("PATH"),
	}
	o, db := operatorFlags(a, c.Flags()), databaseFlag(c)
	at := c.Flags().String("at", "", "the `moment`: "+momentUsage)
	yes := c.Flags().Bool("yes", false, "do not ask")
	request := rowshttp.RevertRequest{}
	c.Flags().BoolVar(&request.Overwrite, "overwrite", false, "make it exactly as it was: replace what has changed, delete what is new")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if request.At, err = cli.ParseMoment(*at, time.Now()); err != nil {
			return fmt.Errorf("--at: %w", err)
		}
		request.Path = args[0]
		if !*yes {
			request.Preview = true
			if goOn, err := o.preview(c, *db, request); err != nil || !goOn {
				return err
			}
			request.Preview = false
		}
		var result revert.Result
		if err := o.do(c.Context(), http.MethodPost, databasePath(*db)+"/revert", request, &result); err != nil {
			return err
		}
		if !result.Changes() {
			o.print("nothing is to be brought back: %s\n", result)
			return nil
		}
		o.print("done, in one commit at position %d: %s\n", result.Position, result)
		return nil
	}
	return c
}

// preview shows what a revert would change, and asks whether it is to be done.
func (o *operator) preview(c *cobra.Command, db string, request rowshttp.RevertRequest) (goOn bool, err error) {
	var result revert.Result
	if err := o.do(c.Context(), http.MethodPost, databasePath(db)+"/revert", request, &result); err != nil {
		return false, err
	}
	if o.json {
		return false, nil // whoever reads that decides, and says --yes
	}
	o.print("%s of %s at %s:\n", cli.Visible(request.Path), cli.Visible(db), request.At.UTC().Format(time.RFC3339Nano))
	for _, p := range result.Places {
		o.print("  %-9s %s\n", p.Done, cli.Visible(p.Path))
	}
	o.print("%s\n", cli.Visible(result.String()))
	if !result.Changes() {
		o.print("nothing is to be brought back\n")
		return false, nil
	}
	if err := o.app.ask("write this?"); err != nil {
		return false, err
	}
	return true, nil
}

func newHistoryCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "history PATH [flags]",
		Short: "list who has changed a node, when, and how",
		Long: `livetree history lists the commits that touched a node: the time, who wrote, and the node
before and after. They come from the change log of the server, and older ones from its
archive if it has one. Where the node was not written as a whole since they begin, what it
was before is not known. With --follow it goes on with commits as they happen.` + operatorLong,
		Example: "  livetree history /users/ada --since 1h\n  livetree history / --follow --db shop",
		GroupID: groupCare,
		Args:    takes("PATH"),
	}
	o, db := operatorFlags(a, c.Flags()), databaseFlag(c)
	since := c.Flags().String("since", "", "only what happened since this `moment`: "+momentUsage)
	follow := c.Flags().Bool("follow", false, "go on with commits as they happen")
	c.RunE = func(c *cobra.Command, args []string) error {
		query := url.Values{"path": {args[0]}}
		if *since != "" {
			at, err := cli.ParseMoment(*since, time.Now())
			if err != nil {
				return fmt.Errorf("--since: %w", err)
			}
			query.Set("since", strconv.FormatInt(at.UnixMilli(), 10))
		}
		to, err := o.showHistory(c, *db, query)
		if err != nil || !*follow {
			return err
		}
		changes := databasePath(*db) + "/changes?" + url.Values{"under": {args[0]}, "since": {to}}.Encode()
		return o.Follow(c.Context(), http.MethodGet, changes, nil, o.showChange)
	}
	return c
}

// showHistory prints all pages of a history, and returns where it ends.
func (o *operator) showHistory(c *cobra.Command, db string, query url.Values) (to string, err error) {
	for first := true; ; first = false {
		var page rows.History
		if err := o.do(c.Context(), http.MethodGet, databasePath(db)+"/history?"+query.Encode(), nil, &page); err != nil {
			return "", err
		}
		if text := page.Missing(); text != "" && first {
			o.print("%s\n", cli.Visible(text))
		}
		for _, e := range page.Entries {
			o.print("%s  %-20s  %s  %s -> %s\n", time.UnixMilli(e.Time).UTC().Format(time.RFC3339Nano), cli.Visible(e.Who.String()), cli.Visible(e.Path), cli.Visible(e.Before.String()), cli.Visible(e.After.String()))
		}
		if !page.More {
			return page.To, nil
		}
		query.Set("behind", page.To)
	}
}

// showChange prints a commit of a stream.
func (o *operator) showChange(event string, data []byte) (last bool, err error) {
	if event != "change" {
		return false, nil
	}
	if o.json {
		say(o.app.stdout, string(data)+"\n")
		return false, nil
	}
	var change rows.ChangeEvent
	if err := json.Unmarshal(data, &change); err != nil {
		return false, err
	}
	for _, set := range change.Set {
		o.print("%s  %-20s  %s  -> %s\n", time.UnixMilli(change.Time).UTC().Format(time.RFC3339Nano), cli.Visible(change.Who.String()), cli.Visible(set.Path), cli.Visible(set.Value))
	}
	return false, nil
}
