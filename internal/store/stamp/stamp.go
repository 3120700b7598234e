// Package stamp tells in which view something in a tree has changed for the last time, for those who remember
// what they have read there.
//
// Stamps are those of all that is at a path and below it. Keys are those of the keys alone that a node's children have. Both
// are told of each commit before any view shows it. A path shares its stamp with others, by chance: a stamp may be too
// new, never too old. So who forgets what is older than its stamp shows nothing wrong.
//
// They take the same memory however many paths there are. A look, and a commit's stamp for a path, take time by the depth of
// the path.
package stamp

import (
	"sync/atomic"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// places are the stamps of paths, by their hashes.
type places [1 << 12]atomic.Uint64

func (p *places) at(hash uint32) *atomic.Uint64 { return &p[hash%uint32(len(p))] }

// Stamps tell in which view a location changed for the last time.
//
// A write at a path changes what is at it, what is above it, and what is below
// it. So it leaves its stamp in below for the path and all above it, and in at
// for the path; a reader looks in below for his location, and in at for all
// above it.
//
// The stamp of a commit is the number of the first view that shows it, and it is
// set before that view is published: who has the view sees the stamp. Commits
// stamp under the gate, so that all that do it at a time stamp the same number,
// and later ones a greater one.
type Stamps struct{ below, at places }

// Touch stamps a write at p.
func (s *Stamps) Touch(id layout.ID, p tree.Path, view uint64) {
	h := hashDatabase(id)
	s.below.at(h).Store(view)
	for key := range p.Keys() {
		h = hashKey(h, key)
		s.below.at(h).Store(view)
	}
	s.at.at(h).Store(view)
}

// Of returns the stamp of what is at p.
func (s *Stamps) Of(id layout.ID, p tree.Path) uint64 {
	newest, _ := s.Look(id, p)
	return newest
}

// Look returns the stamp of what is at p, and the hash of p.
func (s *Stamps) Look(id layout.ID, p tree.Path) (newest uint64, hash uint32) {
	hash = hashDatabase(id)
	for key := range p.Keys() {
		newest = max(newest, s.at.at(hash).Load())
		hash = hashKey(hash, key)
	}
	return max(newest, s.below.at(hash).Load()), hash
}

// Keys are stamps of the keys that the children of nodes have: a write leaves one only where children come or go. Those of single
// children are apart, so that a list of keys can be amended, or gone on with at its end.
type Keys struct {
	others        Stamps
	single, ended places
}

// Relist stamps a place where children come or go.
func (k *Keys) Relist(id layout.ID, r batch.Relisting, view uint64) {
	switch r.Reach {
	case batch.CameLast:
		k.ended.at(Hash(id, r.Path.Parent())).Store(view)
	case batch.Came, batch.Gone:
		k.single.at(Hash(id, r.Path.Parent())).Store(view)
	case batch.Subtree:
		h := Hash(id, r.Path)
		k.others.below.at(h).Store(view)
		k.others.at.at(h).Store(view)
	default:
		k.Undo(id, r, view)
	}
}

// Undo stamps a place where children were to come or go, and did not.
func (k *Keys) Undo(id layout.ID, r batch.Relisting, view uint64) { k.others.Touch(id, r.Path, view) }

// Of returns the stamp of the keys of the node at p, but for single children.
func (k *Keys) Of(id layout.ID, p tree.Path) uint64 { return k.others.Of(id, p) }

// Single returns the stamp of the last child of the node at p that came, not after all others, or went.
func (k *Keys) Single(id layout.ID, p tree.Path) uint64 { return k.single.at(Hash(id, p)).Load() }

// Ended returns the stamp of the last child that came after all others of the node at p.
func (k *Keys) Ended(id layout.ID, p tree.Path) uint64 { return k.ended.at(Hash(id, p)).Load() }

// Hash returns that of a path in a database.
func Hash(id layout.ID, p tree.Path) uint32 {
	h := hashDatabase(id)
	for key := range p.Keys() {
		h = hashKey(h, key)
	}
	return h
}

// A path is hashed by FNV-1a: its database, and key by key.
func hashDatabase(id layout.ID) uint32 { return uint32(id) * 0x9E3779B1 }

func hashKey(h uint32, key string) uint32 {
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return (h ^ '/') * 16777619
}
