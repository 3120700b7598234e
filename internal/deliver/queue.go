package deliver

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/store"
)

// A queue delivers for one hook. All but what is shared belongs to its goroutine.
type queue struct {
	base *base
	ctx  context.Context //nolint:containedctx // of its goroutine and its deliveries
	stop context.CancelFunc

	// Shared.
	hook   atomic.Pointer[hook.Hook]
	tally  tally        // of notices that are not delivered
	kept   atomic.Int64 // bytes of those that are, and are still stored
	news   atomic.Bool  // there may be notices that were not read
	wakes  chan struct{}
	calls  chan func() // run by its goroutine
	counts counts
	recent recent
	isHeld atomic.Bool // it waits until something is stored

	progress
	held    map[uint64]*heldNotice // notices that are done or have pending deliveries
	sending int
	results chan result
	loaded  bool
	waits   bool // for a slot
	trim    []uint64
	dropped uint64 // notices up to here were dropped
	hold    uint64 // nothing is sent before this is stored
	health
	losses
}

// A heldNotice is a notice that was read.
type heldNotice struct {
	bytes   int64
	largest int64 // bytes of the largest of its changes
	millis  int64
	left    int   // pending deliveries
	skipped int   // deliveries of locations that were late then, and still are
	body    *body // while some are under way
}

// A result is what became of a delivery.
type result struct {
	of   *pending
	hook *hook.Hook // as it was when it was sent
	outcome
	// missing says that there was nothing to be sent any more.
	missing bool
}

func newQueue(b *base, h *hook.Hook) *queue {
	q := &queue{
		base: b, wakes: make(chan struct{}, 1), calls: make(chan func(), 16), results: make(chan result, b.runner.opts.Limits.InFlight+1),
		held: make(map[uint64]*heldNotice),
	}
	q.tally.total = &b.runner.bytes
	q.recent.size = b.runner.opts.Limits.Recent
	q.hook.Store(h)
	q.news.Store(true)
	q.ctx, q.stop = context.WithCancel(b.ctx)
	b.runner.count.Add(1)
	return q
}

func (q *queue) limits() *Limits { return &q.base.runner.opts.Limits }

// elapsed is the time by the clock that is never set.
func (q *queue) elapsed() time.Duration { return q.base.runner.opts.Elapsed() }

// warn logs something about the hook.
func (q *queue) warn(message string, args ...any) {
	args = append([]any{"database", q.base.name, "hook", q.hook.Load().Name}, args...)
	q.base.runner.opts.Logger.Warn(message, args...) //nolint:sloglint // every caller has a constant
}

// wake has the queue look at what there is to do.
func (q *queue) wake() {
	select {
	case q.wakes <- struct{}{}:
	default:
	}
}

// do has a function run by the goroutine of the queue, unless too many wait.
func (q *queue) do(f func()) bool {
	select {
	case q.calls <- f:
		return true
	default:
		return false
	}
}

// noted is told of a notice that can be read now.
func (q *queue) noted(mark hook.Mark) {
	q.tally.note(mark.Position, int64(mark.Bytes))
	q.news.Store(true)
	q.wake()
}

// run is the goroutine of the queue.
func (q *queue) run() {
	defer q.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for q.ctx.Err() == nil {
		wait := time.Hour
		if err := q.step(&wait); err != nil {
			if fault.KindOf(err) == fault.NotFound || q.ctx.Err() != nil {
				return // it was dropped, or is stopped
			}
			wait = stumble(q, err)
		}
		timer.Reset(wait)
		select {
		case <-q.wakes:
		case r := <-q.results:
			q.finish(r)
		case f := <-q.calls:
			f()
		case <-timer.C:
		case <-q.ctx.Done():
		}
	}
}

// stumble notes that a step has failed, and returns when to try again. Meanwhile the queue does not wait for a slot: others would wait for it.
func stumble(q *queue, err error) time.Duration {
	q.warn("what a hook has to deliver cannot be read: it is tried again", "error", err)
	q.base.runner.slots.leave(q)
	q.waits = false
	return 10 * time.Second
}

// end waits until nothing is under way any more.
func (q *queue) end() {
	q.stop()
	q.base.runner.slots.leave(q)
	for q.sending > 0 {
		q.finish(<-q.results)
	}
	if q.loaded {
		q.save()
	}
	q.tally.end()
	q.base.runner.count.Add(-1)
}

// step reads and sends what can be, and makes wait smaller if something is to be done then.
func (q *queue) step(wait *time.Duration) error {
	if !q.loaded {
		if err := q.load(); err != nil {
			return err
		}
		q.loaded = true
	}
	if err := q.catchUp(); err != nil {
		return err
	}
	if err := q.fill(); err != nil {
		return err
	}
	refused := q.start(wait)
	if refused {
		*wait = min(*wait, time.Second) // it is woken when there is room, and looks by itself as well
	} else if q.waits {
		q.base.runner.slots.leave(q)
	}
	q.waits = refused
	q.counts.note(q)
	return nil
}

// remove takes a delivery away that is done, or given up.
func (q *queue) remove(p *pending) {
	if i := slices.Index(q.pending, p); i >= 0 {
		q.pending = slices.Delete(q.pending, i, i+1)
	}
	h := q.held[p.position]
	if h == nil || p.kind != ofNotice {
		return
	}
	if h.left--; h.left > 0 {
		return
	}
	if h.skipped > 0 { // it is read again for those
		delete(q.held, p.position)
		return
	}
	q.done = append(q.done, p.position)
	q.kept.Add(h.bytes)
	q.tally.add(-h.bytes)
}

// holdBack has nothing be sent before it is stored that something was given up, as save has asked for: after a crash
// it would be delivered after all, and behind what came after it.
func (q *queue) holdBack(asked uint64) {
	q.hold = asked
	q.isHeld.Store(true)
}

// mayStart reports whether nothing is to be stored first.
func (q *queue) mayStart() bool {
	if q.isHeld.Load() && q.base.isStored(q.hold) {
		q.isHeld.Store(false)
	}
	return !q.isHeld.Load()
}

// save has it stored how far the hook is, and deletes what need not be kept. It returns what base.isStored is to be asked.
func (q *queue) save() (asked uint64) {
	maxKept := q.base.runner.maxKept()
	for len(q.done) > 0 && (len(q.done) > q.limits().Recent || q.kept.Load() > maxKept) {
		q.trimDone()
	}
	return q.keep(store.HookRow{})
}

// trimDone deletes the oldest notice that is done.
func (q *queue) trimDone() {
	position := q.done[0]
	q.done = q.done[1:]
	q.kept.Add(-q.held[position].bytes)
	delete(q.held, position)
	q.trim = append(q.trim, position)
}

// keep has a row of the hook stored soon, with how far it is.
func (q *queue) keep(row store.HookRow) (asked uint64) {
	is := progressRow{progress: q.progress}
	is.last, is.bytes = q.tally.sum()
	row.Hook, row.Progress, row.Trim = q.hook.Load().Number, is.encode(q.elapsed()), q.trim
	q.trim = nil
	return q.base.keep(row)
}
