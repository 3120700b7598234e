package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// This file makes writes in groups, for databases that have a Log.
//
// The writer takes all that is queued. Each write is judged and built on the store with an
// overlay of those before it, and nothing of them is stored yet. Then the group is handed to
// the Log, and the writer waits for its fate. If that is Applied, the store has the group, and
// answers as it does without a Log. If it is Refused, all of it is as if it had not been: it is
// judged again, or sent to the home. If it is not known, clients are told so.
//
// Whatever is answered rests on what was judged. So refusals, and writes that change nothing,
// are parts of the group as well. If there is nothing else in it, they wait for a barrier, and
// are judged again if anybody else has written meanwhile.

// A base is the state of a database that a group begins with.
type base struct {
	position uint64
	begun    uint64 // see state.Published
	settings *state.Settings
	dropped  bool
}

// A grouping makes the groups of a database. But for what mu guards, it belongs to the writer
// goroutine.
type grouping struct {
	log     Log
	w       *writer
	overlay *store.Overlay

	group      *Group // that is being made
	bytes      int    // of its batches
	tasks      []*task
	departures []*departure
	tenure     uint64 // in which the writer was sure of base
	seen       uint64 // what followed then
	forgot     uint64 // where the writer was when it had to go back

	// mu is held while a group is judged, and while somebody else's commits are put into the
	// store. It guards the rest.
	mu sync.Mutex
	// base is the state after all that was handed to the store.
	base base
	// followed counts what others have judged.
	followed uint64
}

// newGrouping returns what makes the groups of a writer that was loaded.
func newGrouping(w *writer, log Log) *grouping {
	return &grouping{
		log: log, w: w, overlay: store.NewOverlay(w.db.source.Store, w.db.source.ID),
		base: base{w.position, w.begun, w.settings, false},
	}
}

// live returns the tree that writes are judged on at their turn.
func (w *writer) live() store.Tree {
	if w.group != nil {
		return w.group.overlay.Tree()
	}
	return w.db.source.Store.Live(w.db.source.ID)
}

// commit hands the batch of a task in. If it returns nil, the task is no longer the writer's.
func (w *writer) commit(b *store.Batch, t *task) error {
	g := w.group
	if g == nil {
		return w.db.source.Store.Commit(b, t)
	}
	g.overlay.Add(b)
	g.bytes += b.Rows.Len()
	g.add(b, t)
	return nil
}

// barrier hands a task in that is answered when all that it was judged on is durable.
func (w *writer) barrier(t *task) error {
	switch {
	case w.group == nil:
		return w.db.source.Store.Barrier(t)
	case t.submitted == nil && t.unsettled():
		t.Visible() // nothing is told to the client
		return nil
	}
	w.group.add(nil, t)
	return nil
}

func (g *grouping) add(b *store.Batch, t *task) {
	g.group.Parts = append(g.group.Parts, store.RecordPart{Batch: b, Ticket: t})
	g.tasks = append(g.tasks, t)
	g.departures = append(g.departures, t.departure)
}

// do makes all writes that were queued, in one group or in several.
func (g *grouping) do(ops []*task) {
	ops = slices.Clone(ops) // the queue's memory is used again
	for len(ops) > 0 {
		ops = g.round(ops)
	}
}

// round makes one group of the first writes. It returns those that are still to be made.
func (g *grouping) round(ops []*task) (left []*task) {
	tenure, home := g.log.Home(g.w.db.source.ID)
	if !home {
		giveUp(ops, errAway)
		return nil
	}
	if err := g.settle(tenure); err != nil {
		giveUp(ops, err)
		return nil
	}
	rest, ok := g.judge(ops)
	if !ok {
		return ops
	}
	return append(g.finish(), rest...)
}

// giveUp ends tasks that were not begun. Those of a chain behind the first of it are not decided
// either.
func giveUp(ops []*task, err error) {
	for _, t := range ops {
		if t.state.CompareAndSwap(taskQueued, taskTaken) {
			t.fail(err)
		}
	}
}

// fail answers a task that is not made.
func (t *task) fail(err error) {
	t.prepared.close()
	t.prepared = nil
	if s := t.submitted; s != nil && errors.Is(err, errAway) {
		s.chain.broken, err = true, ErrAgain
	}
	t.commit, t.err = Commit{}, err
	t.Visible()
}

// settle makes sure that the store has all that was committed before this node became the home,
// and goes on from there. It does nothing if that was done, and nobody else has written since.
func (g *grouping) settle(tenure uint64) error {
	followed := g.newest()
	if tenure == g.tenure && followed == g.seen {
		return nil
	}
	if err := g.await(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tenure, g.seen = tenure, followed // what came meanwhile makes another round
	g.goBack()
	return nil
}

// await waits for a barrier.
func (g *grouping) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), g.w.db.deadline)
	defer cancel()
	if err := g.log.Barrier(ctx, g.w.db.source.ID, 0); err != nil {
		return fault.Wrap(fault.Unavailable, err, "nothing was written: the nodes do not agree at present")
	}
	return nil
}

// goBack makes the writer go on from the base. The lock is held.
func (g *grouping) goBack() {
	w := g.w
	w.position, w.begun, w.settings, w.dropped = g.base.position, g.base.begun, g.base.settings, g.base.dropped
	w.memory.recent, w.memory.frontier = recent{position: w.position}, store.Frontier{}
	g.forgot = w.position
}

// hasForgotten reports whether it is not known what was touched since a position because the writer
// had to go back.
func (g *grouping) hasForgotten(since uint64) bool { return g != nil && since < g.forgot }

