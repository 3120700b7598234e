package deliver

import (
	"math"
	"slices"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/store"
)

// This file drops notices when too much is stored, and has the receiver told of it.

// drop deletes the oldest notices that are not delivered, if too much is stored for all hooks, and leaves a gap. One
// queue drops at a time, so what is too much is known.
func (q *queue) drop() {
	r := q.base.runner
	r.shed.Lock()
	defer r.shed.Unlock()
	excess := r.excess()
	if !q.loaded || excess <= 0 {
		return
	}
	lost, bytes, err := q.oldest(excess + r.opts.Limits.Spool/16)
	if err != nil || lost.notices == 0 {
		return
	}
	q.leaveOut(lost.last)
	q.tally.add(-bytes)
	if q.gap.last == 0 {
		q.gap.first = lost.first
	}
	q.gap.last, q.gap.notices = lost.last, q.gap.notices+lost.notices
	q.addGap(q.elapsed())
	q.counts.skipped.Add(uint64(lost.notices))
	q.warn("a hook is too far behind: the oldest of what it has to deliver was dropped", "first", lost.first, "last", lost.last, "commits", lost.notices)
	q.holdBack(q.keep(store.HookRow{Last: lost.last}))
	q.wake()
	if r.excess() > 0 {
		r.signal() // it was not enough, or another has more now
	}
}

// oldest returns the range of the oldest notices that are not delivered, as many as have some bytes, and how many they have.
func (q *queue) oldest(want int64) (lost gap, bytes int64, err error) {
	err = engine.Notices(q.base.database, q.hook.Load().Number, q.dropped+1, math.MaxUint64, func(position uint64, row []byte) bool {
		q.tally.note(position, int64(len(row)))
		if !q.isOwed(position, row) {
			return true
		}
		if lost.first == 0 {
			lost.first = position
		}
		lost.last = position
		lost.notices++
		bytes += int64(len(row))
		return bytes < want
	})
	return lost, bytes, err
}

// isOwed reports whether deliveries of a notice that is stored are not done. It may be done, and even be about to be deleted.
func (q *queue) isOwed(position uint64, row []byte) bool {
	if h := q.held[position]; h != nil {
		return h.left > 0
	}
	if position > q.read {
		return true
	}
	if len(q.late) == 0 {
		return false
	}
	n, err := hook.DecodeNotice(position, row)
	return err == nil && q.lateAt(position, locationsOf(&n)) > 0
}

// leaveOut takes away all that is held of notices up to a position. What is under way of them is not made again.
func (q *queue) leaveOut(last uint64) {
	q.dropped, q.read = last, max(q.read, last)
	q.pending = slices.DeleteFunc(q.pending, func(p *pending) bool { return p.kind != ofGap && !p.sending && p.position <= last })
	for len(q.done) > 0 { // they are in the order in which they were done
		i := slices.IndexFunc(q.done, func(position uint64) bool { return position <= last })
		if i < 0 {
			break
		}
		q.kept.Add(-q.held[q.done[i]].bytes)
		q.done = slices.Delete(q.done, i, i+1)
	}
	for position := range q.held {
		if position <= last {
			delete(q.held, position)
		}
	}
	for _, l := range q.late {
		l.from = max(l.from, last+1)
	}
}
