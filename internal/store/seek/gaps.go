package seek

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
)

// A gap is a range of keys that holds no row, but what is left of deleted ones.
//
// Pebble keeps a deleted row as a tombstone until a compaction has met all that it
// deletes, and in the memtable the row itself as well. A seek passes them one by
// one: after 20,000 deletes from the front of a collection the first look at it took
// 9 ms. So a read that had to pass many remembers the gap, and later ones jump over
// it. What a read passes is then what was deleted since a read was last there, and
// not all that ever was.
//
// A gap that a view showed holds in later views too, as long as no write puts a row
// in it: a commit cuts the gaps that it writes into before any view can show the row.
// There is one catch: a reader finds a gap in its view, while writes that the view
// does not show are under way. So a read first has the place watched. When its view
// shows all that was committed before the watch began, or that of a later read does,
// what is empty in it is a gap, cut at what was written since. The writer of a
// database needs no watch: what it finds live is so.
type gaps struct{ shards [64]gapShard }

const (
	// maxGaps is how many gaps are kept of the databases of a shard.
	maxGaps = 32
	// maxGapKey bounds the keys that are kept: gaps at the longest keys of all are
	// not remembered.
	maxGapKey = 512
	// maxGapRows is how many rows that a commit sets are compared with the gaps; one
	// that sets more ends them.
	maxGapRows = 1000
)

// A gapShard holds the gaps of some databases.
type gapShard struct {
	// known are the extents of the gaps, in the order of their keys: what readers use.
	// It is nil if there are none, and is never changed, only replaced.
	known    atomic.Pointer[[][]extent]
	watching atomic.Bool // gaps is not empty

	mu   sync.Mutex
	gaps []*gap
}

// An extent says that no row is from a key up to another in the views from a number on.
type extent struct {
	from, to []byte
	view     uint64
}

// A gap is what is known about a place, and what was written around it.
type gap struct {
	// extents are those of one gap as it grew: later ones are wider and hold from later
	// views on. Those that every new view has outgrown are dropped: with one group that
	// is synced and one that is open, three are left at most. There are none while the
	// place is only watched.
	extents []extent
	// anchor is where the gap begins. No commit that the view with the number since
	// does not show put a row between floor and ceiling, which are around the anchor;
	// an empty one is no bound.
	anchor, floor, ceiling []byte
	since                  uint64
	steps                  int // that seeks took here
}

func (g *gaps) of(id layout.ID) *gapShard { return &g.shards[id%layout.ID(len(g.shards))] }

// in returns the extents of the gaps that overlap a range of keys.
func (h *gapShard) in(from, to []byte) [][]extent {
	known := h.known.Load()
	if known == nil {
		return nil
	}
	all := *known
	first, _ := slices.BinarySearchFunc(all, from, func(m []extent, key []byte) int {
		return compareOrLess(widest(m).to, key)
	})
	all = all[first:]
	past, _ := slices.BinarySearchFunc(all, to, func(m []extent, key []byte) int {
		return bytes.Compare(widest(m).from, key)
	})
	return all[:past]
}

// compareOrLess compares two keys, and takes equal ones for less.
func compareOrLess(a, b []byte) int {
	if bytes.Compare(a, b) <= 0 {
		return -1
	}
	return 1
}

func widest(extents []extent) *extent { return &extents[len(extents)-1] }

// inView returns the widest of the extents that holds in a view, nil if none does.
func inView(extents []extent, view uint64) *extent {
	for i := len(extents) - 1; i >= 0; i-- {
		if extents[i].view <= view {
			return &extents[i]
		}
	}
	return nil
}

