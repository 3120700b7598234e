package engine

import (
	"context"
	"errors"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// maxAssignments bounds a PATCH: each of its paths is looked up at its turn.
const maxAssignments = 100_000

// A Request is a write as a client asks for it.
type Request struct {
	tree.Write
	// Push asks for a new child of At under a generated key, with the node of
	// the one assignment.
	Push bool
	// IfMatch, if not empty, is the ETag that the node at At must have, or its priority if the request
	// replaces only that.
	IfMatch string
	// Also are conditions on other locations, which hold at the same moment.
	Also []Condition
	// IfHash, if not nil, is the hash of package sdkhash that it must have.
	IfHash *string
	// Who asks.
	Who auth.Identity
	// Origin tells a request that was forwarded from all others. It is zero for one of this node.
	Origin Origin
	// Here says that this node makes the request, or none does: it is not sent to the home. If this node is not the home, that
	// is a fault.Unknown error, so that the client asks again, elsewhere.
	Here bool

	// revise, if set, makes this a change of settings.
	revise reviser
	// drop, if set, makes this the last commit of the database.
	drop bool
	// save, if set, is what becomes of the rows of hooks, and all that this does.
	save *hookSave
	// parting, if set, is what this does to what its connection has left to be written.
	parting *parting
	// expiring, if set, makes this a deletion of what is due.
	expiring *expiring
}

// changesRows reports whether the request may change rows without being a commit.
func (r *Request) changesRows() bool { return r.drop || r.save != nil || r.expiring != nil }

// author returns who makes the change.
func (r *Request) author() tree.Author {
	if p := r.parting; p != nil && p.makes > 0 {
		return tree.NewAuthor(tree.ByOnDisconnect, r.Who.UID())
	}
	return r.Who.Author()
}

// A Commit is what became of a request.
type Commit struct {
	// Change has the write as it was stored: server values resolved, and for a
	// push its path. Its position is 0 if there was nothing to do, or if it was
	// only simulated.
	tree.Change
	// Key is the generated key of a push.
	Key string
	// Revised is what a change of settings has found out; nil for all else.
	Revised *Revised
	// Trace shows the rules that were tried, for an identity that debugs. It is
	// there beside a refusal, too.
	Trace string
}

// Write commits a request, or refuses it. When it returns nil the change is
// durable and every later read shows it. A fault.Unknown error means that the
// change may still be committed; after any other error it never is.
func (d *Database) Write(ctx context.Context, req Request) (Commit, error) {
	if req.revise != nil {
		return d.writer.write(ctx, req) // the steps of an index are not what clients write
	}
	metrics := d.source.Metrics
	began := d.source.Clock.Now()
	metrics.Foreground.Begin()
	commit, err := d.writer.write(ctx, req)
	metrics.Foreground.End()
	metrics.CountWrite(commit.Position, err)
	if commit.Position > 0 {
		now := d.source.Clock.Now()
		metrics.Commits.Observe(now.Sub(began))
		if req.Bytes() <= d.source.HeavyBytes {
			metrics.Foreground.Observe(pause.Write, now, now.Sub(began))
		}
	}
	return commit, err
}

// write is Write without counting.
func (w *writer) write(ctx context.Context, req Request) (Commit, error) {
	if err := w.admit(req); err != nil {
		return Commit{}, err
	}
	if !w.group.isHome() {
		return w.group.forward(ctx, req)
	}
	task := w.newTask(req)
	defer task.free()
	commit, err := writeHere(ctx, w, task)
	if errors.Is(err, errAway) {
		return w.group.forward(ctx, req)
	}
	return commit, err
}

// writeHere makes a write at this node. It fails with errAway if another one is the home.
func writeHere(ctx context.Context, w *writer, task *task) (Commit, error) {
	leave, err := w.group.enter(ctx, task)
	if err != nil {
		return Commit{}, err
	}
	defer task.leaves(leave)
	task.gone, task.heavy = ctx.Done(), w.marks.Load().has(&task.request)
	for rounds := 0; rounds <= w.limits.MaxRounds; rounds++ {
		if ctx.Err() != nil { // what was not begun need not be
			return Commit{}, fault.Wrap(fault.Unavailable, context.Cause(ctx), "nothing was written: the client has gone")
		}
		if w.isHeavy(task) {
			w.needRecent(task)
			stands := w.group.standing()
			if trace, err := w.prepare(task); err != nil {
				if !stands(ctx) {
					continue
				}
				return Commit{Trace: trace}, state.Classify(err)
			}
		}
		if err := w.perform(ctx, task); err != nil {
			return Commit{}, err
		}
		if errors.Is(task.err, errAway) {
			return Commit{}, errAway
		}
		if !task.unsettled() {
			return task.commit, state.Classify(task.err)
		}
		if task.heavy = true; errors.Is(task.err, state.ErrHeavy) {
			w.markHeavy(&task.request)
		}
		if errors.Is(task.err, errRefused) {
			rounds-- // the data need not have changed
		}
	}
	return w.writeLate(ctx, task)
}

// isHeavy reports whether a task is to be prepared before its turn. Many small
// assignments are, too.
func (w *writer) isHeavy(task *task) bool {
	if p := task.request.parting; p != nil && p.isHeavy(p.of.left.Load().list, w.limits) {
		return true
	}
	return task.heavy || task.request.Bytes() > w.limits.HeavyBytes || len(task.request.Assignments) > w.limits.HeavyPaths
}

// writeLate ends a task that was prepared in vain too often. A small one, whose
// rules or paths made it heavy, is judged at its turn after all if they do not take very
// long.
func (w *writer) writeLate(ctx context.Context, task *task) (Commit, error) {
	task.err = errRefused
	for task.request.Bytes() <= w.limits.HeavyBytes && errors.Is(task.err, errRefused) { // until its deadline
		task.prepared.close()
		task.prepared, task.late = nil, true
		if err := w.perform(ctx, task); err != nil {
			return Commit{}, err
		}
		if errors.Is(task.err, errAway) {
			return Commit{}, errAway
		}
		if !task.unsettled() {
			return task.commit, state.Classify(task.err)
		}
	}
	return Commit{}, fault.New(fault.Unavailable, "the data at %s changes too often, try again", task.request.At)
}

// unsettled reports whether the task needs another round.
func (t *task) unsettled() bool {
	return errors.Is(t.err, state.ErrHeavy) || errors.Is(t.err, errStale)
}

// admit refuses what can be refused without looking at the data.
func (w *writer) admit(req Request) error {
	if n := len(req.Assignments); n > maxAssignments {
		return fault.New(fault.TooLarge, "%d paths in one PATCH: at most %d are allowed", n, maxAssignments)
	}
	if req.revise != nil {
		return state.Classify(w.db.source.Store.AdmitSettings())
	}
	if req.expiring != nil {
		return state.Classify(w.db.source.Store.AdmitStep(false))
	}
	if req.parting != nil {
		return state.Classify(req.parting.admit(w.db.source.Store, req.Write))
	}
	return state.Classify(w.db.source.Store.Admit(req.Write))
}

// perform queues a task and waits for its end, which is in task then.
func (w *writer) perform(ctx context.Context, task *task) error {
	if err := w.enqueue(task); err != nil {
		return err
	}
	task.shared = true
	var cause error
	select {
	case <-task.done:
		task.shared = false
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-task.deadline.C:
		cause = errDeadline
	}
	if task.state.CompareAndSwap(taskQueued, taskCancelled) {
		task.prepared.close() // nobody will use it, and the queue may have the task for long
		task.request, task.prepared = Request{}, nil
		return fault.Wrap(fault.Unavailable, cause, "nothing was written: the write had to wait too long")
	}
	select {
	case <-task.done: // it ended in the same moment
		task.shared = false
		return nil
	default:
		return fault.Wrap(fault.Unknown, cause, "the write is not confirmed")
	}
}

var errDeadline = errors.New("the deadline for writes has passed")

// enqueue hands a task to the writer goroutine, and starts or wakes it if
// need be.
func (w *writer) enqueue(task *task) error {
	task.state.Store(taskQueued)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.db.Standing()
	}
	if len(w.queue) >= w.limits.MaxQueued && !task.request.drop {
		return fault.New(fault.Unavailable, "too many writes are waiting, try again")
	}
	w.queue = append(w.queue, task)
	switch {
	case !w.running:
		if w.wake == nil {
			w.wake = make(chan struct{}, 1)
		}
		if w.memory == nil {
			w.memory = &memory{recent: recent{position: w.position}}
		}
		w.running = true
		w.goroutines.Go(w.run)
	case w.idle:
		w.idle = false
		w.wake <- struct{}{} // there is room: it was taken before the writer was idle
	}
	return nil
}

