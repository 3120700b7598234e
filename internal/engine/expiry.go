package engine

import (
	"bytes"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
// view, up to a bound, and hands their children in, some at each turn of the writer. At its turn
// each child is judged again on the newest state: a time that was moved keeps the child, whatever
// the row says. So nothing goes early, and there is no race.
//
// Children that are near each other are in one row of data. So where very many are due, a step
// takes them in the order of data: each row is read and written once for several of them. The next
// step goes on behind, and begins again after the last: none waits for longer than one round.

// Never is when nothing comes due. Sweep is no time: rows are to be looked at that may have no data.
const (
	Never = math.MaxInt64
	Sweep = math.MinInt64
)

// An Expiry deletes what expires in one database. It serves one goroutine at a time.
type Expiry struct {
	db *Database
	// done are, for each index, the key before which no row is left that was there when
	// the last step looked. It spares a step from passing what the last ones deleted.
	done map[uint32][]byte
	// turn is which of the rules is looked at first.
	turn int
	// behind is the child, as its key names it, behind which the next step goes on.
	behind []byte
	// swept is where a sweep goes on, nil at its beginning, and mark the mark that it began
	// with. It makes no step before rested.
	swept, mark []byte
	rested      time.Time
}

// NewExpiry returns one that has looked at nothing yet.
func NewExpiry(d *Database) *Expiry { return &Expiry{db: d, done: make(map[uint32][]byte)} }

// Expired is what a step of an Expiry did.
type Expired struct {
	Deleted int   // how many children
	Next    int64 // when the next one comes due, Never if none does. It may be past.
	Oldest  int64 // when the first one was due that the step looked at, Never for none
	Again   int64 // when a sweep goes on, Never if there is none
}

// Note says that a commit has given times to children, of which the first is due then.
// Steps need not be told of what was committed before the first, nor of a Sweep.
func (e *Expiry) Note(millis int64) {
	switch {
	case millis == Sweep:
		return
	case millis <= earliest: // or before it
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

// Step deletes some of the children that are due: of one rule after the other, the oldest of each.
// It must have been told of all commits that its view shows, or be told later. While crowded says
// that others wait, it does little. At a node that is not the home of the database it does nothing: Moved tells
// Observers.Due when the node has become it.
func (e *Expiry) Step(ctx context.Context, crowded func() bool) (Expired, error) {
	if !IsHome(e.db) {
		return Expired{Next: Never, Oldest: Never, Again: Never}, nil
	}
	most := e.db.writer.limits.ExpireWindow
	if crowded() {
		most = e.db.writer.limits.ExpireChildren
	}
	found, err := e.find(most)
	if err != nil {
		return Expired{Next: found.next, Oldest: found.oldest, Again: Never}, state.Classify(err)
	}
	if len(found.keys) == 0 {
		return e.sweep(ctx, found.next)
	}
	found.order(e.behind)
	taken, deleted, err := e.delete(ctx, found.keys, crowded)
	if err != nil {
		return Expired{Deleted: deleted, Next: found.oldest, Oldest: found.oldest, Again: Never}, err
	}
	e.behind = childOf(found.keys[taken-1])
	e.done = found.doneWith(taken, e.done)
	if taken < len(found.keys) {
		found.next = found.oldest
	}
	return Expired{Deleted: deleted, Next: found.next, Oldest: found.oldest, Again: Never}, nil
}

const (
	// deletersAtOnce is how many turns of a step may be on their way: one waits for the disk while the
	// next is made.
	deletersAtOnce = 2
	// expiryRest is how many times as long as its turn took each of them rests after it while others
	// write, so that about half of the writer's time is left to them, however fast the disk is. It rests
	// longer if their requests take long.
	expiryRest = 2
	// longStep is how long a step goes on: then the other rules have their turn.
	longStep = time.Second
)

// delete hands in what a step found, in writes that each take little of the writer's time: those of
// others get their turns in between. It returns how many keys it came to, and how many children were
// deleted.
func (e *Expiry) delete(ctx context.Context, keys [][]byte, crowded func() bool) (taken, deleted int, err error) {
	turns := make(chan [][]byte)
	d := deleting{db: e.db}
	var failed atomic.Pointer[error]
	var workers sync.WaitGroup
	for range deletersAtOnce {
		workers.Go(func() {
			for turn := range turns {
				if err := d.turn(ctx, turn); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	limits, began := e.db.writer.limits, e.db.source.Clock.Now()
	for taken < len(keys) && failed.Load() == nil {
		if taken >= limits.ExpireChildren && (crowded() || e.db.source.Clock.Now().Sub(began) > longStep) {
			break
		}
		to := min(taken+limits.ExpireTurn, len(keys))
		turns <- keys[taken:to]
		taken = to
	}
	close(turns)
	workers.Wait()
	e.db.source.Metrics.Expired.Add(uint64(d.deleted.Load()))
	if failure := failed.Load(); failure != nil {
		err = *failure
	}
	return taken, int(d.deleted.Load()), err
}

// A dueList is what a step found.
type dueList struct {
	keys         [][]byte // of the rows
	bytes        int
	next, oldest int64
	done         map[uint32][]byte // as of an Expiry, when all keys are done with
}

// find lists at most so many rows that are due. It begins with another rule each time, so that one by
// which very many children are due does not keep those of the others.
func (e *Expiry) find(most int) (dueList, error) {
	view, published := e.db.view()
	defer view.Release()
	list := dueList{next: Never, oldest: Never, done: make(map[uint32][]byte)}
	if published.Dropped {
		return list, state.NoDatabase(e.db.source.Name)
	}
	maps.DeleteFunc(e.done, func(number uint32, _ []byte) bool { return published.Settings.List.Find(number) < 0 })
	reader := view.Tree(e.db.source.ID).Reader()
	now := e.db.source.Clock.Millis()
	rules := expiryRules(published.Settings.List)
	e.turn++
	for i := range rules {
		entry := rules[(e.turn+i)%len(rules)]
		from := e.done[entry.Number]
		if from == nil {
			from = layout.DuePrefix(e.db.source.ID, entry.Number)
		}
		var bad error
		var last []byte
		err := reader.EachDueRow(from, layout.DuePrefix(e.db.source.ID, entry.Number+1), func(key []byte) bool {
			var added []byte
			if added, bad = list.add(key, now, most, e.db.writer.limits.ExpireBytes); added != nil {
				last = added
			}
			return added != nil
		})
		if last != nil {
			list.done[entry.Number] = append(bytes.Clone(last), 0)
		}
		if err == nil {
			err = bad
		}
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

// expiryRules returns the indexes of what expires.
func expiryRules(list state.IndexList) (rules []state.IndexEntry) {
	for _, entry := range list.Entries {
		if entry.Expires && entry.State != state.IndexDropping {
			rules = append(rules, entry)
		}
	}
	return rules
}

// add adds the key of a row if it is due and there is room for it, and returns the list's own key,
// nil if it does not.
func (l *dueList) add(key []byte, now int64, most, mostBytes int) ([]byte, error) {
	millis, _, err := layout.CutDueTime(key)
	if err != nil {
		return nil, err
	}
	if millis > now || len(l.keys) == most || l.bytes > mostBytes {
		l.next = min(l.next, millis)
		return nil, nil
	}
	l.oldest = min(l.oldest, millis)
	l.keys = append(l.keys, bytes.Clone(key))
	l.bytes += len(key)
	return l.keys[len(l.keys)-1], nil
}

// childOf returns the part of a row's key that names its child.
func childOf(key []byte) []byte {
	_, child, _ := layout.CutDueTime(key) // it was taken apart before
	return child
}

// order puts the keys into the order of data, beginning with the first child behind one.
func (l *dueList) order(behind []byte) {
	slices.SortFunc(l.keys, func(a, b []byte) int { return bytes.Compare(childOf(a), childOf(b)) })
	first, _ := slices.BinarySearchFunc(l.keys, append(bytes.Clone(behind), 0), func(key, from []byte) int {
		return bytes.Compare(childOf(key), from)
	})
	l.keys = slices.Concat(l.keys[first:], l.keys[:first])
}

// doneWith returns the keys before which no row is left, of an Expiry that had done, after the first
// of the list's keys were taken.
func (l *dueList) doneWith(taken int, done map[uint32][]byte) map[uint32][]byte {
	for _, key := range l.keys[taken:] {
		number, _ := layout.DueNumber(key)
		if bytes.Compare(key, l.done[number]) < 0 {
			l.done[number] = key
		}
	}
	maps.Copy(done, l.done)
	return done
}

// An expiring is a request to delete what is due, of the children of some rows, and those
// of the rows that have no data.
type expiring struct {
	keys [][]byte // of the rows
	// swept, if not nil, is what the mark of a sweep says that ends with this.
	swept []byte

	// The rest belongs to the writer.

	stale [][]byte // the keys of the rows that go
	began time.Time
	took  time.Duration // of the writer's time
}

// decideExpiry works out at its turn what is deleted: the children that are due now. A row
// stays only if its child has the time of the row, and is not due.
func (w *writer) decideExpiry(task *task) (Commit, error) {
	e, commit := task.request.expiring, Commit{}
	commit.Millis = w.db.source.Clock.Millis()
	reader := w.live().Reader()
	var paths []tree.Path
	e.stale, e.began = nil, w.db.source.Clock.Now()
	for i := range e.keys {
		row, err := layout.CutDueKey(e.keys[i])
		if err != nil {
			return Commit{}, err
		}
		at, key, err := dueAgain(reader, w.settings.Indexes, row)
		if err != nil {
			return Commit{}, err
		}
		isDue := key != nil && layout.IsDue(at, commit.Millis)
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
func dueAgain(reader seek.Reader, indexes *layout.Indexes, row layout.DueRow) (at query.Value, key []byte, err error) {
	due := indexes.Below(row.Child.Parent()).DueHere()
	i := slices.IndexFunc(due, func(x layout.Index) bool { return x.Number == row.Number })
	if i < 0 {
		return at, nil, nil // the rule is gone, and its rows go with it
	}
	at, err = reader.OrderValue(row.Child, due[i].Order)
	if err != nil || !at.IsNumber() {
		return at, nil, err
	}
	return at, layout.DueKey(nil, reader.ID, row.Number, at, row.Child), nil
}

// addTo adds to a batch that the rows go.
func (e *expiring) addTo(b *store.Batch, live store.Tree, now time.Time) error {
	e.took = now.Sub(e.began)
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
	live := w.live()
	batch := live.NewBatch()
	if err := task.request.expiring.addTo(batch, live, w.db.source.Clock.Now()); err != nil {
		batch.Close()
		return err
	}
	return w.commit(batch, task)
}

// earliest is the first time that is told. A child may have one before it.
const earliest = Sweep + 1

// A dueNews is what the Expiry is to know of a commit.
type dueNews struct {
	first  int64 // when the first child is due that it gave a time, Never if there is none
	sweeps bool  // it left rows that have no data
}

func dueOf(b *store.Batch) dueNews {
	news := dueNews{Never, b.LeavesDue()}
	if millis, ok := b.Due(); ok {
		news.first = max(millis, earliest)
	}
	return news
}

// tellDue tells who deletes what expires of a commit, or that the database was dropped.
func tellDue(d *Database, news dueNews) {
	o := d.source.Observers
	if o == nil || o.Due == nil {
		return
	}
	if news.first != Never {
		o.Due(d.source.Name, news.first)
	}
	if news.sweeps {
		o.Due(d.source.Name, Sweep)
	}
}
