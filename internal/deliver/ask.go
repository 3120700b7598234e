package deliver

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
)

// This file answers what operators ask.

// A Stat is what a hook has done since the server was started, and what it has to do.
type Stat struct {
	Database string `json:"database"`
	Hook     string `json:"hook"`
	// Delivered were answered with 2xx, Failed were given up, Retried are attempts that are made again, Skipped
	// are commits that were dropped.
	Delivered uint64 `json:"delivered"`
	Failed    uint64 `json:"failed"`
	Retried   uint64 `json:"retried"`
	Skipped   uint64 `json:"skipped"`
	// Pending is how many deliveries were read and are not made, Bytes what is stored: for them and those after them, and of the last
	// ones that were made.
	Pending int64 `json:"pending"`
	Bytes   int64 `json:"bytes"`
	// Lag is how old the oldest commit is that is not delivered, in seconds.
	Lag float64 `json:"lag"`
	// Failing says that a delivery has failed, and none was taken since.
	Failing bool `json:"failing"`
}

func (q *queue) stat(now time.Time) Stat {
	s := Stat{
		Database: q.base.name, Hook: q.hook.Load().Name, Delivered: q.counts.delivered.Load(), Failed: q.counts.failed.Load(),
		Retried: q.counts.retried.Load(), Skipped: q.counts.skipped.Load(), Pending: q.counts.pending.Load(),
		Failing: q.counts.failing.Load(),
	}
	_, waiting := q.tally.sum()
	s.Bytes = max(waiting+q.kept.Load(), 0)
	if oldest := q.counts.oldest.Load(); oldest > 0 {
		s.Lag = max(now.Sub(time.UnixMilli(oldest)).Seconds(), 0)
	}
	return s
}

// Stats returns what all hooks have done, in the order of their names.
func (r *Runner) Stats() []Stat {
	now := r.opts.Now()
	var all []Stat
	for _, q := range r.queues() {
		all = append(all, q.stat(now))
	}
	slices.SortFunc(all, func(a, b Stat) int { return strings.Compare(a.Database+"/"+a.Hook, b.Database+"/"+b.Hook) })
	return all
}

// find returns the queue of a hook, nil if it is not running yet.
func (r *Runner) find(database string, number uint32) *queue {
	r.mu.RLock()
	b := r.bases[database]
	r.mu.RUnlock()
	if b == nil {
		return nil
	}
	return b.queue(number)
}

// Stat returns what a hook has done.
func (r *Runner) Stat(database string, h *hook.Hook) Stat {
	if q := r.find(database, h.Number); q != nil {
		return q.stat(r.opts.Now())
	}
	return Stat{Database: database, Hook: h.Name}
}

// Recent returns the last attempts of a hook, the newest first.
func (r *Runner) Recent(database string, h *hook.Hook) []Record {
	if q := r.find(database, h.Number); q != nil {
		return q.recent.newest()
	}
	return nil
}

// CheckURL reports why a hook cannot have a URL, or nil.
func (r *Runner) CheckURL(text string) error {
	u, err := hook.ParseURL(text)
	if err != nil {
		return err
	}
	return r.opts.Guard.CheckURL(u)
}

// Test sends a delivery that says that it is a test, once, and returns what became of it.
func (r *Runner) Test(ctx context.Context, d *engine.Database, h *hook.Hook) (Record, error) {
	if len(h.Secrets) == 0 {
		return Record{}, errNoSecret
	}
	now := r.opts.Now()
	m := message{ID: "msg_test-" + rand.Text(), Hook: h.Name, Database: d.Name(), Event: eventTest, Time: now.UnixMilli()}
	o := r.post(ctx, h, m)
	return Record{ID: m.ID, At: now.UTC(), Try: 1, Event: m.Event, Status: o.status, Problem: o.problem, Answer: o.answer, Millis: float64(o.took.Microseconds()) / 1000}, nil
}

var errNoSecret = fault.New(fault.Conflict, "the hook has no secret, as the database was restored from an archive without secrets: livetree hook rotate draws one")

// Replay makes a delivery again that was made before, as far as it is still stored: see Limits.Recent.
func (r *Runner) Replay(d *engine.Database, h *hook.Hook, id string) error {
	position, index, ok := parseID(id, d.Epoch(), h.Number)
	if !ok {
		return fault.New(fault.Invalid, "%.80q is not the id of a delivery of this hook", id)
	}
	var again *pending
	err := engine.Notices(d, h.Number, position, position, func(position uint64, row []byte) bool {
		n, err := hook.DecodeNotice(position, row)
		if err == nil && index < n.Deliveries() {
			again = &pending{position: position, index: index, location: locationsOf(&n)[index], kind: ofReplay, bytes: int64(len(row))}
		}
		return false
	})
	if err != nil {
		return err
	}
	q := r.find(d.Name(), h.Number)
	switch {
	case again == nil:
		return fault.New(fault.NotFound, "the delivery %s is not stored any more", id)
	case !h.Sends():
		return fault.New(fault.Conflict, "the hook is paused")
	case q == nil || !q.replay(again):
		return fault.New(fault.Unavailable, "the hook is busy, try again")
	}
	return nil
}

// replay has a delivery made once more, and reports whether there was room for it.
func (q *queue) replay(p *pending) bool {
	taken := make(chan bool, 1)
	asked := q.do(func() {
		room := q.loaded && len(q.pending) < 2*q.limits().Window
		if room {
			p.since = q.elapsed()
			q.pending = append(q.pending, p)
		}
		taken <- room
	})
	if !asked {
		return false
	}
	select {
	case ok := <-taken:
		return ok
	case <-q.ctx.Done():
		return false
	}
}
