package watch

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// This file makes the events of places where each change is one event. A client that is
// told of an update in two pieces would show half of it for a moment.

// cutFor is cut for a place.
func (e *Effect) cutFor(k placeKey, same map[*part]bool) ([]fragment, bool) {
	fragments, ok := e.cut(k.path, k.form, same)
	if ok && k.whole {
		fragments = joined(fragments)
	}
	return fragments, ok
}

// joined returns fragments as one: a patch of the place, whose keys are paths.
func joined(fragments []fragment) []fragment {
	if len(fragments) < 2 {
		return fragments
	}
	one := fragment{patch: true}
	for i := range fragments {
		one.members = append(one.members, fragments[i].flat()...)
	}
	return []fragment{one}
}

// flat returns what a fragment says, each with its path from the place.
func (f *fragment) flat() []member {
	path := strings.TrimPrefix(f.path.String(), "/")
	switch {
	case f.priority:
		return []member{{below(path, ".priority"), f.node}}
	case !f.patch:
		return []member{{path, f.node}}
	}
	members := make([]member, len(f.members))
	for i, m := range f.members {
		members[i] = member{below(path, m.key), m.node}
	}
	return members
}

// below returns the path of a key as text.
func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "/" + key
}

// windowEvent is windowEvents in one event. Where several changes came together, the
// children that stayed are told whole.
func (d *dispatcher) windowEvent(at *place, after *state.View, effects []*Effect, m moves, when moment) ([]hub.Message[*Event], bool) {
	messages := d.messages[:0]
	text := newPatchText(d.set.budget)
	brought := []move{entered}
	if len(effects) > 1 {
		brought = append(brought, stayed)
	}
	if err := text.addMoves(at, after, m, brought...); err != nil {
		return nil, false
	}
	if len(effects) == 1 {
		fragments, ok := effects[0].cut(at.path, at.form, d.unread.same(effects[0], nil))
		if !ok || !text.addFragments(only(fragments, m.stays), at.form) {
			return nil, false
		}
	}
	if value := text.end(); value != nil {
		when.millis = effects[len(effects)-1].Millis
		messages = append(messages, when.message(Patch, tree.Path{}, value, true))
	}
	return messages, true
}

// stays reports whether a child that was touched stayed in the window.
func (m moves) stays(key string) bool {
	became, ok := m[key]
	return ok && became == stayed
}

// A patchText is the value of a patch while it is made.
type patchText struct {
	limitedBuffer
	limit int
}

func newPatchText(b *hub.Budget) *patchText {
	limit := int(b.Limit() / 2)
	return &patchText{limitedBuffer: limitedBuffer{left: limit}, limit: limit}
}

// key begins a member.
func (t *patchText) key(key string) {
	lead := byte(',')
	if t.Len() == 0 {
		lead = '{'
	}
	t.WriteByte(lead)
	t.WriteString(string(append(tree.AppendString(nil, key), ':')))
}

// end returns the patch, nil if it says nothing.
func (t *patchText) end() []byte {
	if t.Len() == 0 {
		return nil
	}
	t.WriteByte('}')
	return t.Bytes()
}

// addMoves adds the children that left, and those that became what is to be brought.
func (t *patchText) addMoves(at *place, after *state.View, m moves, brought ...move) error {
	for _, key := range slices.SortedFunc(maps.Keys(m), tree.CompareKeys) {
		if m[key] == left {
			t.key(key)
			t.WriteString("null")
		}
		if !slices.Contains(brought, m[key]) {
			continue
		}
		t.key(key)
		printer, err := after.Printer(at.path.Child(key), at.form)
		if err != nil {
			return err
		}
		if err := errors.Join(printer.PrintTo(t), printer.Close()); err != nil {
			return err
		}
	}
	return nil
}

// addFragments adds what fragments say; false if that is too much.
func (t *patchText) addFragments(fragments []fragment, form tree.Form) bool {
	for i := range fragments {
		for _, m := range fragments[i].flat() {
			t.key(m.key)
			value, ok := appendWithin(nil, m.node, form, t.limit)
			if !ok {
				return false
			}
			if _, err := t.Write(value); err != nil {
				return false
			}
		}
	}
	return true
}
