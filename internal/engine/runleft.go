package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/pause"
)

// This file makes the writes that connections have left. Each is judged at its turn, with the
// identity of its connection, and is an ordinary commit, whose batch also deletes its row. So it is
// made once, wherever the process is killed, and also if it is not known whether it was made.

const (
	// leftTries is how often a write is tried that cannot be made now, leftPause how long the
	// first pause between two tries is. Each is four times as long as the one before.
	leftTries = 4
	leftPause = 100 * time.Millisecond
)

// Made counts what became of writes that were left.
type Made struct {
	Made    int // were committed
	Dropped int // were refused, by the rules for example, and are given up
	Kept    int // could not be made, and are still in the store
}

func (m *Made) add(other Made) {
	m.Made, m.Dropped, m.Kept = m.Made+other.Made, m.Dropped+other.Dropped, m.Kept+other.Kept
}

// Run makes what the connection has left, in order, as it has gone: nothing more can be left.
// A write that the rules deny is dropped, the others are made. One that cannot be made,
// for lack of space for example, is kept in the store, and the error says why. RunAgain, or
// RunLeft at the next start, makes it. It takes as long as the writes do. A second Run makes
// what the first has kept.
func (l *Leaving) Run(ctx context.Context) (Made, error) {
	if !l.used.Load() {
		return Made{}, nil
	}
	made, err := l.run(ctx)
	l.db.source.Metrics.LeftWritten.Add(uint64(made.Made))
	l.db.source.Metrics.LeftRefused.Add(uint64(made.Dropped))
	return made, err
}

func (l *Leaving) run(ctx context.Context) (made Made, err error) {
	err = l.end(ctx)
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

// Connection returns the name of the connection in the store, for RunAgain. It is empty if none was
// given and the connection has not left anything yet.
func (l *Leaving) Connection() string { return l.left.Load().name }

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

// IsPostponed reports whether the error of a Run, a RunAgain or a RunLeft says that what was
// kept may be made later: when there is space on the disk, or it keeps up again.
func IsPostponed(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Unknown, fault.ReadOnly:
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
