package batch

import (
	"bytes"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
)

// This file decides which split nodes keep the index by priority.
//
// A node keeps it from the first child with a priority on, and a row of its own
// says so. Until then no child had a priority, so that the rows of the others
// follow from their keys. The write that brings the first priority adds them if
// they are few. If they are many, it adds some, and puts the node into a list of
// those whose index is to be built: see prioritybuild.go.

// prioritised reports whether a parent keeps the index by priority, also if this
// write made it so.
func (x *indexer) prioritised(parent []byte) (bool, error) {
	if active, known := x.withPriorities[string(parent)]; known {
		return active, nil
	}
	e := x.plan.frontier.find(parent)
	if e != nil && e.plain {
		return false, nil
	}
	k, err := x.reader.Keeping(parent)
	if err != nil {
		return false, err
	}
	if e != nil && !k.Kept {
		e.plain = true
		return false, nil
	}
	x.notePriorities(parent, k.Kept)
	return k.Kept, nil
}

// notePriorities remembers whether a parent keeps the index by priority.
func (x *indexer) notePriorities(parent []byte, active bool) {
	if x.withPriorities == nil {
		x.withPriorities = make(map[string]bool)
	}
	x.withPriorities[string(parent)] = active
	if e := x.plan.frontier.find(parent); e != nil && active {
		e.plain = false
	}
}

// activatePriorities begins the index by priority of a parent with the first child
// that has one. All parents of a write together get no more than PriorityRows rows
// here; what is missing then is built later.
func (x *indexer) activatePriorities(c *indexedChild) error {
	if c.after.Priority.IsNull() || !c.after.Exists {
		return nil
	}
	active, err := x.prioritised(c.parent)
	if active || err != nil {
		return err
	}
	x.notePriorities(c.parent, true)
	k := layout.Keeping{Kept: true}
	err = x.reader.EachChild(c.parent, nil, func(end int, key []byte) (bool, error) {
		component := key[len(c.parent):end]
		if x.activated == x.priorityRows {
			k.Begun, k.Cursor = x.position, bytes.Clone(component)
			return false, nil
		}
		x.activated++
		x.scratch = layout.IndexKey(x.scratch[:0], c.parent, layout.PriorityIndex, query.Value{}, component)
		return true, x.writer.rows.Set(x.scratch, nil, nil)
	})
	if err == nil && k.IsBuilding() {
		err = x.listUnbuilt(c.parent)
	}
	if err != nil {
		return err
	}
	return x.writer.setKeeping(c.parent, k)
}

// listUnbuilt puts a parent into the list of those whose index by priority is to be
// built. Versions that do not know the list cannot open a store with a log row that
// this one writes.
func (x *indexer) listUnbuilt(parent []byte) error {
	x.begins = true
	return x.writer.rows.Set(layout.UnbuiltKey(x.reader.ID, x.position, parent), nil, nil)
}
