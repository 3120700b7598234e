package store

import (
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/tree"
)

// This file remembers what rules look up in views, and charges them for it what it cost to read: the chunk that it is in, which may have grown
// or shrunk since, within what a chunk may have.

// recallSight returns what is known of a look-up in a view, nil if nothing is.
func recallSight(t Tree, l *memo.Lookup) *memo.Sight {
	l.ID, l.View = t.reader.ID, t.origin.number
	s := t.store.memos.Sight(l)
	if s != nil {
		t.reader.Cost.Rows += s.Cost.Rows
		t.reader.Cost.Bytes += s.Cost.Bytes
	}
	return s
}

// keepSight remembers what was found, at what it cost since before.
func keepSight(t Tree, l *memo.Lookup, s memo.Sight, before Cost) {
	s.Cost = Cost{Rows: t.reader.Cost.Rows - before.Rows, Bytes: t.reader.Cost.Bytes - before.Bytes}
	t.store.memos.KeepSight(l, s)
}

// isSighted reports whether what is looked up is remembered: in a view, by those who are charged for it.
func isSighted(t Tree) bool { return t.origin != nil && t.reader.Cost != nil }

// Exists reports whether there is data at p.
func (t Tree) Exists(p tree.Path) (bool, error) {
	if !isSighted(t) {
		return exists(t, p)
	}
	l := memo.Lookup{Path: p, Aspect: memo.Existence}
	if s := recallSight(t, &l); s != nil {
		return s.Exists, nil
	}
	before := *t.reader.Cost
	there, err := exists(t, p)
	if err == nil {
		keepSight(t, &l, memo.Sight{Exists: there}, before)
	}
	return there, err
}

// LookWithin is Look, but reports false for what is in a chunk of more than most
// bytes, which it does not decode.
func (t Tree) LookWithin(p tree.Path, most int) (leaf, priority tree.Leaf, within bool, err error) {
	if !isSighted(t) {
		return lookWithin(t, p, most)
	}
	l := memo.Lookup{Path: p, Aspect: memo.LeafThere}
	if s := recallSight(t, &l); s != nil {
		if s.Cost.Bytes > most {
			return leaf, priority, false, nil
		}
		return s.Leaf, s.Priority, true, nil
	}
	before := *t.reader.Cost
	leaf, priority, within, err = lookWithin(t, p, most)
	if err == nil && within {
		keepSight(t, &l, memo.Sight{Leaf: leaf, Priority: priority}, before)
	}
	return leaf, priority, within, err
}
