package watch

import (
	"bytes"
	"errors"
	"slices"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// touched returns the keys of the children of p that changes touched; false if
// one of them replaced the node, or made it an object. If it was a leaf above that became an
// object, there was nothing at p, and only what was assigned below is there now. Whoever watches p
// may not be allowed to know what was above, so that is told as in a node that was an object.
func touched(p tree.Path, effects []*Effect) (keys []string, ok bool) {
	seen := make(map[string]bool)
	ok = true
	for _, e := range effects {
		e.around(p, func(part *part) bool {
			switch {
			case part.same, part.Priority && part.Path.Contains(p), part.leaves(p):
				return true
			case part.Path.Contains(p), part.at == p: // the part is below that
				ok = false
				return false
			}
			key, _ := p.Below(part.Path).Cut()
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
			return true
		})
		if !ok {
			return nil, false
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
func (d *dispatcher) tellWindow(s *shift, del *delivery) {
	at, effects := s.at, s.effects
	at.touched.Store(del.published.Position)
	if at.unknown && !d.adopt(at, effects, del) {
		return
	}
	before := d.before(at, del)
	if before == nil && at.window.known == nil {
		d.renew(at, del) // what the window is before the delivery is not known
		return
	}
	if before != nil {
		defer before.Close()
	}
	after := d.set.source.View(del.after, del.published)
	// All events of the database wait while windows are moved.
	if d.moving += s.work; d.moving > d.set.limits.MaxMoving {
		d.loseWindow(at)
		return
	}
	if s.whole {
		d.tellWhole(at, before, after, del)
		return
	}
	m, err := at.window.slide(at.placeKey, before, after, s.keys, d.set.limits.MaxCounted)
	if errors.Is(err, store.ErrMany) || err == nil && !d.set.scans.Load().moved(at.placeKey, at.window.known) {
		d.loseWindow(at)
		return
	}
	if err != nil {
		d.renew(at, del)
		return
	}
	when := moment{position: del.published.Position, from: max(del.from(), at.since), to: del.published.Position}
	d.unread = d.unreadAt(at, del)
	tell := d.windowEvents
	if at.whole {
		tell = d.windowEvent
	}
	messages, ok := tell(at, after, effects, m, when)
	if !ok {
		at.topic.Skip()
		return
	}
	d.publish(at, d.appendSilent(messages, at, when))
}

// tellWhole publishes the whole window, as a node that was replaced has it; nothing if the window
// is as it was.
func (d *dispatcher) tellWhole(at *place, before, after *state.View, del *delivery) {
	text := &limitedBuffer{left: int(d.set.budget.Limit() / 2)}
	was := at.window
	window, err := at.newWindow(after, d.set.limits.MaxCounted)
	if err == nil {
		err = at.print(text, after, window.known, d.set.limits.MaxCounted)
	}
	if errors.Is(err, store.ErrMany) || err == nil && !d.set.scans.Load().moved(at.placeKey, window.known) {
		d.loseWindow(at)
		return
	}
	if err != nil {
		d.renew(at, del)
		return
	}
	at.window = window
	when := moment{position: del.published.Position}
	if old := (&limitedBuffer{left: text.Len()}); before != nil && at.print(old, before, was.known, d.set.limits.MaxCounted) == nil &&
		bytes.Equal(old.Bytes(), text.Bytes()) {
		when.from = max(del.from(), at.since)
		d.publish(at, d.appendSilent(d.messages[:0], at, when))
		return
	}
	d.publish(at, append(d.messages[:0], when.message(Put, tree.Path{}, text.Bytes(), true)))
}

// print prints what the window shows in a view. If it has to be found by a scan, and is
// not known, it fails with store.ErrMany if that must look at more children than a number.
func (k placeKey) print(text *limitedBuffer, v *state.View, known *scan.Known, most int) error {
	scans, err := k.scans(v)
	if scans && known == nil && err == nil {
		known, err = scan.Find(k.node(v, most), k.query.Query())
	}
	switch {
	case err != nil:
		return err
	case scans && known.Many():
		return store.ErrMany
	case scans:
		return known.Print(text, v.Node(k.path, 0), k.query.Query(), k.form)
	}
	selection, err := v.Select(k.path, k.query.Query(), k.form)
	if err != nil {
		return err
	}
	return errors.Join(selection.PrintTo(text), selection.Close())
}

// windowEvents returns the events of a window that was moved: first one that
// takes out what left and brings what entered, then those of the children that
// stayed. It reports false if they are too large to be kept.
func (d *dispatcher) windowEvents(at *place, after *state.View, effects []*Effect, m moves, when moment) ([]hub.Message[*Event], bool) {
	messages := d.messages[:0]
	text := newPatchText(d.set.budget)
	if err := text.addMoves(at, after, m, entered); err != nil {
		return nil, false
	}
	if value := text.end(); value != nil {
		messages = append(messages, when.message(Patch, tree.Path{}, value, false))
	}
	for i, e := range effects {
		fragments, ok := e.cut(at.path, at.form, d.unread.same(e, effects[:i]))
		when.position, when.millis = e.Position, e.Millis
		if ok {
			messages, ok = d.appendEvents(messages, only(fragments, m.stays), at.form, when)
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
	left  int
	claim *budget.Claim // nil if it is not counted
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errLarge
	}
	if need := 2 * int64(b.Len()+len(p)); b.claim != nil && need > b.claim.Size() && !b.claim.Grow(2*need) {
		return 0, errLarge
	}
	return b.Buffer.Write(p)
}

var errLarge = errors.New("too large for an event")
