package store

import (
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/tree"
)

// recall returns the text of a read, nil if it is not known.
func (t Tree) recall(k *memo.Key) []byte {
	if t.origin == nil || t.reader.Cost != nil {
		return nil
	}
	text := t.store.memos.Text(k, t.origin.number)
	if text != nil && k.Digest == 0 {
		t.store.counters.memoHits.Add(1)
	}
	return text
}

// newDraft returns what a read of a split node is remembered by, nil if it is not
// worth remembering. The read was not recalled: that is counted here, because only now
// it is known that the node is split.
func (t Tree) newDraft(k *memo.Key) *memo.Draft {
	if t.origin == nil || t.reader.Cost != nil {
		return nil
	}
	t.store.counters.memoMisses.Add(1)
	return t.store.memos.Draft(k, t.origin.number)
}

// newShape returns what the shape of a node is remembered by, nil if it is not.
func newShape(t Tree, p tree.Path) *memo.Draft {
	if t.origin == nil || t.reader.Cost != nil {
		return nil
	}
	return t.store.memos.Shape(t.reader.ID, p, t.origin.number)
}

// Stamp returns the number of a view that shows the newest write to what is at p, or of a
// later one: what a view with that number, or a greater one, shows there is still so.
func (t Tree) Stamp(p tree.Path) uint64 { return t.store.memos.Stamp(t.reader.ID, p) }