// do decides about a task and commits it. Whatever comes out is told when
// what it was decided on is durable.
func (w *writer) do(task *task) {
	task.commit, task.err = w.decideInChain(task)
	if task.err == nil && (task.commit.Position > 0 || task.request.changesRows() || task.departure.changes()) {
		err := w.apply(task)
		if err == nil {
			return // the task is the syncer's now, if not the client's again
		}
		task.commit, task.err = Commit{}, err
	} else if task.err == nil {
		task.departure.done()
	}
	if err := w.barrier(task); err != nil {
		task.commit, task.err = Commit{}, err
		task.Visible()
	}
}

// decide judges a task at its turn, on the live tree, or by what was
// prepared if that still holds.
func (w *writer) decide(task *task) (Commit, error) {
	var commit Commit
	switch {
	case w.dropped:
		return commit, state.NoDatabase(w.db.source.Name)
	case task.request.drop, task.request.save != nil:
		return commit, nil
	}
	if task.request.revise != nil {
		var err error
		if task.revision, err = task.request.revise.revise(w, w.settings); err != nil {
			return Commit{}, err
		}
		commit.Millis, commit.Settings, commit.Revised = w.db.source.Clock.Millis(), true, task.revision.told
	} else if task.request.hasWrite() {
		var err error
		if commit, err = w.decideWrite(task); err != nil {
			return commit, err
		}
	}
	var err error
	if task.departure, err = w.depart(task); err != nil {
		return Commit{Trace: commit.Trace}, err
	}
	if task.request.isLater() {
		return Commit{Trace: commit.Trace}, nil // it is not made now
	}
	if (len(commit.Assignments) > 0 && !task.request.Who.Simulate) || task.revision.rows != nil {
		commit.Position = w.position + 1
		commit.Author = task.request.author()
	}
	return commit, nil
}

