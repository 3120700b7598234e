package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store/layout"
)

// This file makes what connections have left that are known by their rows alone: those of a
// former process, and those that are gone and whose writes could not be made.

// leftRunners is how many connections RunLeft works for at a time. One sync does for
// all of them.
const leftRunners = 128

// A LeftReport is told how RunLeft goes on. Its functions are called one at a time. One that is
// nil is not called.
type LeftReport struct {
	// Problem says why something could not be read or made.
	Problem func(error)
	// Kept names a connection that still has something left which may be made later, by RunAgain.
	Kept func(connection string)
	// Progress says what became of all writes so far. It is called now and then.
	Progress func(Made)
}

// RunLeft makes what connections of a former process have left, of all of them, in the memory
// that a page of them takes. It must be called before there is a Leaving in this process.
// Rows that cannot be read are kept, and so are writes that cannot be made. When the
// database takes no writes at all, RunLeft gives up soon.
func (d *Database) RunLeft(ctx context.Context, report LeftReport) (Made, error) {
	run := &leftRun{db: d, report: report, next: make(chan string)}
	running, stop := context.WithCancel(ctx)
	defer stop()
	run.stop = stop
	var runners sync.WaitGroup
	err := d.leftPages(ctx, func(page []string) {
		for run.runners < min(leftRunners, len(page)) {
			run.runners++
			runners.Go(func() { run.work(running) })
		}
		run.feed(running, page)
	})
	close(run.next)
	runners.Wait()
	return run.made, errors.Join(err, context.Cause(ctx))
}

// leftPages calls do with the connections that have left something, a page at a time, until ctx
// ends.
func (d *Database) leftPages(ctx context.Context, do func(page []string)) error {
	page := make([]string, 0, d.writer.limits.LeftPage)
	for after := ""; ctx.Err() == nil; after = page[len(page)-1] {
		var err error
		if page, err = d.leftConnections(after, page[:0]); err != nil || len(page) == 0 {
			return err
		}
		do(page)
	}
	return nil
}

// leftConnections appends the connections after a name that have left something, until the
// page is full.
func (d *Database) leftConnections(after string, page []string) ([]string, error) {
	view, published := d.view()
	defer view.Release()
	if published.Dropped {
		return nil, state.NoDatabase(d.source.Name)
	}
	err := view.Tree(d.source.ID).Reader().Left(after, func(connection string) bool {
		page = append(page, connection)
		return len(page) < cap(page)
	})
	return page, state.Classify(err)
}

// A leftRun is one RunLeft.
type leftRun struct {
	db      *Database
	stop    func()
	next    chan string // connections
	runners int

	mu     sync.Mutex
	made   Made
	report LeftReport
}

// feed hands connections to the runners. When those have stopped, the rest is kept.
func (run *leftRun) feed(running context.Context, page []string) {
	for _, connection := range page {
		select {
		case run.next <- connection:
		case <-running.Done():
			run.keep(connection)
		}
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.report.Progress != nil {
		run.report.Progress(run.made)
	}
}

// work runs what one connection after the other has left.
func (run *leftRun) work(ctx context.Context) {
	for connection := range run.next {
		if ctx.Err() != nil {
			run.keep(connection)
			continue
		}
		l, err := run.db.loadLeaving(connection)
		if err != nil {
			run.problem(err)
		}
		if l == nil {
			continue
		}
		made, err := l.Run(ctx)
		run.count(made)
		if err != nil && ctx.Err() == nil {
			run.problem(err)
		}
		if IsPostponed(err) {
			run.keep(connection)
		}
		if cannotGoOn(err) {
			run.stop()
		}
	}
}

func (run *leftRun) count(made Made) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.made.add(made)
}

func (run *leftRun) problem(err error) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.report.Problem != nil {
		run.report.Problem(err)
	}
}

func (run *leftRun) keep(connection string) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.report.Kept != nil {
		run.report.Kept(connection)
	}
}

// RunAgain makes what a connection that is gone has left, and could not be made: no request of
// its Leaving may be made any more. What Run made without knowing it is not made again. It must
// not be called twice at a time for one connection. One without a name has left nothing.
func (d *Database) RunAgain(ctx context.Context, connection string) (Made, error) {
	if connection == "" {
		return Made{}, nil
	}
	// When this is answered, every request before it was decided, and shows in the view.
	if err := d.NewLeaving().end(ctx); err != nil {
		return Made{}, err
	}
	l, err := d.loadLeaving(connection)
	if l == nil {
		return Made{}, err
	}
	made, runErr := l.Run(ctx)
	return made, errors.Join(runErr, err)
}

// HasRows reports whether the store has something that was left under the name of the connection.
func (l *Leaving) HasRows() (has bool, err error) {
	name := l.Connection()
	view, published := l.db.view()
	defer view.Release()
	if published.Dropped || len(name) != layout.ConnectionBytes {
		return false, nil
	}
	enough := errors.New("one is enough to know")
	err = view.Tree(l.db.source.ID).Reader().LeftRows(name, func(uint64, []byte) error {
		has = true
		return enough
	})
	if has {
		err = nil
	}
	return has, state.Classify(err)
}

// loadLeaving returns what a connection that is gone has left, nil if that cannot be known, or is
// nothing. Rows that cannot be read are left out; the error says which.
func (d *Database) loadLeaving(connection string) (*Leaving, error) {
	if len(connection) != layout.ConnectionBytes {
		return nil, fmt.Errorf("%q is not the name of a connection", connection) // its rows would be those of many
	}
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
	switch {
	case err != nil:
	case found.identity != "":
	case len(rows) == 0 && !found.spoilt:
		return nil, nil // all was made
	default:
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
