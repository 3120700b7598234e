package seek

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// A Stepper walks rows, and gets over those that were deleted or rewritten very
// often.
//
// Before a flush, every version of a row is in the memtable, and a step to the
// next row passes them all: 100,000 versions took 9 ms. A seek over them takes
// microseconds. So the stepper looks at what a step cost; after a dear one it
// asks for a flush and goes on by seeks for a while.
//
// A seek does pass rows that were deleted. It jumps over the gaps that are known,
// and remembers the one that it had to pass. A step does so if it is careful: then it
// keeps the key that it begins at, which makes a read of many rows 5 % slower. That is
// so where gaps are known, and for a while after a dear step of any stepper.
type Stepper struct {
	*pebble.Iterator
	opts   pebble.IterOptions // with both bounds
	shared *Shared
	id     layout.ID
	view   uint64 // whose rows they are
	Cost   *Cost
	known  [][]extent // the gaps within the bounds
	// careful says that steps keep the key that they begin at.
	careful bool
	seeks   int // how many steps are still to be made by seeking; it is careful then
	taken   int // internal steps so far

	key, child []byte // scratch
}

const (
	dearStep      = 256 // versions passed in one step
	seeksPerDear  = 64
	nextsPerChild = 16 // steps inside a child before skip seeks
)

// Open makes s one over the rows of a reader between two keys.
func (s *Stepper) Open(r Reader, from, to []byte) (err error) {
	s.shared, s.id, s.view, s.Cost = r.Shared, r.ID, r.View, r.Cost
	s.opts.LowerBound, s.opts.UpperBound = from, to
	s.known = s.shared.gaps.of(s.id).in(from, to)
	s.careful = len(s.known) > 0 || s.shared.careful.Load() > 0
	s.Iterator, err = r.Source.NewIter(&s.opts)
	return damage.Mark(err)
}

// Close ends the walk.
func (s *Stepper) Close() error {
	s.shared.Steps.Add(uint64(s.Moved()))
	return s.Iterator.Close()
}

// Emptied returns a stepper that is over nothing yet, with the memory of s.
func (s *Stepper) Emptied() Stepper { return Stepper{key: s.key, child: s.child} }

// Copy returns a stepper over the same rows that is moved by itself.
func (s *Stepper) Copy() (*Stepper, error) {
	it, err := s.Clone(pebble.CloneOptions{})
	if err != nil {
		return nil, err
	}
	return &Stepper{Iterator: it, opts: s.opts, shared: s.shared, id: s.id, view: s.view, known: s.known, careful: s.careful}, nil
}

// CopyHere is Copy for a stepper that is at the row that s is at.
func (s *Stepper) CopyHere() (*Stepper, error) {
	other, err := s.Copy()
	if err != nil {
		return nil, err
	}
	other.SeekGE(s.Key())
	return other, nil
}

// Moved returns how many steps over rows, and over what is left of deleted ones, the
// iterator has taken.
func (s *Stepper) Moved() int {
	stats := s.Stats()
	return stats.ForwardStepCount[pebble.InternalIterCall] + stats.ReverseStepCount[pebble.InternalIterCall] +
		int(stats.InternalStats.PointsCoveredByRangeTombstones)
}

// SeekGE moves to the first row at or after a key.
func (s *Stepper) SeekGE(key []byte) bool { return s.SeekGEUpTo(key, nil) }

// First moves to the first row, Last to the last.
func (s *Stepper) First() bool { return s.SeekGE(s.opts.LowerBound) }
func (s *Stepper) Last() bool  { return s.SeekLT(s.opts.UpperBound) }

// SeekGEUpTo moves to the first row at or after a key, and before a limit if that is not
// nil.
func (s *Stepper) SeekGEUpTo(key, limit []byte) bool {
	key = latest(key, s.opts.LowerBound)
	found := s.jumpGE(key, limit)
	if steps := s.passed(); steps > s.shared.GapSteps && s.Error() == nil {
		end := earliest(s.opts.UpperBound, limit)
		if found {
			end = s.Key()
		}
		s.note(key, end, steps)
	}
	return found
}

// jumpGE is SeekGEUpTo, which goes over the gaps that are known.
func (s *Stepper) jumpGE(key, limit []byte) bool {
	for at := key; ; {
		g := s.gapFrom(at)
		if g == nil || limit != nil && bytes.Compare(g.from, limit) >= 0 {
			return s.SeekGEWithLimit(at, limit) == pebble.IterValid
		}
		if bytes.Compare(g.from, at) > 0 && s.SeekGEWithLimit(at, g.from) != pebble.IterAtLimit {
			return s.Valid()
		}
		at = g.to
	}
}

// gapFrom returns the first gap that ends after a key, nil if there is none.
func (s *Stepper) gapFrom(key []byte) *extent {
	for _, extents := range s.known {
		if g := inView(extents, s.view); g != nil && bytes.Compare(key, g.to) < 0 {
			return g
		}
	}
	return nil
}

// SeekLT moves to the last row before a key.
func (s *Stepper) SeekLT(key []byte) bool { return s.SeekLTDownTo(key, nil) }

// SeekLTDownTo moves to the last row before a key, and at or after a limit if that is not
// nil.
func (s *Stepper) SeekLTDownTo(key, limit []byte) bool {
	key = earliest(key, s.opts.UpperBound)
	found := s.jumpLT(key, limit)
	if steps := s.passed(); steps > s.shared.GapSteps && s.Error() == nil {
		start := latest(s.opts.LowerBound, limit)
		if found {
			start = append(bytes.Clone(s.Key()), 0)
		}
		s.note(start, key, steps)
	}
	return found
}

