package rowcache

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
)

const (
	// bucketSlots is how many places an entry can have in the table.
	bucketSlots = 8
	// slotShare is how many bytes of a shard there are for each slot.
	slotShare = 128
	// slotBytes is what a slot takes, and noteBytes what is noted of a row that was dropped. There are as many notes as there may be
	// slots.
	slotBytes, noteBytes = 8, 4
	// bucketNotes is how many places a note can have.
	bucketNotes = 8
	// minSegment and maxSegment bound the size of a segment; a shard has about segments of them.
	minSegment, maxSegment, segments = 1 << 10, 32 << 10, 16
	// smallShare is the part of the segments that rows which are new may take.
	smallShare = 10
	// smallMost is the part that they may have while there is memory that nobody has.
	smallMost = 4
	// smallUses is how often a row must be asked for to get from the small queue into the main one.
	smallUses = 2
)

// A shard is the part of a cache for some keys.
//
// Its entries lie in segments, each of which is in one of two queues, small and main, or free. An entry goes
// at the end of the last segment of a queue. Room is made by the first segment of one: what is worth
// it moves on into the main queue, the rest is dropped. An entry without a slot in the table is dropped already.
type shard struct {
	seed        maphash.Seed
	segmentSize int  // a power of two
	shift       uint // of a position, to the number of its segment
	maxSegments int
	maxSlots    int
	maxEntry    int
	takes       func(bytes int) // called before memory is taken

	mu sync.Mutex
	// table finds entries: the upper half of a slot is that of the hash, the lower is the entry's position
	// and one, and 0 is an empty slot.
	table []uint64
	// dropped are hashes of rows that left the small queue unwanted, or were not let in, and so would go straight into the main
	// one if they came again. There are as many from the first on as the shard may ever need: if their number followed that of the
	// entries, few rows of many would be noted long enough to come again, and the entries would stay few.
	dropped  []uint32
	segments []segment
	free     []int // segments that hold nothing; there is always one to move entries to
	small    []int
	main     []int
	// stamps are the numbers of the newest groups that wrote a key.
	stamps       []uint64
	hits, misses uint64
}

type segment struct {
	data []byte
	used int
	main bool
}

// init sets the bounds of a shard of so many bytes.
func (s *shard) init(size int, seed maphash.Seed) {
	s.seed = seed
	s.shift = uint(bits.Len(uint(min(max(size/segments, minSegment), maxSegment) * 2 / 3))) // to the nearest power
	s.segmentSize = 1 << s.shift
	s.maxEntry = min(s.segmentSize/4, maxSegment/8) // so that little is left over in one
	s.maxSlots = max(bucketSlots, floorPower(size/slotShare+size/slotShare/8))
	s.stamps = make([]uint64, min(max(floorPower(size/slotShare), 8), 1024))
	s.maxSegments = max(0, size-s.maxSlots*(slotBytes+noteBytes)-8*len(s.stamps)) / s.segmentSize
}

// floorPower returns the greatest power of two that is not above n, 0 for 0.
func floorPower(n int) int {
	if n <= 0 {
		return 0
	}
	return 1 << (bits.Len(uint(n)) - 1)
}

// bytes returns what the shard takes.
func (s *shard) bytes() int {
	return len(s.segments)*s.segmentSize + len(s.table)*slotBytes + len(s.dropped)*noteBytes + 8*len(s.stamps)
}

func (s *shard) stamp(h uint64) *uint64 { return &s.stamps[h>>20&uint64(len(s.stamps)-1)] }

// bucket returns the slots that an entry may be in.
func (s *shard) bucket(h uint64) []uint64 {
	first := int(h) & (len(s.table) - 1) &^ (bucketSlots - 1)
	return s.table[first : first+bucketSlots]
}

func (s *shard) entry(slot uint64) entry {
	at := int(uint32(slot)) - 1
	e := entry(s.segments[at>>s.shift].data[at&(s.segmentSize-1):])
	return e[:e.size()]
}

// find returns the slot of the entry of a key, nil if there is none.
func (s *shard) find(h uint64, key []byte) *uint64 {
	if len(s.table) == 0 {
		return nil
	}
	bucket := s.bucket(h)
	for i, slot := range bucket {
		if slot != 0 && slot>>32 == h>>32 && bytes.Equal(s.entry(slot).key(), key) {
			return &bucket[i]
		}
	}
	return nil
}

// put adds an entry, for whose key there is none.
func (s *shard) put(h uint64, key, row []byte, since, deletes uint64, main bool) {
	at := s.room(entryBytes(key, row), main)
	if at < 0 {
		return
	}
	g := &s.segments[at>>s.shift]
	entry(g.data[at&(s.segmentSize-1):g.used]).make(key, row, since, deletes)
	s.enter(h, at)
}

// enter gives an entry a slot. If its bucket is full, the entry goes that is wanted least. If that is of the main queue and was
// asked for, all of the bucket lose a use instead, and the new one goes: so entries that nobody wants any more cannot keep others
// out, and few that come once push out nothing.
func (s *shard) enter(h uint64, at int) {
	slot := h>>32<<32 | uint64(uint32(at+1))
	bucket := s.bucket(h)
	least := &bucket[0]
	for i := range bucket {
		if bucket[i] == 0 {
			bucket[i] = slot
			return
		}
		if s.worth(bucket[i]) < s.worth(*least) {
			least = &bucket[i]
		}
	}
	if s.worth(*least) > s.worth(slot) && s.entry(*least).uses() > 0 {
		for _, other := range bucket {
			e := s.entry(other)
			e.setUses(max(0, e.uses()-1))
		}
		s.noteDropped(h)
		return
	}
	*least = slot
}

// worth orders entries by how much they are wanted: those of the small queue come first, then those that were asked for
// less.
func (s *shard) worth(slot uint64) int {
	worth := s.entry(slot).uses()
	if s.segments[(int(uint32(slot))-1)>>s.shift].main {
		worth += maxUses + 1
	}
	return worth
}

// grow doubles the table while the entries need more slots.
func (s *shard) grow() {
	wanted := min(s.maxSlots, max(bucketSlots, 2*floorPower(len(s.segments)*s.segmentSize/slotShare)))
	if wanted <= len(s.table) {
		return
	}
	s.takes((wanted - len(s.table)) * slotBytes)
	old := s.table
	s.table = make([]uint64, wanted)
	for _, slot := range old {
		if slot != 0 {
			s.enter(maphash.Bytes(s.seed, s.entry(slot).key()), int(uint32(slot))-1)
		}
	}
}

// notes returns where it may be noted that a row was dropped, from the newest note to the oldest.
func (s *shard) notes(h uint64) []uint32 {
	first := int(h) & (len(s.dropped) - 1) &^ (bucketNotes - 1)
	return s.dropped[first : first+bucketNotes]
}

// wasDropped reports whether a row with a hash has left the small queue not long ago.
func (s *shard) wasDropped(h uint64) bool {
	return len(s.dropped) > 0 && slices.Contains(s.notes(h), uint32(h>>32)|1)
}

// noteDropped notes that in place of the oldest note, or of its own.
func (s *shard) noteDropped(h uint64) {
	if len(s.dropped) == 0 {
		s.takes(s.maxSlots * noteBytes)
		s.dropped = make([]uint32, s.maxSlots)
	}
	notes, note := s.notes(h), uint32(h>>32)|1
	at := slices.Index(notes, note)
	if at < 0 {
		at = bucketNotes - 1
	}
	copy(notes[1:at+1], notes)
	notes[0] = note
}
