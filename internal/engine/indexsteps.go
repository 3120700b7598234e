package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file builds and drops indexes in the background, in steps.
//
// Each step is a commit in the order of writes, which stores how far it came with
// its rows. Finding the rows takes longer than writing them, so that is done
// before, on a view. At the step's turn only what was touched since is looked at
// again.

// An indexer works on the indexes of a database.
type indexer struct {
	db *Database
	// built is a position up to which all indexes by priority that were begun are
	// built. unbuilt is where the store looks for the next; it belongs to the goroutine
	// that works on indexes.
	built   atomic.Uint64
	unbuilt uint64
}

// A prepared step is one that waits for its turn. The entry is what it was
// worked out for, the position that of the view.
type preparedStep struct {
	entry    state.IndexEntry
	index    store.Index
	position uint64
	rows     *store.IndexRows
}

// prepareStep works out the next step of an index on the newest view.
func (x *indexer) prepareStep(e state.IndexEntry) (*preparedStep, error) {
	view, published := x.db.view()
	defer view.Release()
	if published.Dropped {
		return nil, state.NoDatabase(x.db.source.Name)
	}
	settings := published.Settings
	i := settings.List.Find(e.Number)
	if i < 0 {
		return nil, nil
	}
	p := &preparedStep{entry: settings.List.Entries[i], position: published.Position}
	if p.entry.State == state.IndexReady {
		return nil, nil
	}
	var err error
	if p.entry.State == state.IndexDropping {
		p.rows, err = view.Tree(x.db.source.ID).DropIndex(p.entry.Number, p.entry.Cursor)
		return p, err
	}
	rule, err := p.entry.Rule()
	if err != nil {
		return nil, err
	}
	if p.entry.Expires {
		p.rows, err = store.BuildDue(view.Tree(x.db.source.ID), settings.Indexes, p.entry.Number, p.entry.Cursor)
		return p, err
	}
	p.index = store.Index{Number: p.entry.Number, Order: rule.Index.Order()}
	p.rows, err = view.Tree(x.db.source.ID).BuildIndex(settings.Indexes, p.index, len(p.entry.Pattern), p.entry.Cursor)
	return p, err
}

// step makes a prepared step at its turn in the order.
func (x *indexer) step(s *state.Settings, p *preparedStep) (revision, error) {
	i := s.List.Find(p.entry.Number)
	if i < 0 || s.List.Entries[i].State != p.entry.State || !bytes.Equal(s.List.Entries[i].Cursor, p.entry.Cursor) {
		p.rows.Close() // it was worked out for what is no longer so
		return revision{}, nil
	}
	list := state.IndexList{Next: s.List.Next, Entries: slices.Clone(s.List.Entries)}
	e := &list.Entries[i]
	if e.State == state.IndexBuilding && !e.Expires { // see BuildDue
		if err := x.amend(s, p); err != nil {
			p.rows.Close()
			return revision{}, err
		}
	}
	switch e.Cursor = p.rows.Cursor; {
	case e.Cursor != nil:
	case e.State == state.IndexDropping:
		list.Entries = slices.Delete(list.Entries, i, i+1)
	default:
		e.State = state.IndexReady
	}
	return revision{rows: store.Settings{state.SettingIndexes: list.Encode()}, step: p.rows}, nil
}

// amend brings a step up to what was committed since it was prepared. Where that
// is too much, a smaller step is worked out anew: an index must be finished one
// day, however much is written meanwhile.
func (x *indexer) amend(s *state.Settings, p *preparedStep) error {
	live := x.db.writer.live()
	if touched, known := x.db.writer.memory.recent.since(p.position); known {
		ok, err := p.rows.Amend(live.Reader(), touched)
		if ok || err != nil {
			return err
		}
	}
	rows, err := live.BuildIndex(s.Indexes, p.index, len(p.entry.Pattern), p.entry.Cursor)
	if err != nil {
		return err
	}
	p.rows.Close()
	p.rows = rows
	return nil
}

// retryStep is how long to wait when a step cannot be made, for want of space perhaps.
const retryStep = time.Second

// unfinished reports whether an index needs work.
func (x *indexer) unfinished() bool {
	p := x.db.published.Load()
	_, ok := p.Settings.List.Unfinished()
	return (ok || p.Begun > x.built.Load()) && x.db.writer.group.isHome()
}

// startMaintenance has unfinished indexes worked on until there are none. It is called
// whenever settings were published or an index by priority was begun, in Open and by the syncer; one goroutine at a time does
// the work.
func (x *indexer) start() {
	if !x.unfinished() {
		return
	}
	x.db.writer.mu.Lock()
	defer x.db.writer.mu.Unlock()
	if x.db.writer.maintaining || x.db.writer.closed {
		return
	}
	x.db.writer.maintaining = true
	x.db.writer.goroutines.Go(x.maintain)
}

func (x *indexer) maintain() {
	for {
		if !x.goOn() {
			return
		}
		// In turn: neither kind waits until the other is built.
		index, priority := x.advanceIndex(), x.advancePriority()
		if index != nil && priority != nil && !errors.Is(errors.Join(index, priority), errUsedUp) {
			x.pause(retryStep)
		}
	}
}

// goOn reports whether an index needs work. If none does, the goroutine that works on
// indexes must end. It looks and says so under one lock: what is published after the look
// starts another.
func (x *indexer) goOn() bool {
	x.db.writer.mu.Lock()
	defer x.db.writer.mu.Unlock()
	x.db.writer.maintaining = x.unfinished() && !x.db.writer.closed
	x.db.writer.rest()
	return x.db.writer.maintaining
}

// errNoWork says that there is no step to be made.
var errNoWork = errors.New("no index needs work")

// advanceIndex makes the next step of an index that the rules ask for, or of one
// that is dropped, or fails with errNoWork.
func (x *indexer) advanceIndex() error {
	e, ok := x.db.published.Load().Settings.List.Unfinished()
	if !ok {
		return errNoWork
	}
	if err := x.db.source.Store.AdmitStep(e.State != state.IndexDropping); err != nil {
		return err
	}
	began := x.db.source.Clock.Now()
	p, err := x.prepareStep(e)
	if p == nil || err != nil {
		return err
	}
	return x.commitStep(began, func(s *state.Settings) (revision, error) { return x.step(s, p) })
}

// commitStep hands a step in that began at some time, and then leaves the machine to clients
// for as long as their requests demand.
func (x *indexer) commitStep(began time.Time, step indexStep) error {
	_, err := x.db.Write(context.Background(), Request{revise: step, Who: auth.Identity{By: tree.ByServer}})
	now := x.db.source.Clock.Now()
	x.pause(x.db.source.Metrics.Foreground.Rest(now, now.Sub(began)))
	return err
}

// pause waits, but not longer than the database is open.
func (x *indexer) pause(wait time.Duration) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.db.ended:
	}
}
