package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/tree"
)

func newWatchCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "watch PATH [flags]",
		Short: "print changes as they happen",
		Long: `livetree watch prints what is at a path, and then every change at or below it, until
it is interrupted: put and the path below PATH with what is there now, or patch with
the children that changed. A connection that breaks is made again; what was missed
is printed then.` + remoteLong,
		Example: `  livetree watch /rooms/blue
  livetree watch /counters --value
  livetree watch / --json | while read -r event; do echo "$event"; done`,
		GroupID: groupData,
		Args:    takes("PATH"),
	}
	r := remoteFlags(c.Flags())
	r.jsonFlag(c.Flags())
	filters := cli.NewFilters(c.Flags())
	value := c.Flags().Bool("value", false, "print the whole value after each change instead of the change; it is kept in memory")
	count := c.Flags().Int("count", 0, "end after this many `events`; 0 for never")
	maxEvent := cli.ByteSize(client.DefaultMaxEvent)
	c.Flags().Var(&maxEvent, "max-event", "the largest event, a `size`")
	c.RunE = r.runs(a, func(c *cobra.Command, args []string) error {
		server, err := r.connect()
		if err != nil {
			return err
		}
		defer server.Close()
		p := &watchPrinter{app: a, json: r.json, value: *value, left: *count}
		err = server.Watch(c.Context(), client.Watch{
			Path: args[0], Query: filters.Query(), MaxEvent: int(maxEvent),
			Lost: func(err error, wait time.Duration) {
				say(a.stderr, fmt.Sprintf("livetree: %v; again in %s\n", err, wait.Round(100*time.Millisecond)))
			},
		}, p.print)
		if errors.Is(err, errEnough) || c.Context().Err() != nil {
			return nil // as it was asked to
		}
		return err
	})
	return c
}

// errEnough ends a watch that has printed as many events as it should.
var errEnough = errors.New("enough")

// A watchPrinter prints events.
type watchPrinter struct {
	*app
	json, value bool
	left        int // events until the end; 0 for endless
	cache       client.Cache
}

// eventJSON is how --json shows an event.
type eventJSON struct {
	Event string          `json:"event"`
	Path  string          `json:"path"`
	Data  json.RawMessage `json:"data"`
	ID    string          `json:"id,omitempty"`
}

func (p *watchPrinter) print(e client.Event) error {
	if e.Name != client.EventPut && e.Name != client.EventPatch {
		return nil
	}
	if e.Truncated {
		return fmt.Errorf("an event at %s is larger than --max-event allows", e.Path)
	}
	var line []byte
	switch {
	case p.value:
		if err := p.cache.Apply(e); err != nil {
			return err
		}
		line = tree.AppendJSON(nil, p.cache.Node(), tree.Plain)
	case p.json:
		var err error
		if line, err = json.Marshal(eventJSON{e.Name, e.Path, e.Data, e.ID}); err != nil {
			return err
		}
	default:
		line = fmt.Appendf(nil, "%s %s %s", e.Name, e.Path, e.Data)
	}
	if _, err := p.stdout.Write(append(line, '\n')); err != nil {
		return err
	}
	if p.left == 1 {
		return errEnough
	}
	p.left = max(0, p.left-1)
	return nil
}
