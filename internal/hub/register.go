// Package hub tells who is concerned by a change, and holds what they are to be
// told until they take it.
//
// A [Register] finds what is registered at, above and below a path, at a cost
// that depends on what it finds and not on what else there is.
//
// A [Topic] is a list of messages that its subscriptions share. Publishing never
// blocks and never waits for a reader: what a topic keeps is bounded, as is what
// all topics of a [Budget] keep together, and a [Subscription] that falls behind
// that is told that it missed something. What the messages are, and how a reader
// makes up for what it missed, is not the hub's business.
package hub

import "github.com/livetree/livetree/internal/tree"

// A Register holds members by path. It is not safe for concurrent use; its zero
// value is empty.
type Register[T comparable] struct {
	root branch[T]
}

// A branch is what a register holds at a path and below it.
type branch[T comparable] struct {
	members  map[T]struct{}
	children map[string]*branch[T]
}

// Add registers a member at a path. It may be registered at several.
func (r *Register[T]) Add(p tree.Path, member T) {
	at := &r.root
	for key := range p.Keys() {
		next := at.children[key]
		if next == nil {
			next = &branch[T]{}
			if at.children == nil {
				at.children = make(map[string]*branch[T])
			}
			at.children[key] = next
		}
		at = next
	}
	if at.members == nil {
		at.members = make(map[T]struct{})
	}
	at.members[member] = struct{}{}
}

// Remove undoes Add.
func (r *Register[T]) Remove(p tree.Path, member T) { r.root.remove(p, member) }

func (at *branch[T]) remove(p tree.Path, member T) {
	if p.IsRoot() {
		delete(at.members, member)
		return
	}
	key, rest := p.Cut()
	child := at.children[key]
	if child == nil {
		return
	}
	child.remove(rest, member)
	if len(child.members) == 0 && len(child.children) == 0 {
		delete(at.children, key)
	}
}

// Concerned calls yield with every member at p, above it and below it.
func (r *Register[T]) Concerned(p tree.Path, yield func(T)) {
	at := &r.root
	for key := range p.Keys() {
		at.yield(yield)
		if at = at.children[key]; at == nil {
			return
		}
	}
	at.all(yield)
}

// Concerns reports whether anything is at p, above it or below it.
func (r *Register[T]) Concerns(p tree.Path) bool {
	at := &r.root
	for key := range p.Keys() {
		if len(at.members) > 0 {
			return true
		}
		if at = at.children[key]; at == nil {
			return false
		}
	}
	return len(at.members) > 0 || len(at.children) > 0
}

func (at *branch[T]) yield(yield func(T)) {
	for member := range at.members {
		yield(member)
	}
}

func (at *branch[T]) all(yield func(T)) {
	at.yield(yield)
	for _, child := range at.children {
		child.all(yield)
	}
}
