package deliver

import (
	"slices"
	"time"

	"github.com/livetree/livetree/internal/hook"
)

// health is whether the receiver of a hook takes deliveries.
type health struct {
	// failed are locations whose deliveries have failed since the last success, one for each round: what began before the last
	// of them was noted says nothing new.
	failed map[uint64]bool
	round  int
	resume time.Duration // when something is sent again
	seen   *hook.Hook    // the hook as it was
	gone   *hook.Hook    // the hook as it was when its receiver said that it is gone
}

const (
	// manyFailures is how many locations fail until only one delivery is tried at a time.
	manyFailures = 3
	// maxFailed is how many are remembered. The pause does not grow any more by then.
	maxFailed = 40
)

// isFailing reports whether deliveries of several locations have failed, one after the other, and none was taken. One location whose
// deliveries always fail says nothing about others.
func (s *health) isFailing() bool { return len(s.failed) >= manyFailures }

// recover notes that a delivery was taken.
func (s *health) recover() { s.failed, s.resume = nil, 0 }

// fail has a delivery made again later, and perhaps others.
func (q *queue) fail(p *pending, r result) {
	now := q.elapsed()
	if p.round == q.round && !q.failed[p.location] && len(q.failed) < maxFailed {
		if q.failed == nil {
			q.failed = make(map[uint64]bool)
		}
		q.failed[p.location] = true
		q.round++
	}
	p.next = now + max(q.limits().pauseAfter(p.tries, q.limits().MaxPause), r.retryAfter)
	if q.isFailing() {
		q.resume = now + max(q.limits().pauseAfter(len(q.failed)-manyFailures+1, q.limits().MaxPause/10), r.retryAfter)
	}
}

// pauseAfter returns how long to wait after some failures: twice as long after each.
func (l *Limits) pauseAfter(failures int, longest time.Duration) time.Duration {
	wait := l.Pause
	for range min(max(failures-1, 0), 30) {
		if wait *= 2; wait >= longest {
			break
		}
	}
	return jitter(min(wait, longest))
}

// heed begins again if an operator has changed where the hook sends, or whether it does.
func (q *queue) heed(h *hook.Hook) {
	was := q.seen
	if q.seen = h; was == nil || was == h || was.URL == h.URL && was.Paused == h.Paused && slices.Equal(was.Secrets, h.Secrets) {
		return
	}
	q.recover()
	for _, p := range q.pending {
		p.next, p.age, p.since, p.here = 0, 0, q.elapsed(), 0
	}
	for _, l := range q.late { // what is taken up of them has their age
		l.age, l.since = 0, q.elapsed()
	}
}

// losses are deliveries that were given up and are not logged yet.
type losses struct {
	lost   int
	logged time.Duration
}

// lose notes that a delivery is given up. It is logged, at most once a minute.
func (q *queue) lose(p *pending, r result) {
	q.lost++
	now := q.elapsed()
	if q.logged > 0 && now-q.logged < time.Minute {
		return
	}
	q.warn("deliveries of a hook were given up", "deliveries", q.lost, "position", p.position, "tries", p.tries, "status", r.status, "problem", r.problem)
	q.lost, q.logged = 0, max(now, 1)
}
