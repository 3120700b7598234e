package layout

import (
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// An Index is an order of children that rows are kept for. Its number is never
// used for another one.
type Index struct {
	Number uint32
	Order  query.Order
}

// Indexes say which indexes are in force where. They are a tree of keys, in
// which a wildcard stands for all keys that have no entry of their own. A nil
// *Indexes has none.
type Indexes struct {
	Here []Index
	// Due are those by which children expire. They are in the order of time over all
	// locations, and no query reads them.
	Due      []Index
	expires  bool // there are such here or below
	Children map[string]*Indexes
	Wildcard *Indexes
}

// Expires reports whether children expire here or below.
func (x *Indexes) Expires() bool { return x != nil && x.expires }

// NoteExpiry notes where children expire. It is called once, for the root.
func (x *Indexes) NoteExpiry() bool {
	x.expires = x.Wildcard != nil && x.Wildcard.NoteExpiry() || len(x.Due) > 0
	for _, child := range x.Children {
		x.expires = child.NoteExpiry() || x.expires
	}
	return x.expires
}

// DueHere returns the indexes by which the children here expire.
func (x *Indexes) DueHere() []Index {
	if x == nil {
		return nil
	}
	return x.Due
}

// Child returns the indexes below a key.
func (x *Indexes) Child(key string) *Indexes {
	if x == nil {
		return nil
	}
	if child, ok := x.Children[key]; ok {
		return child
	}
	return x.Wildcard
}

// At returns the indexes that are in force at a location.
func (x *Indexes) At(p tree.Path) []Index { return x.Below(p).List() }

// Below returns the indexes at a location and below it.
func (x *Indexes) Below(p tree.Path) *Indexes {
	for key := range p.Keys() {
		x = x.Child(key)
	}
	return x
}

// List returns the indexes that are in force here.
func (x *Indexes) List() []Index {
	if x == nil {
		return nil
	}
	return x.Here
}

// Has reports whether the index with a number is in force here.
func (x *Indexes) Has(number uint32) bool {
	for _, index := range x.List() {
		if index.Number == number {
			return true
		}
	}
	return false
}

// IndexesAt returns the indexes of which one is in force, at one path.
func IndexesAt(p tree.Path, index Index) *Indexes {
	root := &Indexes{}
	x := root
	for key := range p.Keys() {
		child := &Indexes{}
		x.Children = map[string]*Indexes{key: child}
		x = child
	}
	x.Here = []Index{index}
	return root
}
