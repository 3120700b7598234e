package deliver_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/tree"
)

// This file has the writes of a history, and a model of what they are to hooks.

// write makes a random write, and notes what must be delivered.
func (h *history) write() {
	h.make(h.randomWrite())
}

// burst writes one location often, so that it has more deliveries than its share.
func (h *history) burst() {
	p := h.randomPath(2)
	for i := range 2 + h.random.IntN(12) {
		n, _ := tree.DecodeBytes([]byte(fmt.Sprint(100+i)), tree.DecodeOptions{})
		h.make(tree.Put(p, n))
	}
}

// make makes a write.
func (h *history) make(w tree.Write) {
	next := h.tree
	for _, a := range w.Assignments {
		next = assign(next, slices.Collect(a.Path.Keys()), decode(h.t, tree.AppendJSON(nil, a.Node, tree.Plain)))
	}
	commit, err := h.site.database("db").Write(h.t.Context(), engine.Request{Write: w, Who: auth.Identity{Admin: true}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.expect(next, commit.Position)
	h.tree = next
}

// expect notes what a commit must have delivered, which makes another tree.
func (h *history) expect(next any, position uint64) {
	for _, m := range h.hooks {
		pattern := strings.Split(m.pattern[1:], "/")
		places := map[string]bool{}
		find(h.tree, pattern, "", places)
		find(next, pattern, "", places)
		for place := range places {
			before, after := at(h.tree, place), at(next, place)
			if reflect.DeepEqual(before, after) {
				continue
			}
			event := "update"
			if before == nil {
				event = "create"
			} else if after == nil {
				event = "delete"
			}
			h.want[key{m.id, position, place}] = change{event, before, after, time.Now()}
		}
	}
}

// randomWrite returns a PUT or a PATCH.
func (h *history) randomWrite() tree.Write {
	if h.random.IntN(3) > 0 {
		p := h.randomPath(h.random.IntN(4))
		return tree.Put(p, h.randomNode(3-p.Depth()))
	}
	w := tree.Write{Patch: true}
	for range 1 + h.random.IntN(4) {
		p := h.randomPath(1 + h.random.IntN(3))
		w.Assignments = append(w.Assignments, tree.Assignment{Path: p, Node: h.randomNode(3 - p.Depth()), Name: p.String()})
	}
	if w.CheckOverlap() != nil {
		return h.randomWrite()
	}
	return w
}

func (h *history) randomPath(depth int) (p tree.Path) {
	for range depth {
		p = p.Child(string(rune('a' + h.random.IntN(3))))
	}
	return p
}

func (h *history) randomNode(depth int) tree.Node {
	n, err := tree.DecodeBytes([]byte(h.randomText(depth)), tree.DecodeOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *history) randomText(depth int) string {
	switch n := h.random.IntN(6); {
	case n == 0:
		return "null"
	case n < 3 || depth <= 0:
		return fmt.Sprint(h.random.IntN(3))
	}
	var parts []string
	for _, k := range []string{"a", "b", "c"} {
		if h.random.IntN(2) == 0 {
			parts = append(parts, fmt.Sprintf("%q:%s", k, h.randomText(depth-1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// assign returns a tree with a value at a place. It is the obvious way, and shares nothing with the server.
func assign(t any, keys []string, v any) any {
	if len(keys) == 0 {
		return v
	}
	old, _ := t.(map[string]any)
	child := assign(old[keys[0]], keys[1:], v)
	if old == nil && child == nil {
		return t
	}
	next := map[string]any{}
	for k, c := range old {
		next[k] = c
	}
	if next[keys[0]] = child; child == nil {
		delete(next, keys[0])
	}
	if len(next) == 0 {
		return nil
	}
	return next
}

func at(t any, place string) any {
	for k := range strings.SplitSeq(place[1:], "/") {
		object, _ := t.(map[string]any)
		t = object[k]
	}
	return t
}

// find adds the places that a pattern matches.
func find(t any, pattern []string, place string, into map[string]bool) {
	if len(pattern) == 0 {
		into[place] = true
		return
	}
	object, _ := t.(map[string]any)
	for k, child := range object {
		if k == pattern[0] || strings.HasPrefix(pattern[0], "$") {
			find(child, pattern[1:], place+"/"+k, into)
		}
	}
}
