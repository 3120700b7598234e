package deliver

import (
	"context"
	"hash/maphash"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/engine"
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
	bytes  atomic.Int64 // of notices that are stored, about
	news   atomic.Bool  // there may be notices that were not read
	wakes  chan struct{}
	calls  chan func() // run by its goroutine
	counts counts
	recent recent
	waits  bool // for a slot; guarded by the slots

	progress
	held     map[uint64]*heldNotice // notices that were read and are stored
	done     []uint64               // positions of those without pending deliveries, the oldest first
	kept     int64                  // bytes of those
	sending  int
	results  chan result
	failures int       // since the last success
	resume   time.Time // when something is sent again after failures
	loaded   bool
	trim     []uint64
}

// A heldNotice is a notice that was read.
type heldNotice struct {
	bytes  int64
	left   int // deliveries that are not done
	millis int64
}

// A result is what became of a delivery.
type result struct {
	of *pending
	outcome
	bytes int64
	// missing says that there was nothing to be sent any more.
	missing bool
}

func newQueue(b *base, h *hook.Hook) *queue {
	q := &queue{
		base: b, wakes: make(chan struct{}, 1), calls: make(chan func(), 16), results: make(chan result, b.runner.opts.Limits.InFlight+1),
		held: make(map[uint64]*heldNotice),
	}
	q.recent.size = b.runner.opts.Limits.Recent
	q.hook.Store(h)
	q.news.Store(true)
	q.ctx, q.stop = context.WithCancel(b.ctx)
	return q
}

func (q *queue) limits() *Limits { return &q.base.runner.opts.Limits }

func (q *queue) now() time.Time { return q.base.runner.opts.Now() }

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
	q.store(int64(mark.Bytes))
	q.news.Store(true)
	q.wake()
}

// store counts bytes of notices that are stored, or deleted if they are negative.
func (q *queue) store(bytes int64) {
	q.bytes.Add(bytes)
	q.base.runner.bytes.Add(bytes)
}