// judge judges writes until the group is large enough, and returns the others. It reports false if
// somebody else has written since the group was settled.
func (g *grouping) judge(ops []*task) (rest []*task, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.followed != g.seen {
		return ops, false
	}
	g.group = &Group{ID: g.w.db.source.ID, Base: g.w.position, Tenure: g.tenure, of: g, fate: make(chan Fate, 1)}
	for i, t := range ops {
		drop := t.drop
		if g.bytes > g.w.limits.GroupBytes || drop && len(g.tasks) > 0 {
			return ops[i:], true
		}
		if o := t.request.Origin; o != (Origin{}) && o.Tenure != g.tenure {
			giveUp(ops[i:i+1], errAway)
			continue
		}
		if t.state.CompareAndSwap(taskQueued, taskTaken) {
			g.group.Drop = drop
			g.w.do(t)
		}
		if drop {
			return ops[i+1:], true
		}
	}
	return nil, true
}

// finish hands the group over and returns the writes that are to be judged again.
func (g *grouping) finish() (again []*task) {
	group := g.group
	defer g.reset()
	if len(g.tasks) == 0 {
		return nil // all were cancelled
	}
	if !slices.ContainsFunc(group.Parts, func(p store.RecordPart) bool { return p.Batch != nil }) {
		return g.confirm()
	}
	group.next = base{g.w.position, g.w.begun, g.w.settings, g.w.dropped}
	g.log.Append(group)
	switch <-group.fate {
	case Applied:
		return nil // the tasks are the store's
	case Refused:
		return g.takeBack(nil)
	case Failed:
		return g.takeBack(group.err)
	}
	g.tenure = 0 // it may still be made
	return g.takeBack(errNotKnown)
}

// confirm answers writes that change nothing, unless somebody else may have written before.
func (g *grouping) confirm() (again []*task) {
	if err := g.await(); err != nil {
		return g.takeBack(err)
	}
	tenure, home := g.log.Home(g.w.db.source.ID)
	g.mu.Lock()
	stands := home && tenure == g.tenure && g.followed == g.seen
	g.mu.Unlock()
	if !stands {
		return g.takeBack(nil)
	}
	for _, t := range g.tasks {
		if err := g.w.db.source.Store.Barrier(t); err != nil {
			t.fail(err)
		}
	}
	return nil
}

// takeBack makes it so that the group was never judged. Its writes fail with an error; if that is
// nil, it returns those that can be judged again at once, and the others are made again by
// their clients.
func (g *grouping) takeBack(err error) (again []*task) {
	g.mu.Lock()
	g.goBack()
	g.mu.Unlock()
	for _, d := range slices.Backward(g.departures) {
		d.undo()
	}
	for _, t := range g.tasks {
		g.w.db.watches.Abandon(t.effect)
		_, isStep := t.request.revise.(indexStep)
		t.next, t.revision, t.departure, t.effect, t.due, t.told = nil, revision{}, nil, nil, dueNews{}, nil
		t.commit, t.err = Commit{}, nil
		switch {
		case err != nil:
			t.fail(err)
		case isStep: // its rows are used up
			t.fail(errUsedUp)
		case t.prepared != nil:
			t.fail(errRefused)
		default:
			t.state.Store(taskQueued)
			again = append(again, t)
		}
	}
	return again
}

// isHome reports whether this node is the home of the database. Without a Log it is.
func (g *grouping) isHome() bool {
	if g == nil {
		return true
	}
	_, home := g.log.Home(g.w.db.source.ID)
	return home
}

// enter returns when a task may be made here. Without a Log that is at once. The time of one that may have waited begins again.
func (g *grouping) enter(ctx context.Context, t *task) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	leave, err = g.log.Enter(ctx, t.deadline.C, g.w.db.source.ID, &t.request)
	if bytes := t.request.Bytes(); err == nil && bytes > g.w.limits.HeavyBytes {
		t.deadline.Reset(WaitFor(g.w.db.deadline, bytes))
	}
	return leave, err
}

// forward has the home make a request.
func (g *grouping) forward(ctx context.Context, req Request) (Commit, error) {
	if req.Here {
		return Commit{}, fault.Wrap(fault.Unknown, errAway, "the write is not confirmed")
	}
	return g.log.Forward(ctx, g.w.db.source.ID, req)
}

// standing returns what tells whether a refusal that is made from now on stands: nobody else has
// written before. Without a Log it does.
func (g *grouping) standing() func(ctx context.Context) bool {
	if g == nil {
		return func(context.Context) bool { return true }
	}
	id := g.w.db.source.ID
	was, home := g.log.Home(id)
	followed := g.newest()
	return func(ctx context.Context) bool {
		if !home || g.log.Barrier(ctx, id, 0) != nil {
			return false
		}
		is, home := g.log.Home(id)
		return home && is == was && g.newest() == followed
	}
}

func (g *grouping) newest() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.followed
}

// rest gives up the memory that is kept for the next group: there are many databases that nobody writes to.
func (g *grouping) rest() {
	g.overlay.Rest()
	g.tasks, g.departures = nil, nil
}

// reset frees what the group held.
func (g *grouping) reset() {
	g.overlay.Reset()
	for _, p := range g.group.Parts {
		if p.Batch != nil {
			p.Batch.Close()
		}
	}
	clear(g.tasks)
	clear(g.departures)
	g.group, g.bytes, g.tasks, g.departures = nil, 0, g.tasks[:0], g.departures[:0]
}
