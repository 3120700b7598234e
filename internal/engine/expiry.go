package engine

import (
	"bytes"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// This file deletes the children whose time is over, as .expireOn of the rules says.
//
// The rows of what expires are in the order of time. A step reads the first of them on a
// view, up to a bound, and hands their children in as one write. At its turn each child is
// judged again on the newest state: a time that was moved keeps the child, whatever the row
// says. So nothing goes early, and there is no race.

// Never is when nothing comes due.
const Never = math.MaxInt64

// An Expiry deletes what expires in one database. It serves one goroutine at a time.
type Expiry struct {
	db *Database
	// done are, for each index, the key before which no row is left that was there when
	// the last step looked. It spares a step from passing what the last ones deleted.
	done map[uint32][]byte
	// swept is where a sweep goes on, nil at its beginning, and mark the mark that it began
	// with.
	swept, mark []byte
}

// NewExpiry returns one that has looked at nothing yet.
func NewExpiry(d *Database) *Expiry { return &Expiry{db: d, done: make(map[uint32][]byte)} }

// Expired is what a step of an Expiry did.
type Expired struct {
	Deleted int   // how many children
	Next    int64 // when the next one comes due, Never if none does. It may be past.
	Oldest  int64 // when the first one was due that the step looked at, Never for none
}

// Note says that a commit has given times to children, of which the first is due then.
// Steps need not be told of what was committed before the first.
func (e *Expiry) Note(millis int64) {
	if millis == math.MinInt64 { // or before it
		clear(e.done)
		return
	}
	millis-- // it was rounded up
	for number, key := range e.done {
		if from := layout.DueAt(e.db.source.ID, number, millis); bytes.Compare(from, key) < 0 {
			e.done[number] = from
		}
	}
}

// Step deletes some of the children that are due, the oldest first. It must have been told
// of all commits that its view shows, or be told later.
func (e *Expiry) Step(ctx context.Context) (Expired, error) {
	found, err := e.find()
	if err != nil {
		return Expired{Next: found.next, Oldest: found.oldest}, state.Classify(err)
	}
	if len(found.keys) == 0 {
		return e.sweep(ctx, found.next)
	}
	request := Request{Who: auth.Identity{By: tree.ByExpiry}, expiring: &expiring{rows: found.rows, keys: found.keys}}
	commit, err := e.db.writer.write(ctx, request)
	if err != nil {
		return Expired{Next: found.oldest, Oldest: found.oldest}, err
	}
	for number, key := range found.done {
		e.done[number] = key
	}
	e.db.source.Metrics.Expired.Add(uint64(len(commit.Assignments)))
	return Expired{Deleted: len(commit.Assignments), Next: found.next, Oldest: found.oldest}, nil
}

// A dueList is what a step found.
type dueList struct {
	rows         []layout.DueRow
	keys         [][]byte
	bytes        int
	next, oldest int64
	done         map[uint32][]byte
}

// find lists rows that are due.
func (e *Expiry) find() (dueList, error) {
	view, published := e.db.view()
	defer view.Release()
	list := dueList{next: Never, oldest: Never, done: make(map[uint32][]byte)}
	if published.Dropped {
		return list, state.NoDatabase(e.db.source.Name)
	}
	maps.DeleteFunc(e.done, func(number uint32, _ []byte) bool { return published.Settings.List.Find(number) < 0 })
	reader := view.Tree(e.db.source.ID).Reader()
	now := e.db.source.Clock.Millis()
	for _, entry := range published.Settings.List.Entries {
		if !entry.Expires || entry.State == state.IndexDropping {
			continue
		}
		from := e.done[entry.Number]
		if from == nil {
			from = layout.DuePrefix(e.db.source.ID, entry.Number)
		}
		var bad error
		err := reader.EachDueRow(from, layout.DuePrefix(e.db.source.ID, entry.Number+1), func(key []byte) bool {
			var more bool
			more, bad = list.add(key, now, e.db.writer.limits)
			return more
		})
		if err == nil {
			err = bad
		}
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

// add adds a row if it is due and there is room for it. It reports whether to go on.
func (l *dueList) add(key []byte, now int64, limits *Limits) (bool, error) {
	row, err := layout.CutDueKey(key)
	if err != nil {
		return false, err
	}
	if row.Millis > now || len(l.rows) == limits.ExpireChildren || l.bytes > limits.ExpireBytes {
		l.next = min(l.next, row.Millis)
		return false, nil
	}
	l.oldest = min(l.oldest, row.Millis)
	l.rows, l.keys = append(l.rows, row), append(l.keys, bytes.Clone(key))
	l.bytes += len(key)
	l.done[row.Number] = append(bytes.Clone(key), 0)
	return true, nil
}

// An expiring is a request to delete what is due, of the children of some rows, and those
// of the rows that have no data.
type expiring struct {
	rows []layout.DueRow
	keys [][]byte // of the rows
	// swept, if not nil, is what the mark of a sweep says that ends with this.
	swept []byte

	stale [][]byte // the keys of the rows that go. It belongs to the writer.
}

// decideExpiry works out at its turn what is deleted: the children that are due now. A row
// stays only if its child has the time of the row, and is not due.
func (w *writer) decideExpiry(task *task) (Commit, error) {
	e, commit := task.request.expiring, Commit{}
	commit.Millis = w.db.source.Clock.Millis()
	reader := w.db.source.Store.Live(w.db.source.ID).Reader()
	var paths []tree.Path
	e.stale = nil
	for i, row := range e.rows {
		time, key, err := dueAgain(reader, w.settings.Indexes, row)
		if err != nil {
			return Commit{}, err
		}
		isDue := key != nil && layout.IsDue(time, commit.Millis)
		if isDue {
			paths = append(paths, row.Child)
		}
		if isDue || !bytes.Equal(key, e.keys[i]) {
			e.stale = append(e.stale, e.keys[i])
		}
	}
	commit.Write = deletion(paths)
	return commit, nil
}

// dueAgain looks at the time of a row's child. It returns the key of the row that the child
// should have, nil for none.
func dueAgain(reader seek.Reader, indexes *layout.Indexes, row layout.DueRow) (time query.Value, key []byte, err error) {
	due := indexes.Below(row.Child.Parent()).DueHere()
	i := slices.IndexFunc(due, func(x layout.Index) bool { return x.Number == row.Number })
	if i < 0 {
		return time, nil, nil // the rule is gone, and its rows go with it
	}
	time, err = reader.OrderValue(row.Child, due[i].Order)
	if err != nil || !time.IsNumber() {
		return time, nil, err
	}
	return time, layout.DueKey(nil, reader.ID, row.Number, time, row.Child), nil
}

// addTo adds to a batch that the rows go.
func (e *expiring) addTo(b *store.Batch, live store.Tree) error {
	if err := b.DropDue(e.stale); err != nil || e.swept == nil {
		return err
	}
	mark, err := live.Reader().SweepMark()
	if err != nil || !bytes.Equal(mark, e.swept) {
		return err // another commit has left rows meanwhile
	}
	return b.DropDue([][]byte{layout.SweepKey(b.ID)})
}

// deletion returns the write that deletes the nodes at some paths.
func deletion(paths []tree.Path) tree.Write {
	slices.SortFunc(paths, tree.Path.Compare)
	var w tree.Write
	for _, p := range paths {
		if n := len(w.Assignments); n > 0 && w.Assignments[n-1].Path.Contains(p) {
			continue // it goes with what it is in
		}
		w.Assignments = append(w.Assignments, tree.Assignment{Path: p})
	}
	switch len(w.Assignments) {
	case 0:
		return tree.Write{}
	case 1:
		w.At = w.Assignments[0].Path
		return w
	}
	w.At, w.Patch = w.Assignments[0].Path.Parent(), true
	for i := range w.Assignments {
		for !w.At.Contains(w.Assignments[i].Path) {
			w.At = w.At.Parent()
		}
	}
	for i := range w.Assignments {
		a := &w.Assignments[i]
		a.Name = w.At.Below(a.Path).String()[1:]
	}
	return w
}

// applyDue commits a request that deletes no data, but rows of what expires.
func (w *writer) applyDue(task *task) error {
	live := w.db.source.Store.Live(w.db.source.ID)
	batch := live.NewBatch()
	if err := task.request.expiring.addTo(batch, live); err != nil {
		batch.Close()
		return err
	}
	return w.db.source.Store.Commit(batch, task)
}

// dueOf returns when the Expiry must look at what a batch does, Never if it need not.
func dueOf(b *store.Batch) int64 {
	millis, ok := b.Due()
	switch {
	case b.LeavesDue():
		return math.MinInt64 // for the sweep
	case ok:
		return millis
	}
	return Never
}

// tellDue tells who deletes what expires of a commit that gave times to children.
func tellDue(d *Database, millis int64) {
	if o := d.source.Observers; o != nil && o.Due != nil && millis != Never {
		o.Due(d.source.Name, millis)
	}
}
