// Package pushid makes ordered unique keys, for children that are added rather
// than named.
//
// A key has 20 characters of an alphabet of 64 in ASCII order: 8 of time in
// milliseconds, then 12 at random. So keys sort by the time they were made,
// and servers that share nothing but a rough clock do not collide. Keys made
// by one [Generator] are strictly increasing also within a millisecond, where
// each takes the random part of the one before plus one. A key can therefore
// be guessed from its neighbour: it is a name, not a secret.
//
// This is the form of RTDB's push ids. No key of our time spells an integer,
// so byte order is also the order of these keys as children of a node.
//
// A Generator remembers nothing across restarts. A caller that must not go
// back behind keys of an earlier process, though the clock may have been set
// back, persists a floor and passes the greater of the clock and that floor.
package pushid

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	keyChars    = 20
	timeBytes   = 6 // 8 characters
	randomBytes = 9 // 12 characters
	maxMillis   = 1<<(8*timeBytes) - 1
)

// ErrExhausted is returned once the largest key has been made. The time part
// lasts until the year 10889: only a caller that passes such times can see it.
var ErrExhausted = errors.New("no push key is left")

// encoding writes a key as the base64 of its 15 bytes. As the alphabet is in
// ASCII order, keys compare like those bytes.
var encoding = base64.NewEncoding("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz").
	WithPadding(base64.NoPadding)

// A Generator makes strictly increasing keys. It is safe for concurrent use:
// the order of the keys is the order in which calls of Next got hold of it.
type Generator struct {
	mu         sync.Mutex
	rand       io.Reader // guarded too: it need not be safe for concurrent use
	lastMillis int64     // of the last key; -1 before the first
	lastRandom randomPart
}

// A randomPart is a big-endian number of 72 bits.
type randomPart [randomBytes]byte

// New returns a Generator that draws its random parts from rand, 9 bytes for
// every millisecond in which it makes keys. It is read under a lock, so it
// must not block for long; crypto/rand.Reader is meant.
func New(rand io.Reader) *Generator {
	return &Generator{rand: rand, lastMillis: -1}
}

// Next returns a key greater than all before it, whatever time is passed. The
// key carries nowMillis, or the time of the last key if that is later: the
// clock never runs backwards. Times outside the range of a key are moved to
// its limits.
//
// It fails only if the random source does, and then makes no key, so the call
// can be repeated; or with ErrExhausted.
func (g *Generator) Next(nowMillis int64) (string, error) {
	nowMillis = min(max(nowMillis, 0), maxMillis)
	g.mu.Lock()
	defer g.mu.Unlock()

	if nowMillis <= g.lastMillis {
		if next, ok := g.lastRandom.successor(); ok {
			g.lastRandom = next
			return format(g.lastMillis, next), nil
		}
		if g.lastMillis == maxMillis {
			return "", ErrExhausted
		}
		nowMillis = g.lastMillis + 1
	}
	var fresh randomPart
	if _, err := io.ReadFull(g.rand, fresh[:]); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	g.lastMillis, g.lastRandom = nowMillis, fresh
	return format(nowMillis, fresh), nil
}

// successor returns r plus one; ok is false if r is the largest number.
func (r randomPart) successor() (next randomPart, ok bool) {
	for i := len(r) - 1; i >= 0; i-- {
		r[i]++
		if r[i] != 0 {
			return r, true
		}
	}
	return r, false
}

func format(millis int64, random randomPart) string {
	var raw [timeBytes + randomBytes]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(millis)<<16) // the two low bytes are overwritten
	copy(raw[timeBytes:], random[:])
	return encoding.EncodeToString(raw[:])
}
