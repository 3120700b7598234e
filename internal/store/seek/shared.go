package seek

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
)

// Shared is what all readers of a store share.
type Shared struct {
	// GapSteps is how many steps over deleted rows a seek may take before the gap
	// that it passed is remembered.
	GapSteps int
	// Flush asks for a flush in the background. Complete returns the number of the
	// first view that shows all commits that were begun before the call, Newest that
	// of the newest view. They are nil for an archive, which is read once: its
	// readers remember no gaps.
	Flush            func()
	Complete, Newest func() uint64

	// Ahead are the bounds of reading ahead; none is done with the zero value.
	Ahead      AheadBounds
	AheadReads atomic.Uint64 // rows that were read ahead
	ahead      atomic.Int64  // how many read ahead at this moment

	hints   hints
	gaps    gaps
	Steps   atomic.Uint64 // over rows and what is left of deleted ones
	careful atomic.Int32  // for how many rounds steppers are careful
}

// carefulRounds is for how many rounds of Calm steppers are careful after a dear step.
const carefulRounds = 60

// Calm ends a round. The store calls it about once in a second.
func (s *Shared) Calm() { s.careful.Store(max(0, s.careful.Load()-1)) }

// noteDear is called after a dear step or seek. It makes steppers careful, and asks
// for a flush.
func (s *Shared) noteDear() {
	s.careful.Store(carefulRounds)
	if s.Flush != nil {
		s.Flush()
	}
}

// CutGaps takes the rows that a batch sets out of the gaps of its database. It must
// run under the gate of the commits, before the batch is applied.
func (s *Shared) CutGaps(id layout.ID, batch *pebble.Batch) { s.gaps.cut(id, batch) }

// ForgetGaps drops what is known of a database that is gone.
func (s *Shared) ForgetGaps(id layout.ID) { s.gaps.forget(id) }
