package state

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/denials"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/store"
)

// Metrics are what the databases of a store count together. The zero value is
// ready.
type Metrics struct {
	// Commits is how long writes took that changed something, from their call to
	// their answer.
	Commits store.Durations
	// Foreground is how long small reads and writes take, by which work in the background
	// rests.
	Foreground pause.Foreground
	// Judgements is how long rules took to be judged, for one read or write.
	Judgements store.Durations
	// DeniedReads and DeniedWrites are what rules refused, OverBudget how often a
	// rule was given up because it did too much.
	DeniedReads, DeniedWrites, OverBudget atomic.Uint64
	// Denials lists what rules refuse, while somebody looks.
	Denials denials.Board

	// Overflows is how often a watch was too far behind, Resyncs how often one was
	// told anew what is there.
	Overflows, Resyncs atomic.Uint64

	// LeftWritten and LeftRefused are the writes that connections had left: those that were made
	// and those that were given up. LeftWaiting is how many connections that are gone have
	// some that could not be made yet.
	LeftWritten, LeftRefused atomic.Uint64
	LeftWaiting              atomic.Int64

	// Expired is how many children were deleted when their time was over, ExpiryFailures how
	// often that failed and was tried again.
	Expired, ExpiryFailures atomic.Uint64
	// Late, if set, returns in how many databases something is due that is not deleted yet,
	// and by how much the oldest of it is late. It is set before databases are opened.
	Late func() (databases int, by time.Duration)

	committed, unchanged, cancelled atomic.Uint64
	refused                         [fault.Unknown + 1]atomic.Uint64
}

// LateNow returns what Late does, and zeros if that is not set.
func (m *Metrics) LateNow() (databases int, by time.Duration) {
	if m.Late == nil {
		return 0, 0
	}
	return m.Late()
}

// Outcomes returns how many writes there were, by what became of them: committed,
// unchanged (there was nothing to do, or it was only simulated), cancelled by the
// client, or the kind of the fault.
func (m *Metrics) Outcomes() map[string]uint64 {
	counts := map[string]uint64{
		"committed": m.committed.Load(),
		"unchanged": m.unchanged.Load(),
		"cancelled": m.cancelled.Load(),
	}
	for kind := range m.refused {
		counts[fault.Kind(kind).String()] = m.refused[kind].Load()
	}
	return counts
}

// CountWrite counts the outcome of a write.
func (m *Metrics) CountWrite(position uint64, err error) {
	switch {
	case err == nil && position > 0:
		m.committed.Add(1)
	case err == nil:
		m.unchanged.Add(1)
	case errors.Is(err, context.Canceled):
		m.cancelled.Add(1)
	default:
		m.refused[fault.KindOf(err)].Add(1)
	}
}

// CountJudgement counts a decision; denied is the counter for it.
func (m *Metrics) CountJudgement(d rules.Decision, err error, denied *atomic.Uint64) {
	if fault.KindOf(err) == fault.Denied {
		denied.Add(1)
	}
	if d.OverBudget {
		m.OverBudget.Add(1)
	}
}
