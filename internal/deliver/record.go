package deliver

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Record is an attempt that was made.
type Record struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	Position uint64    `json:"position,omitempty"`
	Try      int       `json:"try"`
	// Event and Path are those of the message. A long path is cut, and ends in an ellipsis then.
	Event string `json:"event,omitempty"`
	Path  string `json:"path,omitempty"`
	// Status is that of the answer, 0 if there was none; then Problem says why.
	Status  int     `json:"status,omitempty"`
	Problem string  `json:"problem,omitempty"`
	Answer  string  `json:"answer,omitempty"`
	Millis  float64 `json:"ms"`
	Replay  bool    `json:"replay,omitempty"`
}

// recent holds the newest records of a hook.
type recent struct {
	size int

	mu   sync.Mutex
	list []Record // a ring
	next int
}

func (r *recent) add(record Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < r.size {
		r.list = append(r.list, record)
		return
	}
	r.list[r.next] = record
	r.next = (r.next + 1) % r.size
}

// newest returns the records, the newest first.
func (r *recent) newest() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Record, 0, len(r.list))
	for i := range r.list {
		list = append(list, r.list[(r.next+len(r.list)-1-i)%len(r.list)])
	}
	return list
}

// note records an attempt.
func (q *queue) note(p *pending, r result) {
	h := q.hook.Load()
	record := Record{
		ID: idOf(q.base.epoch, h.Number, p.position, p.index), At: q.base.runner.opts.Now().UTC(), Position: p.position, Try: p.tries, Event: r.event, Path: r.path, Status: r.status,
		Problem: r.problem, Answer: r.answer, Millis: float64(r.took.Microseconds()) / 1000, Replay: p.kind == ofReplay,
	}
	if p.kind == ofGap {
		record.ID, record.Position = eventGap, p.gap.last
	}
	q.recent.add(record)
}

// counts are what a queue has done since the server was started.
type counts struct {
	delivered, failed, retried, skipped atomic.Uint64
	pending                             atomic.Int64
	oldest                              atomic.Int64 // the time of the oldest commit that is not delivered, in milliseconds; 0 for none
	failing                             atomic.Bool
}

// note says what a queue has to do.
func (c *counts) note(q *queue) {
	c.pending.Store(int64(len(q.pending)))
	oldest := int64(0)
	for _, p := range q.pending {
		if h := q.held[p.position]; h != nil && p.kind == ofNotice && (oldest == 0 || h.millis < oldest) {
			oldest = h.millis
		}
	}
	c.oldest.Store(oldest)
	c.failing.Store(len(q.failed) > 0)
}
