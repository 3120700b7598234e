package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
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
	// IfMatch, if not empty, is the ETag that the node at At must have.
	IfMatch string
	// Who asks.
	Who auth.Identity

	// revise, if set, makes this a change of settings. It is called at its turn.
	revise func(*settings) (revision, error)
}

// A Commit is what became of a request.
type Commit struct {
	// Change has the write as it was stored: server values resolved, and for a
	// push its path. Its position is 0 if there was nothing to do, or if it was
	// only simulated.
	tree.Change
	// Key is the generated key of a push.
	Key string
	// Trace shows the rules that were tried, for an identity that debugs. It is
	// there beside a refusal, too.
	Trace string
}

// Write commits a request, or refuses it. When it returns nil the change is
// durable and every later read shows it. A fault.Unknown error means that the
// change may still be committed; after any other error it never is.
func (d *Database) Write(ctx context.Context, req Request) (Commit, error) {
	began := d.opts.Clock.Now()
	commit, err := d.write(ctx, req)
	if req.revise != nil {
		return commit, err // the steps of an index are not what clients write
	}
	d.opts.Metrics.countWrite(commit, err)
	if commit.Position > 0 {
		d.opts.Metrics.Commits.Observe(d.opts.Clock.Now().Sub(began))
	}
	return commit, err
}

// write is Write without counting.
func (d *Database) write(ctx context.Context, req Request) (Commit, error) {
	if err := d.admit(req); err != nil {
		return Commit{}, err
	}
	op := d.newOperation(req)
	defer op.free()
	for range maxRounds + 1 {
		if ctx.Err() != nil { // what was not begun need not be
			return Commit{}, fault.Wrap(fault.Unavailable, context.Cause(ctx), "nothing was written: the client has gone")
		}
		if op.heavy || op.request.Bytes() > heavyBytes {
			if trace, err := d.prepare(op); err != nil {
				return Commit{Trace: trace}, classify(err)
			}
		}
		if err := d.perform(ctx, op); err != nil {
			return Commit{}, err
		}
		if !errors.Is(op.err, errHeavy) && !errors.Is(op.err, errStale) {
			return op.commit, classify(op.err)
		}
		op.heavy = true
	}
	return Commit{}, fault.New(fault.Unavailable, "the data at %s changes too often, try again", req.At)
}

// admit refuses what can be refused without looking at the data.
func (d *Database) admit(req Request) error {
	if n := len(req.Assignments); n > maxAssignments {
		return fault.New(fault.TooLarge, "%d paths in one PATCH: at most %d are allowed", n, maxAssignments)
	}
	return classify(d.store.Admit(req.Write))
}

// perform queues an operation and waits for its end, which is in op then.
func (d *Database) perform(ctx context.Context, op *operation) error {
	if err := d.enqueue(op); err != nil {
		return err
	}
	op.shared = true
	var cause error
	select {
	case <-op.done:
		op.shared = false
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-op.deadline.C:
		cause = errDeadline
	}
	if op.state.CompareAndSwap(opQueued, opCancelled) {
		op.prepared.close() // nobody will use it
		return fault.Wrap(fault.Unavailable, cause, "nothing was written: the write had to wait too long")
	}
	select {
	case <-op.done: // it ended in the same moment
		op.shared = false
		return nil
	default:
		return fault.Wrap(fault.Unknown, cause, "the write is not confirmed")
	}
}

var errDeadline = errors.New("the deadline for writes has passed")

// enqueue hands an operation to the writer goroutine, and starts or wakes it if
// need be.
func (d *Database) enqueue(op *operation) error {
	op.state.Store(opQueued)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return classify(store.ErrClosed)
	}
	if len(d.queue) >= maxQueued {
		return fault.New(fault.Unavailable, "too many writes are waiting, try again")
	}
	d.queue = append(d.queue, op)
	switch {
	case !d.running:
		if d.wake == nil {
			d.wake = make(chan struct{}, 1)
		}
		d.running = true
		d.writers.Go(d.run)
	case d.idle:
		d.idle = false
		d.wake <- struct{}{} // there is room: it was taken before the writer was idle
	}
	return nil
}

// do decides about an operation and commits it. Whatever comes out is told when
// what it was decided on is durable.
func (d *Database) do(op *operation) {
	op.commit, op.err = d.decide(op)
	if op.err == nil && op.commit.Position > 0 {
		err := d.apply(op)
		if err == nil {
			return // the operation is the syncer's now, if not the client's again
		}
		op.commit, op.err = Commit{}, err
	}
	if err := d.store.Barrier(op); err != nil {
		op.commit, op.err = Commit{}, err
		op.Visible()
	}
}

