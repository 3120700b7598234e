package audience

import (
	"iter"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// This file is about what a client says that it knows of a place where it has a listen above or below, or
// has ended one a moment ago, or has read what is there. What that told it last may have been on its way when the client listened again.
// It is not in the hash then, but the client applies it: what has no tag is for all that it listens to. And
// what would take that back may never be told, if the other listen ends first; a read tells nothing more.

const (
	// underWay is how long what was told may be on its way.
	underWay = 30 * time.Second
	// maxLeft is how many listens are remembered that were ended, and reads, and maxLeftBytes what their paths
	// may take. A client that ends or reads more in a moment is taken at its word.
	maxLeft      = 64
	maxLeftBytes = 16 << 10
)

// A left is a listen that the client has ended, or that was ended, or a read that was answered: when it was told something last, and the
// position of the state that the client has by that; 0 if that is not known.
type left struct {
	path   tree.Path
	told   uint64
	toldAt time.Time
}

// noteLeft remembers a listen that has ended, if what it was told may be on its way.
func noteLeft(a *Audience, l *Listen) {
	if !l.isPlain() {
		return // what it was told has a tag
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	forgetLeft(a)
	if !a.isUnderWay(l.toldAt) {
		return
	}
	remember(a, left{l.Path, l.told, l.toldAt})
}

// noteRead remembers what was read, which is being told now. The lock is held.
func noteRead(a *Audience, answer *Answer) {
	if !answer.whole || answer.Content == nil {
		return
	}
	forgetLeft(a)
	remember(a, left{answer.path, answer.position, a.opts.Now()})
}

// remember adds what was left now. The lock is held.
func remember(a *Audience, now left) {
	a.left = slices.DeleteFunc(a.left, func(was left) bool { return was.path == now.path }) // what was told last counts
	a.left = append(a.left, now)
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
	if a.left = slices.DeleteFunc(a.left, func(l left) bool { return !a.isUnderWay(l.toldAt) }); len(a.left) == 0 {
		a.left = nil
	}
}

// isUnderWay reports whether what was told at a time may not have come yet; zero is never.
func (a *Audience) isUnderWay(toldAt time.Time) bool {
	return !toldAt.IsZero() && a.opts.Now().Sub(toldAt) <= underWay
}

// knownBeside returns what a client says that it knows of a place: it may have said so before it was
// told the last of another listen at that place, above it or below, also of one that has ended, or what it has read there.
func knownBeside(a *Audience, p tree.Path, known *watch.Known) *watch.Known {
	if known == nil {
		return nil
	}
	handedOn := a.order.Told() // before the look: what was told so far was woken for before
	a.mu.Lock()
	defer a.mu.Unlock()
	forgetLeft(a)
	for _, l := range a.left {
		if l.path.Overlaps(p) {
			known = knownSince(known, l.told)
		}
	}
	for _, answer := range a.sequence.reads {
		if answer.whole && answer.path.Overlaps(p) {
			known = knownSince(known, answer.position)
		}
	}
	for l := range plainBeside(a, p) {
		// Of what waits, some may be told before it ends, and the rest not, however long ago it was told something.
		waits := l.head != nil || l.woken || l.taking || l.told == 0 || a.sequence.paused
		switch {
		case !waits:
			known = knownSince(known, max(l.told, handedOn))
		case l.toldAt.IsZero(): // what it tells first is no older
			known = knownSince(known, l.since)
		default:
			known = knownSince(known, l.told)
		}
	}
	return known
}

// knownSince returns what a client says that it knows, if it was told only what was up to a position.
func knownSince(known *watch.Known, told uint64) *watch.Known {
	if known.Replaces && known.Told <= told {
		return known
	}
	return &watch.Known{Hash: known.Hash, Compound: known.Compound, Replaces: true, Told: told}
}

// plainBeside returns the listens without a query at a path, above it and below it. It looks at no others: a client may come
// back with thousands. The lock is held.
func plainBeside(a *Audience, p tree.Path) iter.Seq[*Listen] {
	return func(yield func(*Listen) bool) {
		for above := range p.Ancestors() {
			if l := a.listens[listenKey{path: above}]; l != nil && !yield(l) {
				return
			}
		}
		for i := plainFrom(a, p); i < len(a.plain) && p.Contains(a.plain[i].Path); i++ {
			if !yield(a.plain[i]) {
				return
			}
		}
	}
}

// plainFrom returns which listen without a query is the first at a path, or behind it: what is below a path comes next. The lock is
// held, as for the next two.
func plainFrom(a *Audience, p tree.Path) int {
	i, _ := slices.BinarySearchFunc(a.plain, p, func(l *Listen, p tree.Path) int { return l.Path.Compare(p) })
	return i
}

// keepPlain takes note of a listen that is there now.
func keepPlain(a *Audience, l *Listen) {
	if l.isPlain() {
		a.plain = slices.Insert(a.plain, plainFrom(a, l.Path), l)
	}
}

// forgetPlain undoes keepPlain.
func forgetPlain(a *Audience, l *Listen) {
	if !l.isPlain() {
		return
	}
	i := plainFrom(a, l.Path)
	if a.plain = slices.Delete(a.plain, i, i+1); len(a.plain) == 0 {
		a.plain = nil
	}
}

// isPlain reports whether a listen has no query: what it tells has no tag.
func (l *Listen) isPlain() bool { return l.key.query == query.Shared{} }
