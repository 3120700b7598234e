package engine

import (
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// This file puts commits into the store that this node has not judged, or that it has judged
// without knowing what became of them.

// ErrVoid says that commits do not follow those that a database has.
var ErrVoid = errors.New("the commits do not follow those of the database")

// A Following is commits of a database on their way into the store. It keeps the writer of the
// database from judging, until End.
type Following struct {
	// Tickets are those of the commits, for store.CommitRecord.
	Tickets []store.Ticket

	of   *grouping
	next base
}

// Follow begins to put commits into the store that the Log of a database has, in order. When it
// returns nil, End must be called.
func Follow(d *Database, effects []*store.Effect) (*Following, error) {
	g := d.writer.group
	g.mu.Lock()
	f := &Following{of: g, next: g.base}
	for _, e := range effects {
		ticket, err := f.add(d, e)
		if err != nil {
			g.mu.Unlock()
			return nil, err
		}
		f.Tickets = append(f.Tickets, ticket)
	}
	return f, nil
}

// FollowDrop is Follow for the drop of a database at a time, whose batch it returns. A time of 0 is that of the clock. After End,
// Forget is called.
func FollowDrop(d *Database, millis int64) (*Following, *store.Batch, error) {
	g := d.writer.group
	g.mu.Lock()
	f := &Following{of: g, next: g.base}
	if millis == 0 {
		millis = d.source.Clock.Millis()
	}
	batch, err := d.source.Store.BuildDrop(d.source.Name, d.source.ID, tree.Change{
		Position: g.base.position + 1, Millis: millis, Author: operator.Author(),
	})
	if err != nil {
		g.mu.Unlock()
		return nil, nil, err
	}
	f.next.dropped = true
	next := &state.Published{Position: g.base.position, Settings: g.base.settings, Dropped: true}
	f.Tickets = []store.Ticket{&follower{database: d, next: next}}
	return f, batch, nil
}

// Forget closes a database whose drop was followed, and gives up what is remembered of it.
func Forget(d *Database) {
	d.Close()
	d.source.Store.Forget(d.source.ID)
}

// End says whether the commits are in the store.
func (f *Following) End(committed bool) {
	if f.of.followed++; committed {
		f.of.base = f.next
	}
	f.of.mu.Unlock()
}

func (f *Following) add(d *Database, e *store.Effect) (*follower, error) {
	t := &follower{database: d, due: dueOf(e.Batch)}
	position := e.Record.Position
	if position == 0 {
		return t, nil
	}
	if position != f.next.position+1 || f.next.dropped {
		return nil, fmt.Errorf("%w: %d after %d", ErrVoid, position, f.next.position)
	}
	settings, err := f.next.settings.With(e.Settings)
	if err != nil {
		return nil, err
	}
	whole, err := e.Whole()
	if err != nil {
		return nil, err
	}
	if t.change = whole.Change; !whole.IsWhole() && !whole.Settings {
		t.effect = watch.Lost
	}
	f.next.position, f.next.settings = position, settings
	if e.Begins() {
		f.next.begun = position
	}
	d.source.Clock.Raise(whole.Millis)
	t.next = &state.Published{Position: position, Begun: f.next.begun, Settings: settings}
	return t, nil
}

// A follower is the ticket of a commit that nobody here waits for.
type follower struct {
	database *Database
	change   tree.Change
	effect   *watch.Effect
	next     *state.Published // nil if it is not in the log
	due      dueNews
}

// Durable implements store.Ticket.
func (t *follower) Durable(view uint64) {
	if t.next != nil {
		t.next.Since = view
		t.database.published.Store(t.next)
		t.database.watches.Durable()
	}
}

// Visible implements store.Ticket.
func (t *follower) Visible() {
	if t.next == nil {
		return
	}
	if t.next.Dropped {
		tellDue(t.database, dueNews{Never, true}) // a step finds that there is nothing more to do
		return
	}
	t.database.watches.Visible(t.change, t.effect, t.next)
	t.database.indexer.start()
	tellDue(t.database, t.due)
}
