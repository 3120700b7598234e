package rowcache

import "hash/maphash"

// room returns where so many bytes can be put at the end of a queue, -1 if nowhere.
func (s *shard) room(size int, main bool) int {
	if at := s.roomInLast(size, main); at >= 0 {
		return at
	}
	for tries := 0; len(s.free) < 2; tries++ {
		if len(s.segments) < s.maxSegments && (main || len(s.small) < max(1, s.maxSegments/smallMost)) {
			s.takes(s.segmentSize)
			s.free = append(s.free, len(s.segments))
			s.segments = append(s.segments, segment{data: make([]byte, s.segmentSize)})
			s.grow()
			continue
		}
		// Where all entries are wanted, moving them on makes no room.
		keep := s.segmentSize
		if tries >= kindTries {
			keep /= 2
		}
		if !s.makeRoom(keep) {
			return -1
		}
	}
	if at := s.roomInLast(size, main); at >= 0 {
		return at // making room has begun a segment
	}
	s.begin(main)
	return s.roomInLast(size, main)
}

// queue returns the segments of a queue, from the oldest on.
func (s *shard) queue(main bool) *[]int {
	if main {
		return &s.main
	}
	return &s.small
}

// begin puts a free segment at the end of a queue.
func (s *shard) begin(main bool) {
	last := len(s.free) - 1
	n := s.free[last]
	s.free = s.free[:last]
	s.segments[n].used, s.segments[n].main = 0, main
	*s.queue(main) = append(*s.queue(main), n)
}

// roomInLast takes so many bytes of the last segment of a queue, -1 if it has not as many.
func (s *shard) roomInLast(size int, main bool) int {
	q := *s.queue(main)
	if len(q) == 0 {
		return -1
	}
	n := q[len(q)-1]
	g := &s.segments[n]
	if g.used+size > len(g.data) {
		return -1
	}
	g.used += size
	return n*s.segmentSize + g.used - size
}

// kindTries is how many segments are looked through for entries that are not wanted before some go that are.
const kindTries = 16

// makeRoom frees the oldest segment of a queue: of the small one if that has more than its part. Of its entries so many bytes may
// stay. It reports false if there is no segment.
func (s *shard) makeRoom(keep int) bool {
	main := len(s.small) <= max(1, s.maxSegments/smallShare)
	if len(*s.queue(main)) == 0 {
		main = !main
	}
	q := s.queue(main)
	if len(*q) == 0 {
		return false
	}
	n := (*q)[0]
	copy(*q, (*q)[1:])
	*q = (*q)[:len(*q)-1]
	s.moveOn(n, keep)
	s.free = append(s.free, n)
	return true
}

// moveOn moves the entries of a segment that are wanted into the main queue, up to so many bytes of them. One free segment is
// enough for that.
func (s *shard) moveOn(n, left int) {
	g := &s.segments[n]
	for from := 0; from < g.used; {
		e := entry(g.data[from:])
		e = e[:e.size()]
		at := n*s.segmentSize + from
		from += len(e)
		h := maphash.Bytes(s.seed, e.key())
		slot := s.slotOf(h, at)
		if slot == nil {
			continue
		}
		if !e.isWanted(g.main) || len(e) > left {
			*slot = 0
			if !g.main {
				s.noteDropped(h)
			}
			continue
		}
		left -= len(e)
		uses := 0
		if g.main {
			uses = e.uses() - 1
		}
		*slot = h>>32<<32 | uint64(uint32(s.move(e, uses)+1))
	}
}

// isWanted reports whether an entry was asked for often enough, in the main queue or in the small one, to stay.
func (e entry) isWanted(main bool) bool {
	if main {
		return e.uses() > 0
	}
	return e.uses() >= smallUses
}

// move copies an entry to the end of the main queue, and returns where it is.
func (s *shard) move(e entry, uses int) int {
	at := s.roomInLast(len(e), true)
	if at < 0 {
		s.begin(true)
		at = s.roomInLast(len(e), true)
	}
	to := entry(s.segments[at>>s.shift].data[at&(s.segmentSize-1):])
	copy(to, e)
	to.setUses(uses)
	return at
}

// slotOf returns the slot of the entry at a position, nil if it has none any more.
func (s *shard) slotOf(h uint64, at int) *uint64 {
	bucket := s.bucket(h)
	for i := range bucket {
		if uint32(bucket[i]) == uint32(at+1) {
			return &bucket[i]
		}
	}
	return nil
}
