package deliver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
)

// This file sends what a queue has read, and decides what follows from the answers.

// start sends what can be sent, and reports whether it was refused a slot. If something is to be sent later, it makes wait smaller.
func (q *queue) start(wait *time.Duration) (refused bool) {
	h := q.hook.Load()
	q.heed(h)
	if !h.Sends() || h == q.gone || !q.mayStart() {
		return false
	}
	if q.isFailing() {
		return q.probe(h, wait)
	}
	for p := range q.ready(q.elapsed(), wait) {
		if q.sending >= q.limits().InFlight {
			return false // when one of them is done, this is called again
		}
		if !q.send(p, h) {
			return true
		}
	}
	return false
}

// probe is start for a hook whose deliveries fail: it sends one at a time, that which was made least often. So one that was never
// made does not wait for others that always fail. What an operator asks for does not wait for the end of the pause.
func (q *queue) probe(h *hook.Hook, wait *time.Duration) (refused bool) {
	if q.sending > 0 {
		return false
	}
	pause := q.resume - q.elapsed()
	var best *pending
	for p := range q.ready(q.elapsed(), wait) {
		if pause > 0 && p.kind != ofReplay {
			*wait = min(*wait, pause)
			continue
		}
		if best == nil || p.tries < best.tries {
			best = p
		}
	}
	return best != nil && !q.send(best, h)
}

// A body is a notice of which deliveries are under way. They share it, so it is read once, and counts once.
type body struct {
	bytes, each int64 // of the notice, and of each delivery beside it
	users       int

	once   sync.Once
	notice hook.Notice
	found  bool
}

// bodyOf returns the body that a delivery needs.
func (q *queue) bodyOf(p *pending) *body {
	h := q.held[p.position]
	switch {
	case p.kind == ofGap:
		return &body{}
	case h == nil:
		return &body{bytes: p.bytes, each: p.bytes}
	case h.body == nil:
		h.body = &body{bytes: h.bytes, each: 2 * h.largest}
	}
	return h.body
}

// send has a delivery made, if there is room.
func (q *queue) send(p *pending, h *hook.Hook) bool {
	b := q.bodyOf(p)
	bytes := b.each
	if b.users == 0 {
		bytes += b.bytes
	}
	if !q.base.runner.slots.take(q, q.sending, bytes) {
		return false
	}
	b.users++
	p.sending, p.body, p.gap, p.round = true, b, q.gap, q.round
	q.sending++
	go func() {
		r := result{of: p, hook: h}
		m, ok := q.messageOf(p, h)
		if r.missing = !ok; ok {
			r.outcome = q.base.runner.post(q.ctx, h, m)
		}
		q.results <- r
	}()
	return true
}

// putDown notes that a delivery is not under way any more.
func (q *queue) putDown(p *pending) {
	b := p.body
	bytes := b.each
	if b.users--; b.users == 0 {
		bytes += b.bytes
		if h := q.held[p.position]; h != nil && h.body == b {
			h.body = nil
		}
	}
	p.sending, p.body = false, nil
	q.sending--
	q.base.runner.slots.give(bytes)
}

// messageOf returns what is to be sent; ok is false if it is not there any more.
func (q *queue) messageOf(p *pending, h *hook.Hook) (m message, ok bool) {
	if p.kind == ofGap {
		return message{
			ID: fmt.Sprintf("msg_%x-%x-gap-%d-%d", q.base.epoch, h.Number, p.gap.first, p.gap.last), Hook: h.Name, Database: q.base.name,
			Event: eventGap, Time: q.base.runner.opts.Now().UnixMilli(), First: p.gap.first, Last: p.gap.last,
		}, true
	}
	b := p.body
	b.once.Do(func() {
		err := engine.Notices(q.base.database, h.Number, p.position, p.position, func(position uint64, row []byte) bool {
			n, err := hook.DecodeNotice(position, slices.Clone(row))
			b.notice, b.found = n, err == nil
			return false
		})
		b.found = b.found && err == nil
	})
	if !b.found || p.index >= b.notice.Deliveries() {
		return m, false
	}
	return messageOf(idOf(q.base.epoch, h.Number, p.position, p.index), q.base.name, h, &b.notice, p.index), true
}

// finish decides what follows from an attempt.
func (q *queue) finish(r result) {
	p := r.of
	q.putDown(p)
	if q.ctx.Err() != nil && !r.ok() {
		return // it was broken off
	}
	p.tries++
	p.here++
	isLost := false
	if !r.missing {
		q.note(p, r)
	}
	switch {
	case r.ok():
		q.recover()
		q.counts.delivered.Add(1)
		if q.remove(p); p.kind == ofGap {
			q.toldGap(p.gap, q.elapsed())
		}
	case p.kind != ofGap && p.position <= q.dropped:
		q.remove(p) // the receiver is told of the gap
	case r.missing:
		q.counts.skipped.Add(1)
		q.remove(p)
	case r.status == http.StatusGone && q.pauseHook(r.hook):
	case p.kind == ofReplay:
		q.counts.failed.Add(1)
		q.remove(p)
	case p.isOver(q.elapsed(), q.limits().RetryFor):
		q.fail(p, r)
		q.counts.failed.Add(1)
		q.lose(p, r)
		q.remove(p)
		isLost = p.kind == ofNotice
	default:
		q.fail(p, r)
		q.counts.retried.Add(1)
	}
	if asked := q.save(); isLost {
		q.holdBack(asked)
	}
}

var errRevised = errors.New("the hook is another now")

// pauseHook pauses the hook, as its receiver has said that it is gone, and reports whether that was done.
func (q *queue) pauseHook(sent *hook.Hook) bool {
	is := q.hook.Load()
	if is == q.gone {
		return true
	}
	_, err := engine.ReviseHook(q.ctx, q.base.database, sent.Name, func(h *hook.Hook) error {
		if h.Number != sent.Number || h.URL != sent.URL {
			return errRevised
		}
		if h.Paused == "" {
			h.Paused = hook.Gone
		}
		return nil
	})
	if err != nil {
		return false
	}
	q.gone = is // until the queue is given the hook that is paused, or one that was resumed since
	q.warn("a hook was paused: its receiver has answered 410")
	return true
}
