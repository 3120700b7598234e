package rules

import (
	"iter"
	"maps"
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// valueIndex is the entry of .indexOn for the order by value.
const valueIndex = ".value"

// Indexes returns the entries of .indexOn in force at a location, whose children
// they are about: paths below each child ("name", "a/b") or ".value". The caller
// must not change the slice.
func (r *Ruleset) Indexes(p tree.Path) []string {
	n := r.at(p)
	if n == nil {
		return nil
	}
	return n.indexes
}

// at returns the rules of a location, nil if there are none.
func (r *Ruleset) at(p tree.Path) *node {
	n := &r.root
	for key := range p.Keys() {
		if n, _ = n.child(key); n == nil {
			return nil
		}
	}
	return n
}

// IndexedAbove yields the locations above p that have indexes, and those
// indexes, the root first. They are what a write at p can change, beside those
// at p and below. It looks no deeper than the document has indexes.
func (r *Ruleset) IndexedAbove(p tree.Path) iter.Seq2[tree.Path, []string] {
	return func(yield func(tree.Path, []string) bool) {
		n, at := &r.root, tree.Path{}
		for key := range p.Keys() {
			if n == nil || !n.indexed {
				return
			}
			if len(n.indexes) > 0 && !yield(at, n.indexes) {
				return
			}
			n, _ = n.child(key)
			if n != nil && n.indexed {
				at = at.Child(key)
			}
		}
	}
}

// IndexedBelow reports whether a location at p or below can have indexes.
func (r *Ruleset) IndexedBelow(p tree.Path) bool {
	n := &r.root
	for key := range p.Keys() {
		if !n.indexed {
			return false
		}
		if n, _ = n.child(key); n == nil {
			return false
		}
	}
	return n.indexed
}

// An IndexPattern is one entry of .indexOn with the locations it can be for.
type IndexPattern struct {
	// Keys lead from the root to the locations; one that begins with a dollar sign
	// stands for any key, except those that have a literal sibling in the rules.
	// So whether a location has the index is up to Indexes.
	Keys []string
	// Except are, for each of the keys that stands for any, those literal
	// siblings; nil for the others.
	Except [][]string
	Index  string
}

// IndexPatterns returns every entry of every .indexOn, in the order of the keys.
func (r *Ruleset) IndexPatterns() []IndexPattern {
	return r.root.appendPatterns(nil, nil, nil)
}

func (n *node) appendPatterns(patterns []IndexPattern, keys []string, except [][]string) []IndexPattern {
	if !n.indexed {
		return patterns
	}
	for _, index := range n.indexes {
		patterns = append(patterns, IndexPattern{slices.Clone(keys), slices.Clone(except), index})
	}
	literals := slices.SortedFunc(maps.Keys(n.children), tree.CompareKeys)
	for _, key := range literals {
		patterns = n.children[key].appendPatterns(patterns, append(keys, key), append(except, nil))
	}
	if n.wildcard != nil {
		patterns = n.wildcard.appendPatterns(patterns, append(keys, anyKey), append(except, literals))
	}
	return patterns
}

// anyKey stands for the keys that a wildcard matches.
const anyKey = "$"
