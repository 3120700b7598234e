package batch

import (
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// emitIndexes adds the rows of the children of a node that is split.
func (w *writer) emitIndexes(key []byte, n tree.Node, indexes []layout.Index) error {
	prioritised := false
	for _, child := range n.Children() {
		if prioritised = !child.Priority().IsNull(); prioritised {
			break
		}
	}
	prioritised = prioritised || w.prepared.havePriority(w.reader.ID, key)
	if prioritised {
		if err := w.setKeeping(key, layout.Keeping{Kept: true}); err != nil {
			return err
		}
		indexes = append([]layout.Index{layout.ByPriority()}, indexes...)
	}
	if len(indexes) == 0 {
		return nil
	}
	for name, child := range n.Children() {
		component := layout.AppendComponent(nil, name)
		childKey := append(key[:len(key):len(key)], component...)
		child = w.prepared.nodeAt(childKey, child, tree.Path{})
		for _, index := range indexes {
			order, ordered := index.Order, child
			if path, ok := order.Child(); ok {
				order, ordered = query.ByValue(), w.prepared.nodeAt(childKey, child, path)
			}
			value := order.Value(ordered)
			w.scratch = layout.IndexKey(w.scratch[:0], key, index.Number, value, component)
			if err := w.set(w.scratch, nil); err != nil {
				return err
			}
			if w.times != nil && order.IsTime(ordered) {
				w.times.noteIndexed(w.rows, component)
			}
		}
	}
	return nil
}

// setKeeping notes that a parent keeps the index by priority.
func (w *writer) setKeeping(parent []byte, k layout.Keeping) error {
	return w.rows.Set(layout.IndexPrefix(nil, parent, layout.PriorityIndex), k.AppendTo(nil), nil)
}
