package engine

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/tree"
)

// maxMoved is how many children a delivery may change for a window to be moved
// child by child. With more it is read again.
const maxMoved = 1000

// touched returns the keys of the children of p that changes touched; false if
// one of them replaced the node, or made it an object.
func touched(p tree.Path, effects []*effect) (keys []string, ok bool) {
	seen := make(map[string]bool)
	for _, e := range effects {
		for i := range e.parts {
			part := &e.parts[i]
			switch {
			case part.same, part.Priority && part.Path.Contains(p), part.leaves(p):
				continue
			case part.Path.Contains(p), part.at != part.Path && part.at.Contains(p):
				return nil, false
			case !p.Contains(part.Path):
				continue
			}
			key, _ := p.Below(part.Path).Cut()
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys, true
}

// leaves reports whether an assignment above p is known to leave what is there as
// it was.
func (part *part) leaves(p tree.Path) bool {
	if !part.known || part.merged || !part.Path.Contains(p) {
		return false
	}
	below := part.Path.Below(p)
	return tree.Equal(part.before.At(below), part.after.At(below))
}

// tellWindow publishes what changes are to a filtered watch.
func (w *watches) tellWindow(at *place, effects []*effect, del *delivery) {
	if del.before == nil || at.since > del.from() || at.unknown {
		w.renew(at, del) // what the window is before the delivery is not known
		return
	}
	keys, ok := touched(at.path, effects)
	before := &Snapshot{database: w.database, view: del.before, published: del.published}
	after := &Snapshot{database: w.database, view: del.after, published: del.published}
	if !ok || len(keys) > maxMoved {
		w.tellWhole(at, after, del)
		return
	}
	m, err := at.window.slide(at.placeKey, before, after, keys)
	if err != nil {
		w.renew(at, del)
		return
	}
	s := stamp{position: del.published.position, from: del.from(), to: del.published.position}
	messages, ok := w.windowEvents(at, after, effects, m, s)
	if !ok {
		at.topic.Skip()
		return
	}
	w.publish(at, w.appendSilent(messages, at, s))
}

// tellWhole publishes the whole window, as a node that was replaced has it.
func (w *watches) tellWhole(at *place, after *Snapshot, del *delivery) {
	text := &limitedBuffer{left: int(w.budget.Limit() / 2)}
	text.WriteString(`{"path":"/","data":`)
	window, err := after.newWindow(at.placeKey)
	if err == nil {
		err = after.printWindow(text, at.placeKey)
	}
	if err != nil {
		w.renew(at, del)
		return
	}
	at.window = window
	text.WriteByte('}')
	s := stamp{position: del.published.position}
	w.publish(at, append(w.dispatcher.messages[:0], s.message(Put, text.Bytes(), true)))
}

func (s *Snapshot) printWindow(text *limitedBuffer, k placeKey) error {
	selection, err := s.Select(k.path, k.query, k.form)
	if err != nil {
		return err
	}
	return errors.Join(selection.PrintTo(text), selection.Close())
}

// windowEvents returns the events of a window that was moved: first one that
// takes out what left and brings what entered, then those of the children that
// stayed. It reports false if they are too large to be kept.
func (w *watches) windowEvents(at *place, after *Snapshot, effects []*effect, m moves, s stamp) ([]hub.Message[*Event], bool) {
	messages := w.dispatcher.messages[:0]
	if text, err := w.moveText(at, after, m); err != nil {
		return nil, false
	} else if text != nil {
		messages = append(messages, s.message(Patch, text, false))
	}
	stays := func(key string) bool {
		became, ok := m[key]
		return ok && became == stayed
	}
	for _, e := range effects {
		fragments, ok := e.cut(at.path, at.form)
		s.position, s.millis = e.Position, e.Millis
		if ok {
			messages, ok = w.appendEvents(messages, only(fragments, stays), at.form, s)
		}
		if !ok {
			return nil, false
		}
	}
	for i, m := range messages {
		// The first is of all changes together, so they end together.
		m.Message.Last = i == len(messages)-1
	}
	return messages, true
}

// moveText returns the event of the children that left and entered; nil if there
// are none.
func (w *watches) moveText(at *place, after *Snapshot, m moves) ([]byte, error) {
	text := &limitedBuffer{left: int(w.budget.Limit() / 2)}
	text.WriteString(`{"path":"/","data":`)
	comma := byte('{')
	for _, key := range slices.SortedFunc(maps.Keys(m), tree.CompareKeys) {
		if m[key] != entered && m[key] != left {
			continue
		}
		text.WriteByte(comma)
		comma = ','
		text.WriteString(string(append(tree.AppendString(nil, key), ':')))
		if m[key] == left {
			text.WriteString("null")
			continue
		}
		printer, err := after.Printer(at.path.Child(key), at.form)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(printer.PrintTo(text), printer.Close()); err != nil {
			return nil, err
		}
	}
	if comma == '{' {
		return nil, nil
	}
	text.WriteString("}}")
	return text.Bytes(), nil
}

// only returns the fragments about children that are in a window.
func only(fragments []fragment, shown func(key string) bool) []fragment {
	kept := fragments[:0]
	for _, f := range fragments {
		if key, _ := f.path.Cut(); key != "" {
			if shown(key) {
				kept = append(kept, f)
			}
			continue
		}
		f.members = slices.DeleteFunc(f.members, func(m member) bool { return !shown(m.key) })
		if len(f.members) > 0 {
			kept = append(kept, f)
		}
	}
	return kept
}

// A limitedBuffer is a buffer that refuses to become too large. Its errors come
// from Write alone, which printers use.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errLarge
	}
	return b.Buffer.Write(p)
}

var errLarge = errors.New("too large for an event")