// jumpLT is SeekLTDownTo, which goes over the gaps that are known.
func (s *Stepper) jumpLT(key, limit []byte) bool {
	for at := key; ; {
		g := s.gapBefore(at)
		if g == nil || limit != nil && bytes.Compare(g.to, limit) <= 0 {
			return s.SeekLTWithLimit(at, limit) == pebble.IterValid
		}
		if bytes.Compare(g.to, at) < 0 && s.SeekLTWithLimit(at, g.to) != pebble.IterAtLimit {
			return s.Valid()
		}
		at = g.from
	}
}

// gapBefore returns the last gap that begins before a key, nil if there is none.
func (s *Stepper) gapBefore(key []byte) *extent {
	for i := len(s.known) - 1; i >= 0; i-- {
		if g := inView(s.known[i], s.view); g != nil && bytes.Compare(g.from, key) < 0 {
			return g
		}
	}
	return nil
}

// passed returns how many steps were taken since it was last asked.
func (s *Stepper) passed() int {
	before := s.taken
	s.taken = s.Moved()
	return s.taken - before
}

// note remembers that there is no row from a key up to another, which took steps.
func (s *Stepper) note(from, to []byte, steps int) {
	if s.shared.Complete == nil { // an archive
		return
	}
	if steps > dearStep {
		s.shared.noteDear()
	}
	s.shared.noteGap(s.id, extent{from, to, s.view}, s.view == Live, steps)
	s.known, s.careful = s.shared.gaps.of(s.id).in(s.opts.LowerBound, s.opts.UpperBound), true
}

// In reports whether the current row belongs to the node with a key.
func (s *Stepper) In(node string) bool {
	if !s.Valid() {
		return false
	}
	key := s.Key()
	return len(key) > len(node) && string(key[:len(node)]) == node && key[len(node)] != layout.SubtreeMark
}

// Step moves to the next row.
func (s *Stepper) Step() bool {
	s.Cost.Add(len(s.Key()))
	if s.careful {
		s.key = append(append(s.key[:0], s.Key()...), 0)
	}
	if s.seeks > 0 {
		s.seeks--
		return s.SeekGE(s.key)
	}
	ok := s.next()
	if s.passed() <= dearStep {
		return ok
	}
	s.shared.noteDear()
	s.seeks = seeksPerDear
	if s.careful {
		return s.SeekGE(s.key) // to the same row: that tells versions from deleted rows
	}
	s.careful = true
	return ok
}

// next moves to the next row, over a gap if there is one.
func (s *Stepper) next() bool {
	if len(s.known) > 0 {
		if g := s.gapFrom(s.key); g != nil && s.NextWithLimit(g.from) != pebble.IterAtLimit {
			return s.Valid()
		} else if g != nil {
			return s.jumpGE(g.to, nil)
		}
	}
	return s.Next()
}

// StepBack moves to the row before.
func (s *Stepper) StepBack() bool {
	s.Cost.Add(len(s.Key()))
	if s.careful {
		s.key = append(s.key[:0], s.Key()...)
	}
	if s.seeks > 0 {
		s.seeks--
		return s.SeekLT(s.key)
	}
	ok := s.previous()
	if s.passed() <= dearStep {
		return ok
	}
	s.shared.noteDear()
	s.seeks = seeksPerDear
	if s.careful {
		return s.SeekLT(s.key)
	}
	s.careful = true
	return ok
}

// previous moves to the row before, over a gap if there is one.
func (s *Stepper) previous() bool {
	if len(s.known) > 0 {
		if g := s.gapBefore(s.key); g != nil && s.PrevWithLimit(g.to) != pebble.IterAtLimit {
			return s.Valid()
		} else if g != nil {
			return s.jumpLT(g.from, nil)
		}
	}
	return s.Prev()
}

// BackOverChild moves before the child whose key is the first end bytes of the current
// row's, which is its last one.
func (s *Stepper) BackOverChild(end int) bool {
	if len(s.Key()) == end {
		return s.StepBack()
	}
	s.Cost.Add(len(s.Key()))
	s.child = append(s.child[:0], s.Key()[:end]...)
	return s.SeekLT(s.child)
}

// SkipChild moves past the child whose key is the first end bytes of the current
// row's. A few steps are cheaper than a seek, many are not. Of a child that is a
// chunk there is no other row.
func (s *Stepper) SkipChild(end int) bool {
	if len(s.Key()) == end {
		return s.Step()
	}
	s.child = append(s.child[:0], s.Key()[:end]...)
	for range nextsPerChild {
		if !s.Step() || !layout.Belongs(s.Key(), s.child) {
			return s.Valid()
		}
	}
	s.key = layout.SubtreeEnd(s.key[:0], s.child)
	return s.SeekGE(s.key)
}

// Stepper returns one over the subtree of a key.
func (r Reader) Stepper(key []byte) (*Stepper, error) {
	n := len(key)
	both := make([]byte, 0, 2*n+1)
	both = layout.SubtreeEnd(append(both, key...), key)
	return r.StepperIn(both[:n:n], both[n:])
}

// StepperIn returns one over the rows between two keys, which must not be
// changed while it is used.
func (r Reader) StepperIn(from, to []byte) (*Stepper, error) {
	s := &Stepper{}
	return s, s.Open(r, from, to)
}
