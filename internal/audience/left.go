package audience

import (
	"slices"
	"time"

	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// This file is about what a client says that it knows of a place where it has ended a listen a moment
// ago. What that told it last may have been on its way when the client ended it and listened again. It
// is not in the hash then, but the client applies it: what has no tag is for all that it listens to.

const (
	// underWay is how long what was told may be on its way.
	underWay = 30 * time.Second
	// maxLeft is how many listens are remembered that were ended, and maxLeftBytes what their paths
	// may take. A client that ends more in a moment is taken at its word.
	maxLeft      = 32
	maxLeftBytes = 8 << 10
)

// A left is a listen that the client has ended: when it was told something last, and the position of
// the state that the client has by that; 0 if that is not known.
type left struct {
	path   tree.Path
	told   uint64
	toldAt time.Time
}

// noteLeft remembers a listen that the client has ended, if what it was told may be on its way.
func noteLeft(a *Audience, l *Listen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	forgetLeft(a)
	if l.toldAt.IsZero() || a.opts.Now().Sub(l.toldAt) > underWay {
		return
	}
	a.left = slices.DeleteFunc(a.left, func(was left) bool { return was.path == l.Path }) // what was told last counts
	a.left = append(a.left, left{l.Path, l.told, l.toldAt})
	bytes := 0
	for i := len(a.left) - 1; i >= 0; i-- {
		if bytes += a.left[i].path.Bytes(); len(a.left)-i > maxLeft || bytes > maxLeftBytes {
			a.left = slices.Delete(a.left, 0, i+1)
			return
		}
	}
}

// forgetLeft forgets those of which nothing is on its way any more. The lock is held.
func forgetLeft(a *Audience) {
	now := a.opts.Now()
	if a.left = slices.DeleteFunc(a.left, func(l left) bool { return now.Sub(l.toldAt) > underWay }); len(a.left) == 0 {
		a.left = nil
	}
}

// knownBesideLeft returns what a client says that it knows of a place: it may have said so before it
// was told the last of a listen that it has ended, at that place, above it or below.
func knownBesideLeft(a *Audience, p tree.Path, known *watch.Known) *watch.Known {
	if known == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	forgetLeft(a)
	for _, l := range a.left {
		if l.path.Overlaps(p) && (!known.Replaces || l.told < known.Told) {
			known = &watch.Known{Hash: known.Hash, Compound: known.Compound, Replaces: true, Told: l.told}
		}
	}
	return known
}
