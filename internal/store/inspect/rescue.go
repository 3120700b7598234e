package inspect

import (
	"bytes"
	"errors"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A rescue of many rows is written in portions of this size.
const (
	rescueRows  = 500
	rescueBytes = 1 << 20
)

// Rescued is what a rescue has copied of a database, and what it could not.
type Rescued struct {
	Rows int
	// Unreadable are the paths of rows that are in order on disk, but that make
	// no sense.
	Unreadable []string
	Settings   layout.Settings // as they were
}

// A Target is an empty database that a rescue writes to, one write after the other.
type Target interface {
	Settings(layout.Settings) error
	Write(tree.Write) error
	// Exists reports whether the writes so far left data at a path.
	Exists(tree.Path) (bool, error)
}

// RescueTo writes what can be read of a database to a target. It writes the tree
// again, so that all that follows from it is right: what is lost is not there, and
// nothing else is. The settings are what change makes of those that can be read.
func (a *Archive) RescueTo(into Target, l *Losses, id layout.ID, change func(layout.Settings) (layout.Settings, error)) (Rescued, error) {
	r := &rescue{into: into, result: Rescued{Settings: layout.Settings{}}}
	prefix := layout.SettingKey(id, "")
	hooks, _ := layout.HooksRange(id) // what they have not delivered is not rescued
	err := a.readable(l, prefix, hooks, func(key, row []byte) error {
		r.result.Settings[string(key[len(prefix):])] = bytes.Clone(row)
		return nil
	})
	if err != nil {
		return r.result, err
	}
	settings, err := change(r.result.Settings)
	if err != nil {
		return r.result, err
	}
	if len(settings) > 0 {
		if err := into.Settings(settings); err != nil {
			return r.result, err
		}
	}
	// A split node has its priority before its children, but must be there to get
	// it: priorities come second.
	for _, pass := range []func(key, row []byte) error{r.data, r.priority} {
		if err := a.readable(l, layout.DataPrefix(id), layout.AppendSpace(nil, layout.SpaceData, id+1), pass); err != nil {
			return r.result, err
		}
		if err := r.flush(); err != nil {
			return r.result, err
		}
	}
	return r.result, nil
}

// A rescue writes the rows of one database.
type rescue struct {
	into   Target
	result Rescued

	waiting []tree.Assignment
	bytes   int
}

// data takes a chunk.
func (r *rescue) data(key, row []byte) error {
	p, isPriority, err := layout.CutDataKey(key)
	if isPriority {
		return nil
	}
	n, decodeErr := layout.DecodeChunk(row)
	if errors.Join(err, decodeErr) != nil {
		r.result.Unreadable = append(r.result.Unreadable, layout.PathOf(key).String())
		return nil
	}
	return r.add(tree.Assignment{Path: p, Node: n}, len(row))
}

// priority takes the priority of a split node, unless the node is lost.
func (r *rescue) priority(key, row []byte) error {
	p, isPriority, err := layout.CutDataKey(key)
	if err != nil || !isPriority {
		return nil
	}
	leaf, err := seek.DecodePriority(key, row)
	if err != nil {
		r.result.Unreadable = append(r.result.Unreadable, p.String())
		return nil
	}
	exists, err := r.into.Exists(p)
	if err != nil || !exists {
		return err
	}
	r.result.Rows++
	return r.into.Write(tree.PutPriority(p, tree.LeafNode(leaf)))
}

func (r *rescue) add(a tree.Assignment, size int) error {
	r.result.Rows++
	if a.Path == (tree.Path{}) {
		return r.into.Write(tree.Put(a.Path, a.Node))
	}
	r.waiting = append(r.waiting, a)
	r.bytes += size
	if len(r.waiting) < rescueRows && r.bytes < rescueBytes {
		return nil
	}
	return r.flush()
}

func (r *rescue) flush() error {
	if len(r.waiting) == 0 {
		return nil
	}
	w := tree.Write{Patch: true, Assignments: r.waiting}
	r.waiting, r.bytes = nil, 0
	return r.into.Write(w)
}
