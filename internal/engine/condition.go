package engine

import (
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A Condition is the ETag that the node at a path must have. Without an ETag it is that no
// value is at the path or above it: something written below would replace it.
type Condition struct {
	Path tree.Path
	ETag string
}

// conditions returns the paths that the request's preconditions are about.
func (r *Request) conditions() (paths []tree.Path) {
	if r.IfMatch != "" || r.IfHash != nil {
		paths = append(paths, r.At)
	}
	for _, c := range r.Also {
		paths = append(paths, c.Path)
	}
	return paths
}

// rests returns the paths that must not be touched between a look at the preconditions and the write. A write below a path makes
// no value there: for a condition without an ETag a name stands for the value that no child can have, so that only
// what is written at the path and above it counts.
func (r *Request) rests() []tree.Path {
	paths := r.conditions()
	for i, c := range r.Also {
		if c.ETag == "" {
			paths[len(paths)-len(r.Also)+i] = c.Path.Child(".value")
		}
	}
	return paths
}

var errMismatch = fault.New(fault.Precondition, "the ETag does not match")

// match compares nodes with what the client takes them for.
func (w *writer) match(t store.Tree, req Request, e state.Effort) error {
	if req.IfHash != nil {
		ok, err := w.db.source.HasHash(t, req.At, *req.IfHash, e.Bytes)
		if err != nil {
			return err
		}
		if !ok {
			return errMismatch
		}
	}
	if req.IfMatch != "" {
		tagOf := w.db.source.ETag
		if req.replacesPriority() {
			tagOf = w.db.source.PriorityETag
		}
		if err := matchTag(t, Condition{req.At, req.IfMatch}, tagOf, e); err != nil {
			return err
		}
	}
	for _, c := range req.Also {
		if err := matchTag(t, c, w.db.source.ETag, e); err != nil {
			return err
		}
	}
	return nil
}

// replacesPriority reports whether the request replaces no more than the priority of the node at At: its condition is about that alone.
func (r *Request) replacesPriority() bool {
	return !r.Patch && len(r.Assignments) == 1 && r.Assignments[0].Priority
}

// matchTag checks one condition, on what tagOf says.
func matchTag(t store.Tree, c Condition, tagOf func(store.Tree, tree.Path, int) (string, error), e state.Effort) error {
	if c.ETag == "" {
		return matchNoValue(t, c.Path)
	}
	tag, err := tagOf(t, c.Path, e.Bytes)
	if err == nil && tag != c.ETag {
		err = errMismatch
	}
	return err
}

// matchNoValue fails if there is a value at a path, or above it.
func matchNoValue(t store.Tree, p tree.Path) error {
	kind, err := t.Kind(p)
	for at := range p.Ancestors() {
		if err != nil || kind != tree.Null {
			break
		}
		kind, err = t.Kind(at)
	}
	if err == nil && kind != tree.Null {
		err = errMismatch
	}
	return err
}