// noteGap remembers that a seek took many steps, because no row is from a key up to
// another. Live says that this was found in the live tree, otherwise in a view.
func (s *Shared) noteGap(id layout.ID, found extent, live bool, steps int) {
	if len(found.from) > maxGapKey || len(found.to) > maxGapKey || bytes.Compare(found.from, found.to) >= 0 {
		return
	}
	h := s.gaps.of(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.touching(found)
	watched := g != nil
	if !watched {
		if g = h.watch(found, steps); g == nil {
			return
		}
	}
	complete := s.Complete() // after the watch began, which commits look for
	if !watched {
		g.since = complete
	}
	switch {
	case live:
		found.view = complete
	case found.view < g.since || len(g.extents) > 0 && found.view < widest(g.extents).view:
		return // a later view will tell
	default:
		found.from, found.to = latest(found.from, g.floor), earliest(found.to, g.ceiling)
	}
	if watched {
		g.steps += steps
	}
	g.floor, g.ceiling, g.since = g.floor[:0], g.ceiling[:0], complete
	h.widen(g, found, s.Newest())
}

// touches reports whether a gap overlaps a range, or adjoins it.
func (g *gap) touches(m extent) bool {
	from, to := g.anchor, g.anchor
	if len(g.extents) > 0 {
		from, to = widest(g.extents).from, widest(g.extents).to
	}
	return bytes.Compare(from, m.to) <= 0 && bytes.Compare(m.from, to) <= 0
}

// touching returns a gap that a range belongs to, nil if there is none.
func (h *gapShard) touching(m extent) *gap {
	for _, g := range h.gaps {
		if g.touches(m) {
			return g
		}
	}
	return nil
}

// watch adds a place without an extent. If there are too many, the one goes that has
// taken the fewest steps; nil says that all have taken more than this one.
func (h *gapShard) watch(m extent, steps int) *gap {
	g := &gap{anchor: bytes.Clone(m.from), steps: steps}
	if len(h.gaps) < maxGaps {
		h.gaps = append(h.gaps, g)
		h.watching.Store(true)
		return g
	}
	least := 0
	for i := range h.gaps {
		if h.gaps[i].steps < h.gaps[least].steps {
			least = i
		}
	}
	if h.gaps[least].steps > steps {
		h.gaps[least].steps /= 2 // so that an old one makes way at last
		return nil
	}
	h.gaps[least] = g
	h.publish()
	return g
}

// widen adds to a gap what was found empty, and takes in the other gaps that it
// touches then. Shown is the number of the newest view.
func (h *gapShard) widen(g *gap, found extent, shown uint64) {
	if bytes.Compare(found.from, found.to) >= 0 || !g.touches(found) {
		return // writes since the watch began left nothing of it
	}
	found.from, found.to = bytes.Clone(found.from), bytes.Clone(found.to)
	h.gaps = slices.DeleteFunc(h.gaps, func(other *gap) bool {
		if !other.touches(found) {
			return false
		}
		if len(other.extents) > 0 {
			m := widest(other.extents)
			found = extent{earliest(found.from, m.from), latest(found.to, m.to), max(found.view, m.view)}
		}
		return other != g
	})
	extents := slices.Clone(g.extents)
	if n := len(extents); n > 0 && extents[n-1].view == found.view {
		extents = extents[:n-1]
	}
	extents = append(extents, found)
	for len(extents) > 1 && extents[1].view <= shown {
		extents = extents[1:]
	}
	g.extents, g.anchor = extents, found.from
	h.publish()
}

// publish lets readers see the gaps.
func (h *gapShard) publish() {
	known := make([][]extent, 0, len(h.gaps))
	for _, g := range h.gaps {
		if len(g.extents) > 0 {
			known = append(known, g.extents)
		}
	}
	slices.SortFunc(known, func(a, b []extent) int { return bytes.Compare(widest(a).from, widest(b).from) })
	h.known.Store(&known)
	h.watching.Store(len(h.gaps) > 0)
}

// cut takes the rows that a batch sets out of the gaps of its database. It must run
// under the gate, before the batch is applied.
func (g *gaps) cut(id layout.ID, batch *pebble.Batch) {
	h := g.of(id)
	if !h.watching.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	changed, sets := false, 0
	for rows := batch.Reader(); ; {
		kind, key, _, ok, err := rows.Next()
		if err != nil || sets > maxGapRows {
			h.gaps, changed = nil, true
			break
		}
		if !ok {
			break
		}
		if kind == pebble.InternalKeyKindSet && (key[0] == layout.SpaceData || key[0] == layout.SpaceIndex) {
			sets++
			changed = h.cutAt(key) || changed
		}
	}
	if changed {
		h.publish()
	}
}

// cutAt notes that a row is set. It reports whether that cuts an extent.
func (h *gapShard) cutAt(key []byte) (changed bool) {
	at := key[:min(len(key), maxGapKey)] // or a little before it
	for _, g := range h.gaps {
		switch {
		case bytes.Compare(key, g.anchor) >= 0:
			if len(g.ceiling) == 0 || bytes.Compare(at, g.ceiling) < 0 {
				g.ceiling = append(g.ceiling[:0], at...)
			}
			changed = g.cutAt(at) || changed
		case len(key) > maxGapKey:
			g.floor = append(g.floor[:0], g.anchor...)
		case bytes.Compare(key, g.floor) >= 0:
			g.floor = append(append(g.floor[:0], key...), 0)
		}
	}
	return changed
}

// cutAt ends the extents of a gap at a key.
func (g *gap) cutAt(key []byte) bool {
	if len(g.extents) == 0 || bytes.Compare(key, widest(g.extents).to) >= 0 {
		return false
	}
	end, left := bytes.Clone(key), make([]extent, 0, len(g.extents))
	for _, m := range g.extents {
		if m.to = earliest(m.to, end); bytes.Compare(m.from, m.to) < 0 {
			left = append(left, m)
		}
	}
	g.extents = left
	return true
}

// BorrowGaps makes readers of rows that are not committed yet jump over the gaps that others
// know of a database. They are cut by CutGaps alone, and no more are found: the gaps of those
// rows are nobody else's.
func (s *Shared) BorrowGaps(from *Shared, id layout.ID) {
	h, lender := s.gaps.of(id), from.gaps.of(id)
	var known []*gap
	lender.mu.Lock()
	for _, g := range lender.gaps {
		if len(g.extents) > 0 {
			known = append(known, &gap{extents: g.extents, anchor: g.anchor})
		}
	}
	lender.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gaps = known
	h.publish()
}

// forget drops what is known of a database, and of those in its shard.
func (g *gaps) forget(id layout.ID) {
	h := g.of(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gaps = nil
	h.publish()
}
