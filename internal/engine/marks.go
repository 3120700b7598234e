package engine

import "sync/atomic"

// marks remember by user and first key whose writes were too heavy for their turn. To
// find that out takes a part of a turn, and longer where Pebble must load a long row: the
// next writes are prepared at once. They are guesses: different users may share a mark,
// and what is prepared in vain comes to the same.
type marks [64]atomic.Int32

// markedWrites is how many light writes it takes for a mark to be gone.
const markedWrites = 16

// mark returns the mark of a request; nil if it has none, as rules do not concern it.
func (m *marks) mark(req *Request) *atomic.Int32 {
	if m == nil || req.Who.Admin || req.revise != nil || req.changesRows() {
		return nil
	}
	first, _ := req.At.Cut()
	shape := uint32(0)
	for _, text := range [...]string{req.Who.Auth.Child("uid").Leaf().Text(), first} {
		for i := range len(text) {
			shape = shape*31 + uint32(text[i])
		}
	}
	return &m[shape%uint32(len(m))]
}

// has reports whether a request is to be prepared at once.
func (m *marks) has(req *Request) bool {
	mark := m.mark(req)
	return mark != nil && mark.Load() > 0
}

// prepared says whether a request that was prepared would have been too heavy for its turn.
// It makes no mark: what is large is prepared in any case.
func (m *marks) prepared(req *Request, heavy bool) {
	mark := m.mark(req)
	if mark == nil {
		return
	}
	left := mark.Load()
	switch {
	case left == 0:
	case heavy:
		mark.Store(markedWrites)
	default:
		mark.CompareAndSwap(left, left-1)
	}
}

// markHeavy marks a request that was too heavy for its turn. Few databases have marks.
func (w *writer) markHeavy(req *Request) {
	if w.marks.Load() == nil {
		w.marks.CompareAndSwap(nil, &marks{})
	}
	if mark := w.marks.Load().mark(req); mark != nil {
		mark.Store(markedWrites)
	}
}
