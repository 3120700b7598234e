package deliver

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
)

// This file sends what a queue has read, and decides what follows from the answers.

// manyFailures is after how many failures in a row only one delivery is tried at a time.
const manyFailures = 3

// start sends what can be sent. If something is to be sent later, it makes wait smaller.
func (q *queue) start(wait *time.Duration) {
	h := q.hook.Load()
	if !h.Sends() {
		return
	}
	now, limit := q.now(), q.limits().InFlight
	if q.failures >= manyFailures {
		limit = 1
		if q.resume.After(now) {
			*wait = min(*wait, q.resume.Sub(now))
			return
		}
	}
	busy := make(map[uint64]bool)
	for _, p := range q.pending {
		if q.sending >= limit {
			return // when one of them is done, this is called again
		}
		if p.sending || busy[p.location] {
			busy[p.location] = true
			continue
		}
		if later := time.UnixMilli(p.next).Sub(now); later > 0 {
			busy[p.location] = true
			*wait = min(*wait, later)
			continue
		}
		if !q.send(p, h) {
			return // it is woken when there is room
		}
		busy[p.location] = true
	}
}

// send has a delivery made, if there is room.
func (q *queue) send(p *pending, h *hook.Hook) bool {
	bytes := int64(0)
	if held := q.held[p.position]; held != nil {
		bytes = held.bytes
	}
	if !q.base.runner.slots.take(q, q.sending, bytes) {
		return false
	}
	p.sending = true
	q.sending++
	if p.first == 0 {
		p.first = q.now().UnixMilli()
	}
	p.gap = q.gap
	go func() {
		r := result{of: p, bytes: bytes}
		m, ok := q.messageOf(p, h)
		if r.missing = !ok; ok {
			r.outcome = q.base.runner.post(q.ctx, h, m)
		}
		q.results <- r
	}()
	return true
}

// messageOf reads what is to be sent; ok is false if it is not there any more.
func (q *queue) messageOf(p *pending, h *hook.Hook) (m message, ok bool) {
	if p.kind == ofGap {
		return message{
			ID: fmt.Sprintf("msg_%x-%x-gap-%d-%d", q.base.epoch, h.Number, p.gap.first, p.gap.last), Hook: h.Name, Database: q.base.name,
			Event: eventGap, Time: p.first, First: p.gap.first, Last: p.gap.last,
		}, true
	}
	err := engine.Notices(q.base.database, h.Number, p.position, p.position, func(position uint64, row []byte) bool {
		row = slices.Clone(row)
		n, err := hook.DecodeNotice(position, row)
		if ok = err == nil && p.index < n.Deliveries(); ok {
			m = messageOf(idOf(q.base.epoch, h.Number, position, p.index), q.base.name, h, &n, p.index)
		}
		return false
	})
	return m, ok && err == nil
}

// finish decides what follows from an attempt.
func (q *queue) finish(r result) {
	p := r.of
	p.sending = false
	q.sending--
	q.base.runner.slots.give(r.bytes)
	if q.ctx.Err() != nil && !r.ok() {
		return // it was broken off
	}
	now := q.now()
	p.tries++
	if !r.missing {
		q.note(p, r, now)
	}
	switch {
	case r.missing:
		q.counts.skipped.Add(1)
		q.remove(p)
	case r.ok():
		q.failures = 0
		q.counts.delivered.Add(1)
		q.remove(p)
		if p.kind == ofGap {
			q.toldGap(p.gap)
		}
	case r.status == http.StatusGone:
		q.pauseHook()
	case p.kind == ofReplay:
		q.counts.failed.Add(1)
		q.remove(p)
	case now.Sub(time.UnixMilli(p.first)) >= q.limits().RetryFor:
		q.counts.failed.Add(1)
		q.failures++
		q.remove(p)
	default:
		q.counts.retried.Add(1)
		q.failures++
		q.postpone(p, r, now)
	}
	q.save()
}

// postpone has a delivery made again later.
func (q *queue) postpone(p *pending, r result, now time.Time) {
	p.next = now.Add(max(q.pauseAfter(p.tries), r.retryAfter)).UnixMilli()
	q.resume = now.Add(max(q.pauseAfter(q.failures-manyFailures+1), r.retryAfter))
}

// pauseAfter returns how long to wait after some failures: twice as long after each.
func (q *queue) pauseAfter(failures int) time.Duration {
	wait := q.limits().Pause
	for range min(max(failures-1, 0), 30) {
		if wait *= 2; wait > q.limits().MaxPause {
			wait = q.limits().MaxPause
			break
		}
	}
	return jitter(wait)
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
	if h.left--; h.left == 0 {
		q.done = append(q.done, p.position)
		q.kept += h.bytes
	}
}

// pauseHook pauses the hook, as its receiver has said that it is gone.
func (q *queue) pauseHook() {
	name := q.hook.Load().Name
	paused, err := engine.ReviseHook(q.ctx, q.base.database, name, func(h *hook.Hook) error {
		if h.Paused == "" {
			h.Paused = hook.Gone
		}
		return nil
	})
	if err != nil {
		q.failures++
		q.resume = q.now().Add(q.pauseAfter(q.failures))
		return
	}
	q.hook.Store(paused)
	q.base.runner.opts.Logger.Warn("a hook was paused: its receiver has answered 410", "database", q.base.name, "hook", name)
}
