package store

import (
	"runtime"
	"time"

	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// digestWait is how long a read waits for its turn to work out a digest.
const digestWait = 5 * time.Second

// digests bounds the digests that are worked out at a time, to half of the
// processors: they read and hash whole nodes for answers of a few bytes.
type digests struct {
	turns chan struct{}
}

func (d *digests) init() { d.turns = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) }

// turn waits until a digest may be worked out. The turn must be ended.
func (d *digests) turn(w seek.Waiter) (end func(), err error) {
	late := time.NewTimer(digestWait)
	defer late.Stop()
	select {
	case d.turns <- struct{}{}:
		return func() { <-d.turns }, nil
	case <-w:
		return nil, ErrUnwanted
	case <-late.C:
		return nil, ErrBusy
	}
}

// A Digest is a short text that depends on the database, on a node and on nothing else,
// such as a hash.
type Digest uint8

// The digests of a node.
const (
	ETag Digest = 1 + iota
	SDKHash
)

// RecallDigest returns a digest of the node at p, empty if it is not known.
func (t Tree) RecallDigest(d Digest, p tree.Path) string {
	return string(t.recall(&memo.Key{ID: t.reader.ID, Path: p, Digest: uint8(d)}))
}

// Digest returns a digest of the node at p. What work returns is remembered as long as the
// node stays the same. Reads that come while others are worked out wait for their turn;
// those that wait for too long fail with ErrBusy.
func (t Tree) Digest(d Digest, p tree.Path, work func() (string, error)) (string, error) {
	if t.origin == nil {
		return work()
	}
	end, err := t.store.digests.turn(t.reader.Waiter)
	if err != nil {
		return "", err
	}
	defer end()
	if found := t.RecallDigest(d, p); found != "" {
		return found, nil // the one before was the same
	}
	t.store.counters.digests.Add(1)
	digest, err := work()
	if err == nil {
		t.store.memos.Keep(memo.Key{ID: t.reader.ID, Path: p, Digest: uint8(d)}, t.origin.number, []byte(digest), nil)
	}
	return digest, err
}
