package engine

import (
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// This file builds the indexes by priority that writes have begun. They are in no
// list of the settings: the store knows them, of which there may be very many. A
// commit that begins one says so, and published.Begun has the newest that did.

// A preparedPriority is a step that waits for its turn. From is where the store
// looked for it, the position that of the view that it was worked out on.
type preparedPriority struct {
	rows           *store.PriorityRows
	from, position uint64
}

// preparePriority works out the next step on the newest view; nil if no index by
// priority is left to be built.
func (x *indexer) preparePriority() (*preparedPriority, error) {
	view, published := x.db.view()
	defer view.Release()
	rows, err := view.Tree(x.db.source.ID).BuildPriority(x.unbuilt)
	if err != nil {
		return nil, err
	}
	if rows == nil {
		x.built.Store(published.Position) // the view shows all that were begun up to there
		return nil, nil
	}
	return &preparedPriority{rows, x.unbuilt, published.Position}, nil
}

// advancePriority makes the next step of building an index by priority, or fails
// with errNoWork.
func (x *indexer) advancePriority() error {
	if x.db.published.Load().Begun <= x.built.Load() {
		return errNoWork
	}
	if err := x.db.source.Store.AdmitStep(true); err != nil {
		return err
	}
	began := x.db.source.Clock.Now()
	p, err := x.preparePriority()
	if p == nil || err != nil {
		return err
	}
	next := p.rows.Position
	err = x.commitStep(began, func(*state.Settings) (revision, error) { return x.stepPriority(p) })
	if err == nil {
		x.unbuilt = next
	}
	return err
}

// stepPriority makes a prepared step at its turn. If too much was written since, it
// works out a smaller one.
func (x *indexer) stepPriority(p *preparedPriority) (revision, error) {
	live := x.db.writer.live()
	stands := false
	var err error
	if touched, known := x.db.writer.memory.recent.since(p.position); known {
		stands, err = p.rows.Amend(live.Reader(), touched)
	}
	if !stands {
		p.rows.Close()
		if err == nil {
			p.rows, err = live.BuildPriority(p.from)
		}
	}
	if err != nil || p.rows == nil {
		return revision{}, err
	}
	return revision{rows: store.Settings{}, step: &p.rows.IndexRows}, nil
}
