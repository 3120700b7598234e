package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store/layout"
)

// This file makes the writes that connections have left. Each is judged at its turn, with the
// identity of its connection, and is an ordinary commit, whose batch also deletes its row. So it is
// made once, wherever the process is killed, and also if it is not known whether it was made.

const (
	// leftTries is how often a write is tried that cannot be made now, leftPause how long the
	// first pause between two tries is. Each is four times as long as the one before.
	leftTries = 4
	leftPause = 100 * time.Millisecond
	// leftRunners is how many connections RunLeft works for at a time. One sync does for
	// all of them.
	leftRunners = 128
)

// Made counts what became of writes that were left.
type Made struct {
	Made    int // were committed
	Dropped int // were refused, by the rules for example, and are given up
	Kept    int // could not be made, and are tried again at the next start
}

func (m *Made) add(other Made) {
	m.Made, m.Dropped, m.Kept = m.Made+other.Made, m.Dropped+other.Dropped, m.Kept+other.Kept
}

// Run makes what the connection has left, in order, as it has gone: nothing more can be left.
// A write that the rules deny is dropped, the others are made. One that cannot be made,
// for lack of space for example, is kept in the store for the next start, and the error says
// why. It takes as long as the writes do. A second Run makes what the first has kept.
func (l *Leaving) Run(ctx context.Context) (Made, error) {
	var made Made
	if !l.used.Load() {
		return made, nil
	}
	err := l.end(ctx)
	rows := l.left.Load().list.Rows()
	if err != nil {
		made.Kept = len(rows)
		return made, err
	}
	var problems []error
	for i, r := range rows {
		dropped, err := l.makeRow(ctx, r)
		switch {
		case err != nil && cannotGoOn(err):
			made.Kept += len(rows) - i
			return made, err
		case err != nil:
			made.Kept++
			problems = append(problems, err)
		case dropped:
			made.Dropped++
		default:
			made.Made++
		}
	}
	return made, errors.Join(problems...)
}

// end returns when nothing more can be left.
func (l *Leaving) end(ctx context.Context) error {
	if l.left.Load().ended {
		return nil
	}
	return l.try(ctx, func() error { return l.ask(ctx, &parting{of: l, ends: true}) })
}

// cannotGoOn reports whether other writes would fare as the one that gave an error did, after a
// long time perhaps.
func cannotGoOn(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Unknown, fault.NotFound:
		return true
	}
	return false
}

// makeRow makes the write of a row, or gives it up if it is refused.
func (l *Leaving) makeRow(ctx context.Context, r leave.Row) (dropped bool, err error) {
	w, err := r.Write()
	if err != nil {
		return false, fmt.Errorf("row %d of %s: %w", r.Number, l.left.Load().name, err)
	}
	change := func(list *leave.List) (*leave.List, error) { return list.Done(r.Number), nil }
	err = l.try(ctx, func() error {
		_, err := l.db.Write(ctx, Request{Write: w, Who: l.left.Load().who, parting: &parting{of: l, makes: r.Number, change: change}})
		return err
	})
	if err == nil || errors.Is(err, errMade) {
		return false, nil
	}
	switch fault.KindOf(err) {
	case fault.Denied, fault.Invalid, fault.TooLarge:
	default:
		return false, err
	}
	return true, l.try(ctx, func() error { return l.ask(ctx, &parting{of: l, change: change}) })
}

// ask makes a request without a write. It is not counted as one.
func (l *Leaving) ask(ctx context.Context, p *parting) error {
	_, err := l.db.writer.write(ctx, Request{parting: p})
	return err
}

// try repeats what is not possible now, a few times. What may have been made is tried, too: if it
// was, its row is gone.
func (l *Leaving) try(ctx context.Context, do func() error) error {
	wait := leftPause
	for n := 1; ; n++ {
		err := do()
		if kind := fault.KindOf(err); n == leftTries || kind != fault.Unavailable && kind != fault.Unknown || l.db.Standing() != nil {
			return err
		}
		if pause.For(ctx, wait) != nil {
			return err
		}
		wait *= 4
	}
}

// RunLeft makes what connections of a former process have left, of all of them. It must be
// called before there is a Leaving in this process. The rows of a connection that cannot be
// read, or whose writes cannot be made, are kept; problem is told why, by several goroutines.
// When the database takes no writes at all, RunLeft gives up soon.
func (d *Database) RunLeft(ctx context.Context, problem func(error)) (Made, error) {
	connections, err := d.leftConnections()
	if err != nil || len(connections) == 0 {
		return Made{}, err
	}
	run := &leftRun{db: d, problem: problem, next: make(chan string)}
	running, stop := context.WithCancel(ctx)
	defer stop()
	run.stop = stop
	var runners sync.WaitGroup
	for range min(leftRunners, len(connections)) {
		runners.Go(func() { run.work(running) })
	}
	for _, connection := range connections {
		select {
		case run.next <- connection:
			continue
		case <-running.Done():
		}
		break
	}
	close(run.next)
	runners.Wait()
	return run.made, context.Cause(ctx)
}

// leftConnections returns the connections that have left something.
func (d *Database) leftConnections() (connections []string, err error) {
	view, published := d.view()
	defer view.Release()
	if published.Dropped {
		return nil, state.NoDatabase(d.source.Name)
	}
	err = view.Tree(d.source.ID).Reader().Left(func(connection string) bool {
		connections = append(connections, connection)
		return true
	})
	return connections, state.Classify(err)
}

// A leftRun is one RunLeft.
type leftRun struct {
	db      *Database
	problem func(error)
	stop    func()
	next    chan string // connections

	mu   sync.Mutex
	made Made
}

// work runs what one connection after the other has left.
func (run *leftRun) work(ctx context.Context) {
	for connection := range run.next {
		l, err := run.db.loadLeaving(connection)
		if err != nil {
			run.problem(err)
		}
		if l == nil {
			continue
		}
		made, err := l.Run(ctx)
		run.mu.Lock()
		run.made.add(made)
		run.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			run.problem(err)
		}
		if cannotGoOn(err) {
			run.stop()
		}
	}
}

// loadLeaving returns what a connection of a former process has left, nil if that cannot be
// known. Rows that cannot be read are left out; the error says which.
func (d *Database) loadLeaving(connection string) (*Leaving, error) {
	view, _ := d.view()
	defer view.Release()
	found := &left{name: connection, ended: true}
	var rows []leave.Row
	var problems []error
	err := view.Tree(d.source.ID).Reader().LeftRows(connection, func(number uint64, value []byte) (err error) {
		if number == layout.LeftIdentity {
			found.identity = string(value)
			found.who, err = leave.DecodeIdentity(found.identity)
			return err
		}
		r, err := leave.Decode(number, string(value))
		if err == nil {
			_, err = r.Write()
		}
		if err != nil {
			found.spoilt = true
			problems = append(problems, fmt.Errorf("row %d of %s: %w", number, connection, err))
			return nil
		}
		rows = append(rows, r)
		return nil
	})
	if err == nil && found.identity == "" {
		err = errors.New("it has no identity")
	}
	if err != nil {
		return nil, fmt.Errorf("read what the connection %s has left: %w", connection, err)
	}
	found.list = leave.New(d.writer.limits.Leave, rows...)
	l := &Leaving{db: d}
	l.used.Store(true)
	l.left.Store(found)
	return l, errors.Join(problems...)
}