// decide judges an operation at its turn, on the live tree, or by what was
// prepared if that still holds.
func (d *Database) decide(op *operation) (Commit, error) {
	var commit Commit
	if op.request.revise != nil {
		var err error
		if op.revision, err = op.request.revise(d.settings); err != nil {
			return Commit{}, err
		}
		commit.Millis, commit.Settings = d.opts.Clock.Millis(), true
	} else if p := op.prepared; p != nil {
		if !p.settings.preparesLike(d.settings) || !d.recent.unchanged(p.position, p.reads) {
			return Commit{}, errStale
		}
		commit = p.commit
	} else {
		j, err := d.judge(d.store.Live(d.id), d.settings, op.request, heavyBytes)
		if err != nil {
			return Commit{Trace: j.Trace}, err
		}
		commit = j.Commit
	}
	if (len(commit.Assignments) > 0 && !op.request.Who.Simulate) || op.revision.rows != nil {
		commit.Position = d.position + 1
	}
	return commit, nil
}

// apply commits what was decided.
func (d *Database) apply(op *operation) error {
	if err := d.markVoid(&op.commit.Change); err != nil {
		return err
	}
	batch, err := d.build(op)
	if err != nil {
		return err
	}
	settings, err := d.settings.with(op.revision.rows)
	if err != nil {
		batch.Close()
		return err
	}
	op.next = &published{position: op.commit.Position, settings: settings}
	if op.revision.rows == nil {
		op.commit.Assignments = batch.Assignments()
	}
	if d.watches.count.Load() > 0 {
		op.effect = d.watches.observe(d.store.Live(d.id), op.commit.Change)
	}
	// Once the store has the ticket, the operation is no longer ours.
	change := op.commit.Change
	if err := d.store.Commit(batch, op); err != nil {
		op.next = nil
		return err
	}
	d.position, d.settings = change.Position, settings
	d.recent.add(change)
	return nil
}

// maxVoid is how many deletes of one change are looked at by markVoid.
const maxVoid = 1000

// markVoid marks the deletes of a change that delete nothing. Who reads the
// change log could not tell them: below a leaf they would seem to remove it.
func (d *Database) markVoid(c *tree.Change) error {
	copied := false
	left := maxVoid
	for i, a := range c.Assignments {
		if !a.Node.IsNull() || a.Priority {
			continue
		}
		if left--; left < 0 {
			break
		}
		exists, err := d.store.Live(d.id).Exists(a.Path)
		if err != nil {
			return err
		}
		if exists {
			continue
		}
		if !copied {
			c.Assignments, copied = slices.Clone(c.Assignments), true
		}
		c.Assignments[i].Void = true
	}
	return nil
}

func (d *Database) build(op *operation) (*store.Batch, error) {
	if op.revision.rows != nil {
		if step := op.revision.step; step != nil {
			defer step.Close()
		}
		return d.store.BuildSettings(d.id, op.commit.Change, op.revision.rows, op.revision.step)
	}
	var rows *store.Prepared
	if op.prepared != nil {
		rows = op.prepared.rows
	}
	return d.store.Build(d.id, op.commit.Change, d.settings.indexes, rows, &d.frontier)
}

// A judgement is what was decided about a request, and what that rests on.
type judgement struct {
	Commit
	reads []tree.Path
}

// judge decides about a request on a tree, in the order in which refusals are
// told: rules first, then the precondition. It changes nothing. It reads at most
// limit bytes of old data for the precondition, and fails with errHeavy if that
// is not enough.
func (d *Database) judge(t store.Tree, settings *settings, req Request, limit int) (judgement, error) {
	var j judgement
	w := req.Write
	if req.Push {
		key, err := d.opts.Clock.PushKey()
		if err != nil {
			return j, err
		}
		j.Key = key
		w = tree.Put(req.At.Child(key), req.Assignments[0].Node)
	}
	// Not before the key is made: no key may be ahead of the time of its commit,
	// which is all that the clock knows after a restart.
	j.Millis = d.opts.Clock.Millis()
	var err error
	if j.Write, err = tree.Resolve(w, j.Millis, t); err != nil {
		return j, err
	}
	began := d.opts.Clock.Now()
	decision, err := settings.allowWrite(t, req.Who, j.Write, j.Millis)
	if !req.Who.Admin {
		d.opts.Metrics.Judgements.Observe(d.opts.Clock.Now().Sub(began))
		d.opts.Metrics.countJudgement(decision, err, &d.opts.Metrics.DeniedWrites)
	}
	j.reads, j.Trace = decision.Reads, decision.Trace
	if err != nil {
		return j, err
	}
	if req.IfMatch == "" {
		return j, nil
	}
	// Whether an ETag matches tells about what is there. For those who may not read
	// that, none does.
	read, err := settings.allowRead(t, req.Who, req.At, j.Millis)
	j.reads = append(j.reads, read.Reads...)
	if errors.Is(err, errDenied) {
		return j, errMismatch
	}
	if err != nil {
		return j, err
	}
	tag, err := d.etag(t, req.At, limit)
	if err == nil && tag != req.IfMatch {
		err = errMismatch
	}
	return j, err
}

var errMismatch = fault.New(fault.Precondition, "the ETag does not match")

// errHeavy says that a write needs more work than its turn allows, errStale
// that the data changed under what was prepared.
var (
	errHeavy = errors.New("too much work for a write's turn")
	errStale = errors.New("the data changed meanwhile")
)
