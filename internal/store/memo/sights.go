package memo

import (
	"sync/atomic"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A Sight is what one look-up of rules has found. They look the same up with each request of a person: whether he is a
// member, what his role is.
type Sight struct {
	Exists         bool // there is data
	Leaf, Priority tree.Leaf
	Cost           seek.Cost // what was read for it: rules are charged for that, also if it is known
}

// An Aspect is what a look-up was for.
type Aspect uint8

const (
	Existence Aspect = iota // Exists is known
	LeafThere               // Leaf and Priority are known
)

// A Lookup is a look-up of a path in a view. Of those that are remembered, Sight says what was found.
type Lookup struct {
	ID     layout.ID
	Path   tree.Path
	Aspect Aspect
	View   uint64

	hash uint32
}

const (
	// maxSight is how long path and texts of a sight may be together, sightBytes about what it takes beside them.
	maxSight   = 256
	sightBytes = 256
	// sightsShare is the part of the memory of memos that sights may take. They count as memos do, which go for them.
	sightsShare = 4
	// mostSightPlaces are looked through when a database is dropped.
	mostSightPlaces = 8 << 10
)

// A sightPlace has the sights of paths that share it, and hashes of look-ups that came once.
type sightPlace struct {
	asked asked
	known [4]atomic.Pointer[remembered]
	next  atomic.Uint32 // the one that is to make room, unless it was used
}

// makeSights makes room for as many sights as may take their part of the limit.
func (m *Memos) makeSights() {
	const placeBytes = int64(len(sightPlace{}.known)) * (sightBytes + maxSight)
	m.sights = make([]sightPlace, min(m.limit/sightsShare/placeBytes, mostSightPlaces))
}

// placeOf returns the place of a look-up whose hash is known, nil if no sights are remembered.
func (m *Memos) placeOf(l *Lookup) *sightPlace {
	if len(m.sights) == 0 {
		return nil
	}
	return &m.sights[l.hash%uint32(len(m.sights))]
}

// remembered is a sight as of a view.
type remembered struct {
	Lookup
	Sight
	used atomic.Bool // since another one asked for its room
}

func (r *remembered) isOf(l *Lookup) bool {
	return r != nil && r.Path == l.Path && r.ID == l.ID && r.Aspect == l.Aspect
}

// bytes returns about what a sight takes.
func (r *remembered) bytes() int64 {
	if r == nil {
		return 0
	}
	return int64(sightBytes + len(r.Path.String()) + len(r.Leaf.Text()) + len(r.Priority.Text()))
}

// Sight returns what a look-up finds, nil if that is not known.
func (m *Memos) Sight(l *Lookup) *Sight {
	var newest uint64
	newest, l.hash = m.stamps.Look(l.ID, l.Path)
	place := m.placeOf(l)
	if place == nil {
		return nil
	}
	for i := range place.known {
		if r := place.known[i].Load(); r.isOf(l) {
			if newest <= r.View && r.View <= l.View {
				if !r.used.Load() {
					r.used.Store(true)
				}
				return &r.Sight
			}
			return nil
		}
	}
	return nil
}

// KeepSight remembers what a look-up has found for which Sight knew nothing, if it came before.
func (m *Memos) KeepSight(l *Lookup, s Sight) {
	place := m.placeOf(l)
	if place == nil || len(l.Path.String())+len(s.Leaf.Text())+len(s.Priority.Text()) > maxSight {
		return
	}
	if !place.asked.again(uint64(l.hash)<<9 | uint64(l.Aspect)<<1 | 1) {
		return
	}
	if room := place.roomFor(l); room != nil {
		kept := &remembered{Lookup: *l, Sight: s}
		kept.Path, kept.Leaf, kept.Priority = l.Path.Clone(), s.Leaf.Clone(), s.Priority.Clone()
		m.countSights(kept.bytes() - room.Swap(kept).bytes())
	}
}

// countSights counts what sights take more, or less.
func (m *Memos) countSights(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shrink(bytes)
}

// roomFor returns where a look-up can be remembered, nil if all that is known there is in use, or newer.
func (p *sightPlace) roomFor(l *Lookup) *atomic.Pointer[remembered] {
	for i := range p.known {
		switch r := p.known[i].Load(); {
		case r == nil:
			return &p.known[i]
		case r.isOf(l) && r.View > l.View:
			return nil
		case r.isOf(l):
			return &p.known[i]
		}
	}
	oldest := &p.known[p.next.Add(1)%uint32(len(p.known))]
	if r := oldest.Load(); r != nil && r.used.Swap(false) {
		return nil
	}
	return oldest
}

// forgetSights drops the sights of a database.
func (m *Memos) forgetSights(id layout.ID) {
	var bytes int64
	for i := range m.sights {
		for k := range m.sights[i].known {
			known := &m.sights[i].known[k]
			if r := known.Load(); r != nil && r.ID == id && known.CompareAndSwap(r, nil) {
				bytes += r.bytes()
			}
		}
	}
	m.countSights(-bytes)
}
