// Package model is the database as simply as it can be written: one tree of
// maps in memory. It is the oracle of the tests. The real tree, store and engine
// are given the same random requests, and wherever they answer differently from
// this package, one of the two is wrong.
//
// It is written from the documentation of the interface, and from what the hosted
// service was seen to do, and from nothing else. It imports no other package of Livetree, so that a mistake made there
// cannot be made here by inheritance. Nothing in it is fast: every write walks
// the whole tree once, every read sorts all keys it prints.
//
// A [Tree] changes by the requests of the interface: [Tree.Put],
// [Tree.PutPriority], [Tree.Patch] and [Tree.Delete]. It is read as text by
// [Tree.Plain], [Tree.Export], [Tree.Shallow] and [Tree.Priority]. Every write
// happens in two stages:
//
//  1. The body is read against the tree as it was before: judged, placeholders
//     replaced, increments computed. Any error ends the request here, so a
//     refused request changes nothing.
//  2. The result is put into the tree, and whatever holds no data is pruned.
//
// Pruning is where most rules about "no data" come true at once: a node without
// a leaf value and without children is removed, together with its priority, and
// then perhaps its parent. So null, {}, [null], {".priority":5} and the ancestors
// that a deletion leaves empty all end the same way.
//
// What is not modelled: queries, rules, events, ETags, push keys (a POST is a Put
// at a key that the test chooses) and the size limit of a body. Errors say why a
// request is refused, but only that it is refused (400) is part of the contract.
//
// A Tree is not safe for concurrent use.
package model

import (
	"maps"
	"slices"
)

// A Tree is a whole database. The zero value is an empty one.
type Tree struct {
	root *node // nil when there is no data at all
}

// A node is a location that holds data: either a leaf, whose value is not nil, or
// the parent of at least one child. Both may carry a priority. A location without
// data has no node. Only in the middle of a write are there nodes that are
// neither; prune removes them.
type node struct {
	value    any // bool, string, int64 or float64; nil for a node with children
	children map[string]*node
	priority any // string, int64 or float64; nil for none
}

func newNode() *node {
	return &node{children: map[string]*node{}}
}

// New returns an empty tree.
func New() *Tree {
	return &Tree{}
}

// Clone returns a copy that shares nothing with t.
func (t *Tree) Clone() *Tree {
	return &Tree{root: t.root.clone()}
}

func (n *node) clone() *node {
	if n == nil {
		return nil
	}
	c := &node{value: n.value, children: maps.Clone(n.children), priority: n.priority}
	for key, child := range c.children {
		c.children[key] = child.clone()
	}
	return c
}

// find returns the node at path, or nil when there is no data.
func (t *Tree) find(path []string) *node {
	n := t.root
	for _, key := range path {
		if n == nil {
			return nil
		}
		n = n.children[key]
	}
	return n
}

// Put replaces everything at path, the old priority included, by body: JSON text
// that may hold .value, .priority and .sv. A body without data deletes.
func (t *Tree) Put(path []string, body []byte, nowMillis int64) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	parsed, err := parseJSON(body)
	if err != nil {
		return err
	}
	r := reader{before: t, nowMillis: nowMillis}
	data, err := r.node(path, parsed)
	if err != nil {
		return err
	}
	t.root = prune(assign(t.root, path, data))
	return nil
}

// PutPriority is PUT <path>/.priority.json: body is a string, a number, null, or
// a placeholder. Where there is no data it is judged, but changes nothing.
func (t *Tree) PutPriority(path []string, body []byte, nowMillis int64) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	parsed, err := parseJSON(body)
	if err != nil {
		return err
	}
	r := reader{before: t, nowMillis: nowMillis}
	priority, err := r.priority(path, parsed)
	if err != nil {
		return err
	}
	t.setPriority(path, priority)
	return nil
}

// Patch replaces the children that body names, each as Put would, and leaves the
// others and all priorities above them in place. The keys of body may be paths
// relative to path, and may end in .priority. A null body deletes.
//
// All assignments happen at once: a node that loses its last old child and gains
// a new one in the same request never was empty, and keeps its priority.
// Priorities come last, so one can be set on a node that the request creates.
func (t *Tree) Patch(path []string, body []byte, nowMillis int64) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	parsed, err := parseJSON(body)
	if err != nil {
		return err
	}
	if parsed == nil {
		t.Delete(path)
		return nil
	}
	r := reader{before: t, nowMillis: nowMillis}
	assignments, err := r.assignments(path, parsed)
	if err != nil {
		return err
	}
	for _, a := range assignments {
		if !a.toPriority {
			t.root = assign(t.root, a.path, a.data)
		}
	}
	t.root = prune(t.root)
	for _, a := range assignments {
		if a.toPriority {
			t.setPriority(a.path, a.priority)
		}
	}
	return nil
}

// Delete removes everything at path. Where there is no data it does nothing.
func (t *Tree) Delete(path []string) {
	t.root = prune(assign(t.root, path, nil))
}

// assign returns n with data (nil for no data) in place of what was at path below
// it. Data below a leaf takes the place of the leaf's value, not of its priority;
// removing what does not exist below a leaf leaves the leaf alone. The nodes that
// lead to path are created, also for no data: the caller prunes.
func assign(n *node, path []string, data *node) *node {
	if len(path) == 0 {
		return data
	}
	if n == nil {
		n = newNode()
	}
	if data != nil {
		n.value = nil
	}
	key := path[0]
	n.children[key] = assign(n.children[key], path[1:], data)
	return n
}

// prune removes every node below n that holds no data, and returns n, or nil when
// n itself is such a node.
func prune(n *node) *node {
	if n == nil {
		return nil
	}
	for key, child := range n.children {
		if prune(child) == nil {
			delete(n.children, key)
		}
	}
	if n.value == nil && len(n.children) == 0 {
		return nil
	}
	return n
}

// setPriority gives the node at path a priority, or takes it away (nil).
// A location without data cannot carry one.
func (t *Tree) setPriority(path []string, priority any) {
	if n := t.find(path); n != nil {
		n.priority = priority
	}
}

// child returns the path of key below path, without sharing memory with it.
func child(path []string, key string) []string {
	return append(slices.Clone(path), key)
}
