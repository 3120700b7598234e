package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/topview"
)

func newTopCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "top [flags]",
		Short: "watch a server at work",
		Long: `livetree top shows the requests of the last second, how long they took, the streams,
the clients of the SDKs and what they do, the disk, webhooks, data that expires and the
busiest paths, again every second until q is pressed.
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

// nextFrame watches the server for a second.
func nextFrame(ctx context.Context, o *operator) (topview.Frame, error) {
	quiet := *o
	quiet.json = false // frames are printed as a whole
	var f topview.Frame
	err := quiet.do(ctx, http.MethodGet, "/v1/status", nil, &f.Before)
	if err == nil {
		err = quiet.do(ctx, http.MethodGet, "/v1/operations?for=1s&lines=30", nil, &f.Operations)
	}
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
	for _, line := range f.Lines(time.Now()) {
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
		draw(output, append(f.Lines(time.Now()), "", "q ends"))
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