// run is the goroutine of the queue.
func (q *queue) run() {
	defer q.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for q.ctx.Err() == nil {
		wait := time.Hour
		if err := q.step(&wait); err != nil {
			if fault.KindOf(err) == fault.NotFound {
				return // it was dropped
			}
			q.base.runner.opts.Logger.Error("what a hook has to deliver cannot be read: it is tried again", "database", q.base.name, "hook", q.hook.Load().Name, "error", err)
			wait = 10 * time.Second
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

// end waits until nothing is under way any more.
func (q *queue) end() {
	q.stop()
	for q.sending > 0 {
		q.finish(<-q.results)
	}
	q.base.runner.bytes.Add(-q.bytes.Swap(0))
}

// step reads and sends what can be, and makes wait smaller if something is to be done then.
func (q *queue) step(wait *time.Duration) error {
	if !q.loaded {
		if err := q.load(); err != nil {
			return err
		}
		q.loaded = true
	}
	if err := q.fill(); err != nil {
		return err
	}
	q.start(wait)
	q.counts.note(q)
	return nil
}

// load reads how far the hook is.
func (q *queue) load() error {
	number := q.hook.Load().Number
	row, err := engine.HookProgress(q.base.database, number)
	if err != nil {
		return err
	}
	was, err := decodeProgress(row)
	if err != nil {
		q.base.runner.opts.Logger.Error("how far a hook is cannot be read: all that is stored is delivered again", "database", q.base.name, "hook", q.hook.Load().Name)
		was = progress{}
	}
	q.progress = progress{read: was.read, gap: was.gap}
	wanted := make(map[uint64][]*pending, len(was.pending))
	for _, p := range was.pending {
		wanted[p.position] = append(wanted[p.position], p)
	}
	total := int64(0)
	err = engine.Notices(q.base.database, number, 0, math.MaxUint64, func(position uint64, row []byte) bool {
		total += int64(len(row))
		if position > was.read {
			return true
		}
		n, err := hook.DecodeNotice(position, row)
		list := wanted[position]
		if err != nil || len(list) == 0 {
			q.trim = append(q.trim, position) // it was kept to be sent again on request
			total -= int64(len(row))
			return true
		}
		q.hold(&n, len(row), len(list))
		for _, p := range list {
			if p.index < n.Deliveries() {
				p.location = locationOf(&n, p.index)
				q.pending = append(q.pending, p)
			} else {
				q.held[position].left--
			}
		}
		return true
	})
	if err != nil {
		q.progress, q.held, q.trim = progress{}, make(map[uint64]*heldNotice), nil
		return err
	}
	q.addGap()
	q.store(total)
	if len(q.trim) > 0 {
		q.save()
	}
	return nil
}

// hold notes that a notice was read.
func (q *queue) hold(n *hook.Notice, bytes, left int) {
	q.held[n.Position] = &heldNotice{bytes: int64(bytes), left: left, millis: n.Millis}
}

// seed is that of the hashes of locations. Two locations with the same hash only wait for each other.
var seed = maphash.MakeSeed()

func locationOf(n *hook.Notice, index int) uint64 {
	if index == len(n.Changes) {
		return maphash.String(seed, "more of "+n.At.String())
	}
	return maphash.String(seed, n.Changes[index].Path.String())
}

// maxFill bounds how many bytes of notices are read at a time.
const maxFill = 1 << 20

// fill reads further notices, if there are some and there is room.
func (q *queue) fill() error {
	if len(q.pending) >= q.limits().Window || !q.news.Swap(false) {
		return nil
	}
	bytes, full := 0, false
	err := engine.Notices(q.base.database, q.hook.Load().Number, q.read+1, math.MaxUint64, func(position uint64, row []byte) bool {
		if full = len(q.pending) >= q.limits().Window || bytes > maxFill; full {
			return false
		}
		bytes += len(row)
		q.read = position
		n, err := hook.DecodeNotice(position, row)
		if err != nil {
			q.base.runner.opts.Logger.Error("a notice cannot be read: it is not delivered", "database", q.base.name, "hook", q.hook.Load().Name, "position", position)
			q.counts.skipped.Add(1)
			q.trim = append(q.trim, position)
			q.store(-int64(len(row)))
			return true
		}
		q.hold(&n, len(row), n.Deliveries())
		for i := range n.Deliveries() {
			q.pending = append(q.pending, &pending{position: position, index: i, location: locationOf(&n, i)})
		}
		return true
	})
	if full || err != nil {
		q.news.Store(true)
		if len(q.pending) < q.limits().Window {
			q.wake()
		}
	}
	if bytes > 0 {
		q.save()
	}
	return err
}

// save has it stored how far the hook is, and deletes what need not be kept.
func (q *queue) save() {
	limits := q.limits()
	for len(q.done) > 0 && (len(q.done) > limits.Recent || q.kept > limits.KeptBytes) {
		position := q.done[0]
		q.done = q.done[1:]
		if h := q.held[position]; h != nil {
			q.kept -= h.bytes
			q.store(-h.bytes)
			delete(q.held, position)
			q.trim = append(q.trim, position)
		}
	}
	q.base.keep(store.HookRow{Hook: q.hook.Load().Number, Progress: q.encode(), Trim: q.trim})
	q.trim = nil
}

// drop deletes the oldest notices, as many as have some bytes, and leaves a gap.
func (q *queue) drop(bytes int64) {
	if !q.loaded {
		return
	}
	dropped, first, last, notices := int64(0), uint64(0), uint64(0), 0
	err := engine.Notices(q.base.database, q.hook.Load().Number, 0, math.MaxUint64, func(position uint64, row []byte) bool {
		if first == 0 {
			first = position
		}
		last = position
		dropped += int64(len(row))
		if h := q.held[position]; h == nil || h.left > 0 {
			notices++
		}
		return dropped < bytes
	})
	if err != nil || last == 0 {
		return
	}
	q.pending = slices.DeleteFunc(q.pending, func(p *pending) bool { return p.kind != ofGap && !p.sending && p.position <= last })
	for position, h := range q.held {
		if position <= last {
			if h.left == 0 {
				q.kept -= h.bytes
			}
			delete(q.held, position)
		}
	}
	q.done = slices.DeleteFunc(q.done, func(position uint64) bool { return position <= last })
	q.read = max(q.read, last)
	if q.gap.last == 0 {
		q.gap.first = first
	}
	q.gap.last, q.gap.notices = last, q.gap.notices+notices
	q.addGap()
	q.store(-dropped)
	q.counts.skipped.Add(uint64(notices))
	q.base.runner.opts.Logger.Warn("a hook is too far behind: the oldest of what it has to deliver was dropped",
		"database", q.base.name, "hook", q.hook.Load().Name, "first", first, "last", last, "commits", notices)
	q.base.keep(store.HookRow{Hook: q.hook.Load().Number, Progress: q.encode(), Trim: q.trim, Last: last})
	q.trim = nil
	q.wake()
}

// toldGap notes that the receiver knows of a gap, which may have grown meanwhile.
func (q *queue) toldGap(told gap) {
	if q.gap.last == told.last {
		q.gap = gap{}
		return
	}
	q.gap.first, q.gap.notices = told.last+1, q.gap.notices-told.notices
	q.addGap()
}

// addGap has it delivered that there is a gap, if there is one.
func (q *queue) addGap() {
	if q.gap.last == 0 || slices.ContainsFunc(q.pending, func(p *pending) bool { return p.kind == ofGap && !p.sending }) {
		return
	}
	q.pending = slices.Insert(q.pending, 0, &pending{kind: ofGap, location: maphash.String(seed, "gap")})
}
