package rowcache

import (
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
)

// Cut is told of the rows of a commit, and of the number of its group, before they are applied and before any view
// can show them. A row that is remembered becomes the new one, for readers that see the commit.
//
// Whole are the data keys of nodes, few of them, below which all that is remembered may be forgotten: rows there
// are not looked at one by one.
func (c *Cache) Cut(rows *pebble.Batch, group uint64, whole [][]byte) {
	if c == nil {
		return
	}
	for _, node := range whole {
		c.ranges.mark(c.seed, node, layout.SubtreeEnd(nil, node), group)
	}
	ok := eachData(rows, func(kind pebble.InternalKeyKind, key, value []byte) {
		switch {
		case kind == pebble.InternalKeyKindRangeDelete:
			c.ranges.mark(c.seed, key, value, group)
		case isBelow(key, whole):
		case kind == pebble.InternalKeyKindSet:
			c.change(key, held(value), group)
		default:
			c.change(key, nil, group)
		}
	})
	if !ok {
		c.ranges.mark(c.seed, nil, nil, group)
	}
}

// Undo forgets the rows of a commit that Cut was told of and that was not applied.
func (c *Cache) Undo(rows *pebble.Batch) {
	if c == nil {
		return
	}
	eachData(rows, func(kind pebble.InternalKeyKind, key, _ []byte) {
		if kind == pebble.InternalKeyKindRangeDelete {
			return
		}
		h := maphash.Bytes(c.seed, key)
		s := c.of(h)
		s.mu.Lock()
		defer s.mu.Unlock()
		if at := s.find(h, key); at != nil {
			*at = 0
		}
	})
}

// eachData calls yield with what a batch does to data rows. It reports false if the batch cannot be read to its
// end.
func eachData(rows *pebble.Batch, yield func(kind pebble.InternalKeyKind, key, value []byte)) bool {
	for r := rows.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		if err != nil {
			return false
		}
		if !ok {
			return true
		}
		if kind != pebble.InternalKeyKindLogData && len(key) > 0 && key[0] == layout.SpaceData {
			yield(kind, key, value)
		}
	}
}

func isBelow(key []byte, nodes [][]byte) bool {
	for _, node := range nodes {
		if layout.Belongs(key, node) {
			return true
		}
	}
	return false
}

// change replaces the row at a key, if it is remembered, by another, nil for none.
func (c *Cache) change(key, row []byte, group uint64) {
	h := maphash.Bytes(c.seed, key)
	s := c.of(h)
	deletes := c.ranges.deletes.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.stamp(h) = group
	at := s.find(h, key)
	if at == nil {
		return
	}
	if e := s.entry(*at); e.fits(row) {
		e.set(row, group, deletes)
		return
	}
	main := s.segments[int(uint32(*at)-1)>>s.shift].main
	*at = 0
	if entryBytes(key, row) <= s.maxEntry {
		s.put(h, key, row, group, deletes, main)
	}
}
