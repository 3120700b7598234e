// Package topview writes what a server does in a while as lines for people: those of livetree top and of
// livetree profile.
//
// A Frame is what top shows of a second. It asks nobody: the command hands it what the admin listener
// has answered. Text that comes from clients is made visible before it is printed.
package topview

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/cli"
)

// A Frame is what top shows of a second.
type Frame struct {
	Status     admin.Status `json:"status"`
	Operations admin.Report `json:"operations"`
	// Before is the status at the beginning of that second, by which is counted what was done in it.
	Before admin.Status `json:"-"`
}

// Lines writes a frame. Now is the time of the reader's machine.
func (f *Frame) Lines(now time.Time) []string {
	s, r := f.Status, f.Operations
	ready := "ready"
	if !s.Ready {
		ready = "NOT READY"
	}
	for _, c := range s.Checks {
		if c.Result != "pass" {
			ready += fmt.Sprintf("  %s: %s", c.Name, c.State)
		}
	}
	lines := []string{
		fmt.Sprintf("livetree %s  %s", cli.Visible(s.Version), cli.Visible(ready)),
		fmt.Sprintf("requests  %.0f/s  failed %d  in %s/s  out %s/s  %s", f.perSecond(float64(r.Requests)), r.Failed,
			cli.Size(uint64(f.perSecond(float64(r.BytesIn)))), cli.Size(uint64(f.perSecond(float64(r.BytesOut)))), Statuses(r.Statuses)),
		fmt.Sprintf("latency   p50 %.1f ms  p90 %.1f ms  p99 %.1f ms  max %.1f ms", r.Latency["p50"], r.Latency["p90"], r.Latency["p99"], r.Latency["max"]),
		fmt.Sprintf("streams   %d open  views %d", s.Streams, s.Views),
		fmt.Sprintf("clients   %d of SDKs%s", s.Clients, f.clients()),
		fmt.Sprintf("disk      %s  free %s  store %s  log %s  sync %.1f ms", s.Disk, cli.Size(s.FreeBytes), cli.Size(s.UsedBytes), cli.Size(s.WALBytes), s.SyncMillis),
		archiveLine(s.Archive, now),
	}
	lines = append(lines, f.triggers()...)
	lines = append(lines, fmt.Sprintf("process   %s resident  %d goroutines", cli.Size(s.RSSBytes), s.Goroutines), "")
	return append(lines, Paths("busiest paths", r.Busiest, true)...)
}

func (f *Frame) perSecond(n float64) float64 { return n / max(f.Operations.Seconds, 0.001) }

// archiveLine writes how the archive does.
func archiveLine(s *archiver.Status, now time.Time) string {
	if s == nil {
		return "archive   none"
	}
	line := fmt.Sprintf("archive   %s  %s behind  %s wait  %d records  %d failures", cli.Visible(s.State),
		s.Lag(now).Round(time.Millisecond*100), cli.Size(uint64(max(0, s.WaitingBytes))), s.Records, s.Failures)
	if s.Writer != "" {
		line += "  written by " + cli.Visible(s.Writer)
	}
	return line
}

// triggers writes what the server does by itself, where there is something to say.
func (f *Frame) triggers() (lines []string) {
	now := f.Status.Triggers
	if now == nil { // an older server, or one database's
		return nil
	}
	before := f.Before.Triggers
	if before == nil {
		before = now
	}
	rate := func(now, before uint64) float64 { return f.perSecond(float64(now - min(now, before))) }
	if h := now.Hooks; h.Hooks > 0 {
		lines = append(lines, fmt.Sprintf("hooks     %d%s  %.0f/s delivered  %d wait  lag %.1f s  %d given up  %d skipped", h.Hooks, failing(h),
			rate(h.Delivered, before.Hooks.Delivered), h.Pending, h.Lag, h.Failed, h.Skipped))
	}
	e := now.Expiry
	if deleted := rate(e.Deleted, before.Expiry.Deleted); deleted > 0 || e.DueDatabases > 0 || e.Failures > before.Expiry.Failures {
		lines = append(lines, fmt.Sprintf("expiry    %.0f/s deleted  lag %.1f s in %d databases  %d failures", deleted, e.Lag, e.DueDatabases, e.Failures))
	}
	return lines
}

// failing names webhooks that fail.
func failing(h admin.HookTotals) string {
	if h.Failing == 0 {
		return ""
	}
	names := strings.Join(h.Names, ", ")
	if more := h.Failing - len(h.Names); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("  %d FAILING: %s", h.Failing, cli.Visible(names))
}

// clients writes which clients of SDKs there are, and what they do in a second.
func (f *Frame) clients() string {
	kinds, deeds := f.Status.ClientKinds, f.Operations.Clients
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&text, "  %s %d", cli.Visible(kind), kinds[kind])
	}
	for _, deed := range slices.Sorted(maps.Keys(deeds)) {
		fmt.Fprintf(&text, "  %s %.0f/s", cli.Visible(deed), f.perSecond(float64(deeds[deed])))
	}
	return text.String()
}

// Statuses writes how often each status was answered: 200:15 404:2.
func Statuses(statuses map[int]int) string {
	var list []string
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		list = append(list, fmt.Sprintf("%d:%d", status, statuses[status]))
	}
	return strings.Join(list, " ")
}

// Paths writes a list of paths under a heading.
func Paths(heading string, list []admin.PathReport, timed bool) []string {
	lines := []string{heading}
	if len(list) == 0 {
		return append(lines, "  none")
	}
	for _, p := range list {
		line := fmt.Sprintf("%7d  %-6s ", p.Count, cli.Visible(p.Verb))
		if timed {
			line = fmt.Sprintf("%7d  %8.1f ms  %-6s ", p.Count, p.Millis, cli.Visible(p.Verb))
		}
		line += cli.Visible(p.Database) + " " + cli.Visible(p.Path)
		if p.Index != "" {
			line += fmt.Sprintf("  add \".indexOn\": %q", p.Index)
		}
		lines = append(lines, line)
	}
	return lines
}
