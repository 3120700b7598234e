package rowcache

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/livetree/livetree/internal/store/layout"
)

// ranges know where commits have deleted whole subtrees. What is remembered of the rows there cannot be
// found by their keys, so each look-up asks for the nodes above its key.
//
// Range deletes are counted. The place of a node has the number of the last delete of its subtree, and of the group that made it.
// An entry has the number of the last delete that it is known to have survived, so that it need not ask again until there is
// another. Nodes share places by chance; then an entry is taken for deleted that is not.
//
// A delete writes its group, its number, and then how many there are. A reader that keeps a row first reads how many there
// are, then the groups. So it either sees the group, and refuses what it has read before, or keeps an entry with a
// lower number than that of the delete.
type ranges struct {
	deletes atomic.Uint64
	mu      sync.Mutex // held by deletes
	places  []place
}

type place struct{ group, number atomic.Uint64 }

const (
	placeBytes = 16
	// placeShare is how many bytes of a cache there are for each place.
	placeShare           = 2 << 10
	minPlaces, maxPlaces = 8, 1 << 16
)

// init makes the places for a cache of so many bytes, and returns how many they take.
func (r *ranges) init(size int64) int64 {
	r.places = make([]place, min(max(floorPower(int(size/placeShare)), minPlaces), maxPlaces))
	return r.bytes()
}

func (r *ranges) bytes() int64 { return int64(len(r.places)) * placeBytes }

func (r *ranges) place(seed maphash.Seed, node []byte) *place {
	return &r.places[maphash.Bytes(seed, node)&uint64(len(r.places)-1)]
}

// mark notes that a commit of a group deletes the rows from a key up to another.
func (r *ranges) mark(seed maphash.Seed, from, to []byte, group uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number := r.deletes.Load() + 1
	if isSubtree(from, to) {
		r.place(seed, from).set(group, number)
	} else { // nobody deletes such a range
		for i := range r.places {
			r.places[i].set(group, number)
		}
	}
	r.deletes.Store(number)
}

func (p *place) set(group, number uint64) {
	p.group.Store(group)
	p.number.Store(number)
}

// isSubtree reports whether a range is the subtree of the node with its first key, or all of a
// database.
func isSubtree(from, to []byte) bool {
	end := 0
	eachNode(from, func(node []byte) bool {
		end = len(node)
		return true
	})
	switch {
	case end == 0 || end != len(from):
		return false
	case end == layout.RootBytes && len(to) == end:
		return binary.BigEndian.Uint32(to[1:]) == binary.BigEndian.Uint32(from[1:])+1 && to[0] == from[0]
	}
	return bytes.Equal(to, layout.SubtreeEnd(nil, from))
}

// eachNode calls yield with the keys of the nodes from the root to that of a key, until it returns
// false.
func eachNode(key []byte, yield func(node []byte) bool) {
	end := layout.RootBytes
	if len(key) < end {
		return
	}
	for yield(key[:end]) {
		n := layout.ComponentLen(key[end:])
		if n < 0 {
			return
		}
		end += n
	}
}

// deleted reports whether a row may have been deleted since a number of deletes.
func (r *ranges) deleted(seed maphash.Seed, key []byte, since uint64) (found bool) {
	eachNode(key, func(node []byte) bool {
		found = r.place(seed, node).number.Load() > since
		return !found
	})
	return found
}

// stamp returns the newest group that may have deleted a row.
func (r *ranges) stamp(seed maphash.Seed, key []byte) (group uint64) {
	eachNode(key, func(node []byte) bool {
		group = max(group, r.place(seed, node).group.Load())
		return true
	})
	return group
}
