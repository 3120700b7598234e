package rowcache

import (
	"hash/maphash"
	"math/bits"
)

// TouchMost is how many keys Touch takes at a time.
const TouchMost = 16

// touchBytes is how much of an entry is touched, lineBytes what memory comes in.
const touchBytes, lineBytes = 320, 64

// Touch has the processor bring what is known of up to TouchMost keys nearer, for look-ups that follow. A key is that of a parent with
// a component after it. Rows are anywhere in memory, and a look-up waits twice: for the place in the table, then for the row. Here all
// keys wait together, which they can only if no lock is taken in between: so those of all their shards are taken first. Nothing is
// copied, so they are held for about as long as one look-up holds its own.
//
// What it returns says nothing. It is there so that what is touched is needed.
func (c *Cache) Touch(parent []byte, components [][]byte) (sum uint64) {
	if c == nil {
		return 0
	}
	var memory [256]byte
	key := append(memory[:0], parent...)
	var hashes [TouchMost]uint64
	var wanted uint64 // a bit for each shard
	n := min(len(components), TouchMost)
	for i, component := range components[:n] {
		key = append(key[:len(parent)], component...)
		hashes[i] = maphash.Bytes(c.seed, key)
		wanted |= 1 << (hashes[i] >> c.shift)
	}
	for rest := wanted; rest != 0; rest &= rest - 1 { // in their order, so that no two wait for each other
		c.shards[bits.TrailingZeros64(rest)].mu.Lock()
	}
	for _, h := range hashes[:n] {
		if s := c.of(h); len(s.table) > 0 {
			sum += s.bucket(h)[0]
		}
	}
	for _, h := range hashes[:n] {
		sum += c.of(h).touch(h)
	}
	for rest := wanted; rest != 0; rest &= rest - 1 {
		c.shards[bits.TrailingZeros64(rest)].mu.Unlock()
	}
	return sum
}

// touch reads from the entry with a hash, of which there may be none.
func (s *shard) touch(h uint64) (sum uint64) {
	if len(s.table) == 0 {
		return 0
	}
	for _, slot := range s.bucket(h) {
		if slot == 0 || slot>>32 != h>>32 {
			continue
		}
		at := int(uint32(slot)) - 1
		data := s.segments[at>>s.shift].data[at&(s.segmentSize-1):]
		for from := 0; from < min(len(data), touchBytes); from += lineBytes {
			sum += uint64(data[from])
		}
		return sum
	}
	return 0
}
