package enginetest

import (
	"errors"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/histories"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/watch"
)

// A namedWatch is a watch of a history, with what its client remembers.
type namedWatch struct {
	name string
	*watch.Watch
	request  watch.Request
	epoch    uint64
	position uint64 // of the last commit that was told to its end
}

// watch begins a watch. It prints the first event.
func (h *historian) watch(c *histories.Command) (string, error) {
	q, err := parseQuery(c)
	if err != nil {
		return "", err
	}
	return h.begin(&namedWatch{name: c.Arg(0), request: watch.Request{
		Path: Path(h.T, c.Arg(1)), Form: form(c), Query: q, Who: h.who, Wake: func() {},
	}})
}

// leave ends a watch, which resume can begin again.
func (h *historian) leave(c *histories.Command) (string, error) {
	h.watchCalled(c.Arg(0)).Close()
	return "ok", nil
}

// resume begins a watch again, after the last event that it was told. In another epoch
// it is told the whole node, as clients of the REST interface are.
func (h *historian) resume(c *histories.Command) (string, error) {
	w := *h.watchCalled(c.Arg(0))
	w.Close()
	w.request.Resume, w.request.Behind = w.epoch == h.Epoch(), w.position
	return h.begin(&w)
}

// begin opens a watch in place of one with the same name, and prints what it is told.
func (h *historian) begin(w *namedWatch) (string, error) {
	opened, _, err := h.Watches().Open(w.request)
	if err != nil {
		return "", err
	}
	w.Watch, w.epoch = opened, h.Epoch()
	same := slices.IndexFunc(h.watches, func(other *namedWatch) bool { return other.name == w.name })
	if same < 0 {
		h.watches = append(h.watches, w)
	} else {
		h.watches[same].Close()
		h.watches[same] = w
	}
	return w.events(h), nil
}

// events prints what watches were told since the last time: those that are named, or all.
func (h *historian) events(c *histories.Command) (string, error) {
	if len(c.Args) == 1 {
		return h.watchCalled(c.Arg(0)).events(h), nil
	}
	var lines []string
	for _, w := range h.watches {
		if len(c.Args) == 0 || slices.Contains(c.Args, w.name) {
			for line := range strings.SplitSeq(w.events(h), "\n") {
				lines = append(lines, w.name+": "+line)
			}
		}
	}
	return strings.Join(lines, "\n"), nil
}

func (h *historian) watchCalled(name string) *namedWatch {
	for _, w := range h.watches {
		if w.name == name {
			return w
		}
	}
	h.T.Fatalf("no watch is called %s", name)
	return nil
}

// events takes all events that there are, and returns them as lines.
func (w *namedWatch) events(h *historian) string {
	var lines []string
	for {
		e, ok := w.Next()
		switch {
		case ok:
			lines = append(lines, Describe(h.T, e))
			if e.Last {
				w.position = e.Position
			}
		case lines == nil:
			return "none"
		default:
			return strings.Join(lines, "\n")
		}
	}
}

// parseQuery returns the query of a command, nil if it has none.
func parseQuery(c *histories.Command) (*query.Query, error) {
	q, ok, err := query.Parse(func(name string) (string, bool) {
		value, ok := c.Named[name]
		return value, ok
	})
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Invalid, err, "%v", err)
	case !ok:
		return nil, nil
	}
	return &q, nil
}

// printed returns the text of what a view has returned, and closes that.
func printed[C watch.Content](content C, err error) (string, error) {
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = errors.Join(content.PrintTo(&text), content.Close())
	return text.String(), err
}
