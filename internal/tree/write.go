package tree

import (
	"cmp"
	"fmt"
	"slices"
)

// A Write is a request to change a tree. Its assignments take effect together
// or not at all.
type Write struct {
	// At is the location of the request.
	At Path
	// Patch says that the request was a PATCH: its assignments are children of
	// At, or deeper, and what they do not name stays.
	Patch bool
	// Assignments do not overlap. A write that is not a patch has one, at At.
	Assignments []Assignment
}

// An Assignment replaces the node at a path, or only that node's priority.
type Assignment struct {
	Path Path
	// Node is the new node, or a leaf that is the new priority.
	Node     Node
	Priority bool
	// Name is the key of a PATCH as the client spelled it.
	Name string
	// Void says, in a change, that the assignment has changed nothing: a delete,
	// that there was no data at the path; a priority, that there is none now to
	// carry it.
	Void bool
	// Object says, in a change, that a priority was given to an object. Without it,
	// and if it is not void, it was given to a leaf.
	Object bool
	// Leaf is, in a change, by how many keys the path is below a leaf that became an
	// object for it; 0 if there was none.
	Leaf int
}

// Put returns the write that replaces the node at p. Putting no data deletes.
func Put(p Path, n Node) Write {
	return Write{At: p, Assignments: []Assignment{{Path: p, Node: n}}}
}

// PutPriority returns the write that replaces the priority of the node at p.
// The leaf of n must be null, a number, a string or a server value.
func PutPriority(p Path, n Node) Write {
	return Write{At: p, Assignments: []Assignment{{Path: p, Node: n, Priority: true}}}
}

// A Change is a write as it was committed: in order, at one time, with every
// server value resolved.
type Change struct {
	Write
	// Position is the place of the commit in the order of its database, from 1.
	Position uint64
	// Millis is the time of the commit, in milliseconds since the UNIX epoch.
	Millis int64
	// Truncated says that the assignments were too large to keep: what is at
	// At and below may have changed in any way.
	Truncated bool
	// Settings says that settings of the database changed, and no data.
	Settings bool
	// Author is who made the change.
	Author Author
}

// OnlyDeletes reports whether the write can only make the tree smaller.
func (w Write) OnlyDeletes() bool {
	return !slices.ContainsFunc(w.Assignments, func(a Assignment) bool { return !a.Node.IsNull() })
}

// hasPlaceholders reports whether server values wait to be resolved.
func (w Write) hasPlaceholders() bool {
	return slices.ContainsFunc(w.Assignments, func(a Assignment) bool { return a.Node.HasPlaceholders() })
}

// CheckOverlap returns an error if assignments of the write overlap.
func (w Write) CheckOverlap() error { return checkOverlap(w.Assignments) }

// checkOverlap refuses assignments of which one decides what is at the place of
// another. The priority of a node overlaps with the node, not with its children.
func checkOverlap(assignments []Assignment) error {
	sorted := slices.Clone(assignments)
	slices.SortFunc(sorted, func(a, b Assignment) int {
		return cmp.Or(a.Path.Compare(b.Path), compareBools(a.Priority, b.Priority))
	})
	above := -1 // the last assignment of a whole node
	for i, a := range sorted {
		if above >= 0 && sorted[above].Path.Contains(a.Path) {
			return overlapError(sorted[above], a)
		}
		if a.Priority && i > 0 && sorted[i-1].Priority && sorted[i-1].Path == a.Path {
			return overlapError(sorted[i-1], a)
		}
		if !a.Priority {
			above = i
		}
	}
	return nil
}

func overlapError(a, b Assignment) error {
	return fmt.Errorf("the paths %q and %q overlap", a.Name, b.Name)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Bytes returns about how much memory the nodes of the write take.
func (w Write) Bytes() int {
	total := 0
	var last *slab // the assignments of a PATCH share one
	for _, a := range w.Assignments {
		if s := a.Node.slab; s != nil && s != last { // null has none
			total += a.Node.Bytes()
			last = s
		}
	}
	return total
}

// Bytes returns about how much memory is held by the node and all that it was
// made with.
func (n Node) Bytes() int {
	const cellBytes = 16
	if n.slab == nil {
		return 0
	}
	return len(n.slab.cells)*cellBytes + len(n.slab.text)
}
