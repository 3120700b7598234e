package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/topview"
)

func newProfileCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "profile [flags]",
		Short: "record operations and tell the slow and the busy",
		Long: `livetree profile has a server record its requests for a while, and prints the slowest of
them, the busiest paths, queries that have no index, and requests that were denied.
Locations that differ only in a generated key are counted as one, with $key in its
place. The server keeps nothing of it afterwards.` + operatorLong,
		Example: "  livetree profile\n  livetree profile --for 5m --lines 50",
		GroupID: groupCare,
		Args:    takes(),
	}
	o := operatorFlags(a, c.Flags())
	long, lines := cli.Duration(30*time.Second), cli.Count(20)
	c.Flags().Var(&long, "for", "the `time` to record, at most 10m")
	c.Flags().Var(&lines, "lines", "the `number` of lines in each list, at most 100")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if time.Duration(long) > admin.MaxRecordingTime {
			return fmt.Errorf("--for must be a time of at most %s, such as 30s", admin.MaxRecordingTime)
		}
		if !o.json {
			say(a.stderr, fmt.Sprintf("recording for %s …\n", long.String()))
		}
		return profile(c.Context(), o, time.Duration(long), int(lines))
	}
	return c
}

func profile(ctx context.Context, o *operator, long time.Duration, lines int) error {
	query := url.Values{"for": {long.String()}, "lines": {fmt.Sprint(lines)}}
	var r admin.Report
	if err := o.do(ctx, http.MethodGet, "/v1/operations?"+query.Encode(), nil, &r); err != nil || o.json {
		return err
	}
	total := fmt.Sprintf("%d requests in %.1f s, %d failed; received %s, sent %s; %s", r.Requests, r.Seconds, r.Failed,
		cli.Size(uint64(r.BytesIn)), cli.Size(uint64(r.BytesOut)), topview.Statuses(r.Statuses))
	o.print("%s\n", strings.TrimSuffix(total, "; "))
	o.print("latency p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, max %.1f ms\n\nslowest requests\n",
		r.Latency["p50"], r.Latency["p90"], r.Latency["p99"], r.Latency["max"])
	if len(r.Slowest) == 0 {
		o.print("  none\n")
	}
	for _, s := range r.Slowest {
		o.print("%10.1f ms  %d  %-6s %s %s\n", s.Millis, s.Status, cli.Visible(s.Verb), cli.Visible(s.Database), cli.Visible(s.Path))
	}
	for _, part := range []struct {
		heading string
		list    []admin.PathReport
		timed   bool
	}{
		{"busiest paths", r.Busiest, true},
		{"queries without an index", r.Unindexed, false},
		{"denied requests", r.Denied, false},
	} {
		o.print("\n")
		for _, line := range topview.Paths(part.heading, part.list, part.timed) {
			o.print("%s\n", line)
		}
	}
	return nil
}
