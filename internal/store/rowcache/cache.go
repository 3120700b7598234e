// Package rowcache remembers rows of data that were looked up one by one, above Pebble.
//
// A look-up in Pebble finds and opens blocks: a hundred rows for one that is wanted. The
// cache holds the row alone, so the same memory holds ten times as many, and finding one takes no
// iterator. It also remembers that there is no row at a key. What goes along rows in order does not pass
// through it.
//
// A Cache is shared by the readers of a store, each of which reads at a view, or live. Row returns what
// is remembered, Keep remembers what a look-up found, and Cut is told of every commit before it is
// applied. The invariant: what Row returns to a reader is what Pebble would.
//
// That rests on numbers of groups, which are those of the first views that show them. A commit puts the number of its group onto the
// stamp of each key that it writes, before any view can show it. Keep refuses a row that was read in a view older than the stamp of
// its key: the row may have been replaced since. What it takes holds from the stamp on, and a reader of an older view
// does not get it. Keys share stamps, by chance: a stamp may be too new, never too old.
// A commit that deletes a range of keys stamps the node whose subtree that is, see ranges.
//
// Memory. All that a cache takes is within the bytes that it was made for: rows, keys, tables, stamps. It
// is allocated as rows come, and whoever shares a budget with the cache is told. Rows lie in segments that hold no pointers, so the garbage collector does not look at
// them. What makes room is decided as by S3-FIFO (Yang and others, SOSP 2023): rows that are new go through a
// small queue, and only those that were asked for again get into the main one. The rows of a query, which are many, are not
// even remembered before they come a second time. So what goes through very many rows takes a quarter of the cache at most, and
// leaves what is wanted more often in its place.
//
// What a call costs does not grow with the cache: a look-up looks at eight places; making
// room goes through one segment. But memory that nobody has looked at for long is slow, so who looks many rows up has them
// touched before.
package rowcache

import (
	"hash/maphash"
	"math/bits"
)

const (
	// minBytes is the least size of a cache; there is no smaller one.
	minBytes = 4 << 10
	// shardBytes is what a shard has at least, if there is more than one.
	shardBytes = 256 << 10
	maxShards  = 64
	// maxBytes bounds a cache: positions in a shard have 32 bits.
	maxBytes = maxShards << 30
)

// A Cache holds rows. It is safe for concurrent use. A nil Cache holds none.
type Cache struct {
	seed   maphash.Seed
	shards []shard
	// shift is by how much a hash is shifted to be the number of a shard.
	shift  uint
	ranges ranges
}

// New returns a cache that takes at most so many bytes, nil if those are too few for one. Each time that it is about to take
// more memory it says how much; takes may be nil.
func New(bytes int64, takes func(bytes int)) *Cache {
	if bytes < minBytes {
		return nil
	}
	bytes = min(bytes, maxBytes)
	shards := 1
	for shards < maxShards && bytes/int64(2*shards) >= shardBytes {
		shards *= 2
	}
	return newCache(bytes, shards, takes)
}

// newCache is New with a number of shards, a power of two.
func newCache(bytes int64, shards int, takes func(bytes int)) *Cache {
	c := &Cache{seed: maphash.MakeSeed(), shards: make([]shard, shards), shift: uint(64 - bits.TrailingZeros(uint(shards)))}
	bytes -= c.ranges.init(bytes)
	for i := range c.shards {
		c.shards[i].init(int(bytes/int64(shards)), c.seed)
	}
	if takes == nil {
		takes = func(int) {}
	}
	takes(int(c.Stats().Bytes))
	for i := range c.shards {
		c.shards[i].takes = takes
	}
	return c
}

// A Found says what a cache knows of a key.
type Found uint8

const (
	Unknown Found = iota // nothing
	Absent               // that there is no row
	Present              // the row
)

// Row appends the row at a key in a view to dst, if it is known.
func (c *Cache) Row(dst, key []byte, view uint64) ([]byte, Found) {
	if c == nil {
		return dst, Unknown
	}
	h := maphash.Bytes(c.seed, key)
	deletes := c.ranges.deletes.Load()
	s := c.of(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(h, key)
	if at == nil {
		s.misses++
		return dst, Unknown
	}
	e := s.entry(*at)
	if e.since() > view {
		s.misses++
		return dst, Unknown
	}
	if e.deletes() != deletes && c.ranges.deleted(c.seed, key, e.deletes()) {
		*at = 0
		s.misses++
		return dst, Unknown
	}
	e.setDeletes(max(deletes, e.deletes()))
	e.use()
	s.hits++
	if e.isAbsent() {
		return dst, Absent
	}
	return append(dst, e.row()...), Present
}

// Keep remembers the row at a key, as a reader found it in a view. For what was read live that is the newest view
// that was there before the read.
func (c *Cache) Keep(key, row []byte, view uint64) { c.keep(key, held(row), view, false) }

// KeepAgain is Keep for one of many rows that were looked up together. Most of those are not wanted a second time, so the row is
// remembered when it comes again before many others have.
func (c *Cache) KeepAgain(key, row []byte, view uint64) { c.keep(key, held(row), view, true) }

// KeepAbsent remembers that there is no row at a key, as Keep does.
func (c *Cache) KeepAbsent(key []byte, view uint64) { c.keep(key, nil, view, false) }

// held returns a row that is there: it is not nil even if it is empty.
func held(row []byte) []byte {
	if row == nil {
		return []byte{}
	}
	return row
}

func (c *Cache) keep(key, row []byte, view uint64, again bool) {
	if c == nil {
		return
	}
	h := maphash.Bytes(c.seed, key)
	s := c.of(h)
	if entryBytes(key, row) > s.maxEntry {
		return
	}
	deletes := c.ranges.deletes.Load() // before the stamps are looked at
	since := uint64(0)
	if deletes > 0 {
		since = c.ranges.stamp(c.seed, key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if since = max(since, *s.stamp(h)); since > view {
		return
	}
	if at := s.find(h, key); at != nil {
		if e := s.entry(*at); e.since() <= view && e.deletes() == deletes {
			return // another reader was first
		}
		*at = 0
	}
	wanted := s.wasDropped(h)
	if again && !wanted {
		s.noteDropped(h)
		return
	}
	s.put(h, key, row, since, deletes, wanted)
}

func (c *Cache) of(h uint64) *shard { return &c.shards[h>>c.shift] }

// Stats are what a cache has counted.
type Stats struct {
	Hits, Misses uint64 // of look-ups
	Bytes        int64  // that it takes
}

// Stats returns the numbers of this moment.
func (c *Cache) Stats() (total Stats) {
	if c == nil {
		return total
	}
	total.Bytes = c.ranges.bytes()
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		total.Hits += s.hits
		total.Misses += s.misses
		total.Bytes += int64(s.bytes())
		s.mu.Unlock()
	}
	return total
}
