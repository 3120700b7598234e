package rules

import (
	"maps"
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// valueIndex is the entry of .indexOn for the order by value.
const valueIndex = ".value"

// An IndexPattern is one entry of .indexOn, or an .expireOn, with the locations it can be for.
type IndexPattern struct {
	// Keys lead from the root to the parents of the children that the index is about.
	// One that begins with a dollar sign stands for any key that has no literal
	// sibling in the rules.
	Keys []string
	// Except are, for each of the keys that stands for any, those literal
	// siblings; nil for the others.
	Except [][]string
	// Index is a path below each child ("name", "a/b") or ".value".
	Index string
	// Expires says that the children are deleted when the time at Index is over. There is
	// another pattern for the index itself, which queries use.
	Expires bool
}

// IndexPatterns returns every entry of every .indexOn and .expireOn, in the order of the keys.
func (r *Ruleset) IndexPatterns() []IndexPattern {
	return r.root.appendPatterns(nil, nil, nil)
}

func (n *node) appendPatterns(patterns []IndexPattern, keys []string, except [][]string) []IndexPattern {
	if !n.indexed {
		return patterns
	}
	for _, index := range n.queried() {
		patterns = append(patterns, IndexPattern{slices.Clone(keys), slices.Clone(except), index, false})
	}
	if n.expiry != nil {
		patterns = append(patterns, IndexPattern{slices.Clone(keys), slices.Clone(except), n.expiry.on, true})
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