// decideWrite decides about the write of a task.
func (w *writer) decideWrite(task *task) (Commit, error) {
	if task.request.expiring != nil {
		return w.decideExpiry(task)
	}
	if p := task.prepared; p != nil {
		switch {
		case !p.settings.PreparesLike(w.settings):
			return Commit{}, errStale
		case w.memory.recent.unchanged(p.position, &p.reads):
		case w.group.hasForgotten(p.position):
			return Commit{}, errRefused
		default:
			return Commit{}, errStale
		}
		return w.renewed(task)
	}
	turn := state.Effort{Steps: turnSteps, Bytes: w.limits.HeavyBytes, Once: true}
	if task.late {
		turn.Steps = lateTurnSteps
	}
	j, err := w.judge(store.BesideFrontier(w.live(), &w.memory.frontier), w.settings, task.request, turn)
	if err != nil {
		return Commit{Trace: j.Trace}, err
	}
	return j.Commit, nil
}

// judge decides about a request on a tree, in the order in which refusals are
// told: rules first, then the precondition. It changes nothing. If the effort is not
// enough it fails with state.ErrHeavy.
func (w *writer) judge(t store.Tree, settings *state.Settings, req Request, e state.Effort) (judgement, error) {
	var j judgement
	write := req.Write
	req.Who = w.heir(&req, settings)
	if req.Push {
		key, err := w.db.source.Clock.PushKey()
		if err != nil {
			return j, err
		}
		j.Key = key
		write = tree.Put(req.At.Child(key), req.Assignments[0].Node)
	}
	// Not before the key is made: no key may be ahead of the time of its commit,
	// which is all that the clock knows after a restart.
	j.Millis = w.db.source.Clock.Millis()
	var err error
	if j.Write, err = tree.Resolve(write, j.Millis, numbers{t}); err != nil {
		return j, err
	}
	began := w.db.source.Clock.Now()
	if !req.Who.Admin && e.Observe == nil {
		e.Witness = w.db.source.WitnessWrite(req.Write, req.Push)
	}
	decision, err := settings.AllowWrite(t, req.Who, j.Change, j.Key, e.Showing(write))
	if !req.Who.Admin && e.Observe == nil {
		w.db.source.Metrics.Judgements.Observe(w.db.source.Clock.Now().Sub(began))
		w.db.source.Metrics.CountJudgement(decision, err, &w.db.source.Metrics.DeniedWrites)
	}
	j.reads, j.usedKey, j.steps, j.Trace = decision.Reads, decision.UsedDrawn, decision.Steps, decision.Trace
	j.by = decision.Rule
	if err != nil {
		return j, err
	}
	// Whether an ETag matches tells about what is there. For those who may not read
	// that, none does.
	for _, p := range req.conditions() {
		read, err := settings.AllowRead(t, req.Who, p, j.Millis, e)
		j.reads, j.steps = append(j.reads, read.Reads...), j.steps+read.Steps
		if errors.Is(err, state.ErrDenied) {
			return j, errMismatch
		}
		if err != nil {
			return j, err
		}
	}
	return j, w.match(t, req, e)
}

// errStale says that the data changed under what was prepared.
var errStale = errors.New("the data changed meanwhile")
