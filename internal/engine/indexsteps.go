package engine

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/store"
)

// This file builds and drops indexes in the background, in steps.
//
// Each step is a commit in the order of writes, which stores how far it came with
// its rows. Finding the rows takes longer than writing them, so that is done
// before, on a view. At the step's turn only what was touched since is looked at
// again.

// A prepared step is one that waits for its turn. The entry is what it was
// worked out for, the position that of the view.
type preparedStep struct {
	entry    indexEntry
	index    store.Index
	position uint64
	rows     *store.IndexRows
}

// prepareStep works out the next step of an index on the newest view.
func (d *Database) prepareStep(e indexEntry) (*preparedStep, error) {
	view, published := d.view()
	defer view.Release()
	settings := published.settings
	i := settings.list.find(e.Number)
	if i < 0 {
		return nil, nil
	}
	p := &preparedStep{entry: settings.list.Entries[i], position: published.position}
	if p.entry.State == indexReady {
		return nil, nil
	}
	var err error
	if p.entry.State == indexDropping {
		p.rows, err = view.Tree(d.id).DropIndex(p.entry.Number, p.entry.Cursor)
		return p, err
	}
	rule, err := p.entry.rule()
	if err != nil {
		return nil, err
	}
	p.index = store.Index{Number: p.entry.Number, Order: rule.Index.Order()}
	p.rows, err = view.Tree(d.id).BuildIndex(settings.indexes, p.index, len(p.entry.Pattern), p.entry.Cursor, store.StepChildren)
	return p, err
}

// step makes a prepared step at its turn in the order.
func (d *Database) step(s *settings, p *preparedStep) (revision, error) {
	i := s.list.find(p.entry.Number)
	if i < 0 || s.list.Entries[i].State != p.entry.State || !bytes.Equal(s.list.Entries[i].Cursor, p.entry.Cursor) {
		p.rows.Close() // it was worked out for what is no longer so
		return revision{}, nil
	}
	list := indexList{s.list.Next, slices.Clone(s.list.Entries)}
	e := &list.Entries[i]
	if e.State == indexBuilding {
		if err := d.amend(s, p); err != nil {
			p.rows.Close()
			return revision{}, err
		}
	}
	switch e.Cursor = p.rows.Cursor; {
	case e.Cursor != nil:
	case e.State == indexDropping:
		list.Entries = slices.Delete(list.Entries, i, i+1)
	default:
		e.State = indexReady
	}
	return revision{rows: store.Settings{settingIndexes: list.encode()}, step: p.rows}, nil
}

// amend brings a step up to what was committed since it was prepared. Where that
// is too much, a smaller step is worked out anew: an index must be finished one
// day, however much is written meanwhile.
func (d *Database) amend(s *settings, p *preparedStep) error {
	live := d.store.Live(d.id)
	if touched, known := d.recent.since(p.position); known {
		ok, err := p.rows.Amend(live, touched)
		if ok || err != nil {
			return err
		}
	}
	rows, err := live.BuildIndex(s.indexes, p.index, len(p.entry.Pattern), p.entry.Cursor, store.StepChildrenLive)
	if err != nil {
		return err
	}
	p.rows.Close()
	p.rows = rows
	return nil
}

const (
	// retryStep is how long to wait when a step cannot be made, for want of space
	// perhaps.
	retryStep = time.Second
	// maxRest is how long the machine is left to others at most, after a step.
	maxRest = 20 * time.Millisecond
)

// startMaintenance works on unfinished indexes until there are none. It is
// called when there may be some; one goroutine at a time does the work.
func (d *Database) startMaintenance() {
	if _, ok := d.published.Load().settings.list.unfinished(); !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.maintaining || d.closed {
		return
	}
	d.maintaining = true
	d.writers.Add(1)
	go d.maintain()
}

func (d *Database) maintain() {
	defer d.writers.Done()
	for {
		e, ok := d.published.Load().settings.list.unfinished()
		d.mu.Lock()
		if !ok || d.closed {
			d.maintaining = false
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		if err := d.advance(e); err != nil {
			d.pause(retryStep)
		}
	}
}

// advance makes the next step of an index. If others write meanwhile, it leaves them
// the machine for as long as the step took.
func (d *Database) advance(e indexEntry) error {
	began := d.opts.Clock.Now()
	p, err := d.prepareStep(e)
	if p == nil || err != nil {
		return err
	}
	_, err = d.Write(context.Background(), Request{revise: func(s *settings) (revision, error) { return d.step(s, p) }})
	if d.published.Load().position > p.position+1 {
		d.pause(min(d.opts.Clock.Now().Sub(began), maxRest))
	}
	return err
}

// pause waits, but not longer than the database is open.
func (d *Database) pause(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.ended:
	}
}

// WaitForIndexes returns when no index is being built or dropped.
func (d *Database) WaitForIndexes(ctx context.Context) error {
	for {
		if _, ok := d.published.Load().settings.list.unfinished(); !ok {
			return nil
		}
		d.startMaintenance()
		// Every step is a commit: wait for one.
		if _, err := d.Write(ctx, Request{revise: func(*settings) (revision, error) { return revision{}, nil }}); err != nil {
			return err
		}
	}
}
