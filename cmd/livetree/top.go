package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/cli"
)

func newTopCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "top [flags]",
		Short: "watch a server at work",
		Long: `livetree top shows the requests of the last second, how long they took, the streams,
the clients of the SDKs and what they do, the disk and the busiest paths, again every second until q is pressed.
With --once, or where no terminal is, it shows one second and ends.` + operatorLong,
		Example: "  livetree top\n  livetree top --once",
		GroupID: groupCare,
		Args:    takes(),
	}
	o := operatorFlags(a, c.Flags())
	once := c.Flags().Bool("once", false, "show one second and end")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *once || o.json || !a.isTerminal(a.stdout) || !a.isTerminal(a.stdin) {
			return topOnce(c.Context(), o)
		}
		return topLive(c.Context(), o)
	}
	return c
}

// A frame is what top shows of a second.
type frame struct {
	Status     admin.Status `json:"status"`
	Operations admin.Report `json:"operations"`
}

// nextFrame watches the server for a second.
func nextFrame(ctx context.Context, o *operator) (frame, error) {
	quiet := *o
	quiet.json = false // frames are printed as a whole
	var f frame
	err := quiet.do(ctx, http.MethodGet, "/v1/operations?for=1s&lines=30", nil, &f.Operations)
	if err == nil {
		err = quiet.do(ctx, http.MethodGet, "/v1/status", nil, &f.Status)
	}
	return f, err
}

func topOnce(ctx context.Context, o *operator) error {
	f, err := nextFrame(ctx, o)
	if err != nil {
		return err
	}
	if o.json {
		printJSON(o.app.stdout, f)
		return nil
	}
	for _, line := range f.lines() {
		say(o.app.stdout, line+"\n")
	}
	return nil
}

// Sequences that terminals understand: a screen of one's own, without a cursor;
// back; to the first line; the rest of a line; the rest of the screen.
const (
	screenOn  = "\x1b[?1049h\x1b[?25l"
	screenOff = "\x1b[?25h\x1b[?1049l"
	screenTop = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

// topLive draws frames until q, the end of the context or an error.
func topLive(ctx context.Context, o *operator) error {
	input, output := o.app.stdin.(*os.File), cli.Unguarded(o.app.stdout).(*os.File) // both are terminals
	before, err := term.MakeRaw(int(input.Fd()))
	if err != nil {
		return err
	}
	defer func() {
		say(output, screenOff)
		_ = term.Restore(int(input.Fd()), before) // what else could be done
	}()
	say(output, screenOn)
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	go quitOnKey(input, quit) // ends with the process: a terminal cannot be left off reading
	draw(output, []string{"livetree top: watching for a second …"})
	for {
		f, err := nextFrame(ctx, o)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		draw(output, append(f.lines(), "", "q ends"))
	}
}

// quitOnKey calls quit when q, control-C, control-D or escape is pressed.
func quitOnKey(input io.Reader, quit func()) {
	key := make([]byte, 1)
	for {
		if n, err := input.Read(key); err != nil || n == 1 && strings.ContainsRune("qQ\x03\x04\x1b", rune(key[0])) {
			quit()
			return
		}
	}
}

// draw fills the screen with lines, as far as they fit.
func draw(output *os.File, lines []string) {
	width, height, err := term.GetSize(int(output.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	if len(lines) > height-1 {
		lines = lines[:height-1]
	}
	var text strings.Builder
	text.WriteString(screenTop)
	for _, line := range lines {
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width])
		}
		text.WriteString(line + clearLine + "\r\n")
	}
	text.WriteString(clearRest)
	say(output, text.String())
}

// lines writes a frame for people.
func (f frame) lines() []string {
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
	perSecond := func(n float64) float64 { return n / max(r.Seconds, 0.001) }
	lines := []string{
		fmt.Sprintf("livetree %s  %s", cli.Visible(s.Version), cli.Visible(ready)),
		fmt.Sprintf("requests  %.0f/s  failed %d  in %s/s  out %s/s  %s", perSecond(float64(r.Requests)), r.Failed,
			sizeText(uint64(perSecond(float64(r.BytesIn)))), sizeText(uint64(perSecond(float64(r.BytesOut)))), statusText(r.Statuses)),
		fmt.Sprintf("latency   p50 %.1f ms  p90 %.1f ms  p99 %.1f ms  max %.1f ms", r.Latency["p50"], r.Latency["p90"], r.Latency["p99"], r.Latency["max"]),
		fmt.Sprintf("streams   %d open  views %d", s.Streams, s.Views),
		fmt.Sprintf("clients   %d of SDKs%s", s.Clients, clientsText(s.ClientKinds, r.Clients, perSecond)),
		fmt.Sprintf("disk      %s  free %s  store %s  log %s  sync %.1f ms", s.Disk, sizeText(s.FreeBytes), sizeText(s.UsedBytes), sizeText(s.WALBytes), s.SyncMillis),
		archiveLine(s.Archive),
		fmt.Sprintf("process   %s resident  %d goroutines", sizeText(s.RSSBytes), s.Goroutines),
		"",
	}
	return append(lines, pathLines("busiest paths", r.Busiest, true)...)
}

// archiveLine writes how the archive does.
func archiveLine(s *archiver.Status) string {
	if s == nil {
		return "archive   none"
	}
	return fmt.Sprintf("archive   %s  %s behind  %s wait  %d records  %d failures", cli.Visible(s.State),
		s.Lag(time.Now()).Round(time.Millisecond*100), sizeText(uint64(max(0, s.WaitingBytes))), s.Records, s.Failures)
}

// clientsText writes which clients of SDKs there are, and what they do in a second.
func clientsText(kinds map[string]int64, deeds map[string]int, perSecond func(float64) float64) string {
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&text, "  %s %d", cli.Visible(kind), kinds[kind])
	}
	for _, deed := range slices.Sorted(maps.Keys(deeds)) {
		fmt.Fprintf(&text, "  %s %.0f/s", cli.Visible(deed), perSecond(float64(deeds[deed])))
	}
	return text.String()
}

// statusText writes how often each status was answered: 200:15 404:2.
func statusText(statuses map[int]int) string {
	var list []string
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		list = append(list, fmt.Sprintf("%d:%d", status, statuses[status]))
	}
	return strings.Join(list, " ")
}

// pathLines writes a list of paths under a heading.
func pathLines(heading string, list []admin.PathReport, timed bool) []string {
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
