package journal

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// A Released is a database whose records are not needed any more up to a position. That of
// number 0, which no database has, carries a note on all of them: see [Hold.Note].
type Released struct {
	DB       layout.ID
	Position uint64
	// Note is the holder's own, of at most 64 bytes. Pending gives it back.
	Note []byte
}

// Note returns what the holder has last noted on all databases, with Begin, Release or
// SetNote; nothing if it has not.
func (h *Hold) Note() ([]byte, error) {
	m, _, err := h.mark(0)
	return m.note, err
}

// SetNote notes something on all databases. When it returns, neither that nor anything that
// was released before can be lost.
func (h *Hold) SetNote(note []byte) error {
	h.set.mu.Lock()
	err := h.ready()
	h.set.mu.Unlock()
	if err != nil {
		return err
	}
	if h.share != nil {
		return noteShared(h, note)
	}
	return apply(h.set.db, pebble.Sync, func(b *pebble.Batch) error { return h.setMark(b, Released{Note: note}, "") })
}

// Begin says up to which positions the base holds the databases: all that there were in a
// view taken while the hold was beginning. What the hold had noted before is forgotten. When
// it returns, that cannot be lost.
func (h *Hold) Begin(base []Released) error {
	names, err := h.baseNames()
	if err != nil {
		return err
	}
	if h.share != nil {
		err = beginShared(h, base, names)
	} else {
		err = h.noteBase(base, names)
	}
	if err == nil {
		err = h.pickUp(base, names)
	}
	if err != nil {
		return err
	}
	return h.begun(base)
}

// noteBase notes a base.
func (h *Hold) noteBase(base []Released, names map[layout.ID]string) error {
	view, release := h.set.view()
	defer release()
	return apply(h.set.db, pebble.Sync, func(b *pebble.Batch) error {
		from, to := layout.HoldRange(h.name)
		if err := b.DeleteRange(from, to, nil); err != nil {
			return err
		}
		// No database has the number 0: the row says that there is a base, also of none.
		if err := h.setMark(b, Released{}, ""); err != nil {
			return err
		}
		for _, r := range base {
			newest, err := newestIn(view, r.DB)
			if err == nil && r.Position > newest {
				err = fmt.Errorf("database %d is at %d, not at %d", r.DB, newest, r.Position)
			}
			if err != nil {
				return err
			}
			if err := h.setMark(b, r, names[r.DB]); err != nil {
				return err
			}
		}
		return nil
	})
}

// pickUp notes what was being committed when the hold began: nobody told it, and the base
// need not show it.
func (h *Hold) pickUp(base []Released, names map[layout.ID]string) error {
	for _, r := range base {
		if r.DB == 0 {
			continue
		}
		newest, err := newestIn(h.set.db, r.DB)
		if err != nil {
			return err
		}
		h.set.mu.Lock()
		p := h.pending[r.DB]
		if p != nil {
			p.first = min(p.first, r.Position+1)
		}
		h.set.mu.Unlock()
		if p == nil && newest > r.Position {
			if err := h.find(r.DB, names[r.DB], false, r.Position, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// baseNames returns the names of all databases, if a base is wanted.
func (h *Hold) baseNames() (map[layout.ID]string, error) {
	h.set.mu.Lock()
	state, closed := h.state, h.closed
	h.set.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case state == Lost:
		return nil, ErrLost
	case state == Following:
		return nil, errors.New("the hold has a base")
	}
	names := map[layout.ID]string{}
	err := h.eachDatabase(func(id layout.ID, name string, _ bool) error {
		names[id] = name
		return nil
	})
	return names, err
}

// begun follows from a base on.
func (h *Hold) begun(base []Released) error {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	if !h.isArmed() {
		return ErrLost // while the rows were written
	}
	based := make(map[layout.ID]bool, len(base))
	for _, r := range base {
		based[r.DB] = true
		h.forget(r.DB, r.Position)
	}
	for id, p := range h.pending {
		if !based[id] && p.dropped && !p.created { // before the base was made
			h.bytes -= p.bytes
			delete(h.pending, id)
			h.set.unswept = true
		}
	}
	h.state = Following
	h.signal()
	return nil
}

// forget forgets what is pending of a database up to a position. The lock is held.
func (h *Hold) forget(id layout.ID, position uint64) {
	p := h.pending[id]
	if p == nil {
		return
	}
	h.bytes -= p.release(position)
	if p.isDone() {
		h.bytes -= p.bytes
		delete(h.pending, id)
	}
}

func (h *Hold) setMark(b *pebble.Batch, r Released, name string) error {
	if len(r.Note) > maxNote {
		return fmt.Errorf("a note of %d bytes: at most %d are allowed", len(r.Note), maxNote)
	}
	return b.Set(layout.HoldKey(h.name, r.DB), mark{position: r.Position, note: r.Note, name: name}.appendTo(nil), nil)
}

// Release says that records are not needed any more, which Pending has named and Read has
// read: they may be trimmed now. A crash may take it back.
func (h *Hold) Release(list []Released) error {
	if h.share != nil {
		return releaseShared(h, list)
	}
	var buried []layout.ID
	err := apply(h.set.db, pebble.NoSync, func(b *pebble.Batch) error {
		for _, r := range list {
			gone, err := h.release(b, r)
			if err != nil {
				return err
			}
			if gone {
				buried = append(buried, r.DB)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	h.set.mu.Lock()
	for _, r := range list {
		if h.isArmed() {
			h.forget(r.DB, r.Position)
		}
	}
	h.set.mu.Unlock()
	for _, id := range buried {
		h.set.forget(id)
	}
	return nil
}

// release adds to a batch what is noted and deleted. It reports whether the database was
// dropped, and nothing is left of it now.
func (h *Hold) release(b *pebble.Batch, r Released) (gone bool, err error) {
	h.set.mu.Lock()
	err = h.ready()
	p := h.pending[r.DB]
	var entry pending
	if p != nil {
		entry = *p
	}
	others := h.set.floor(r.DB, h)
	last := !h.set.isPending(r.DB, h)
	h.set.mu.Unlock()
	switch {
	case err != nil:
		return false, err
	case r.DB == 0:
		return false, h.setMark(b, r, "")
	case p == nil || r.Position > entry.offered:
		return false, fmt.Errorf("position %d of database %d was not read: it cannot be released", r.Position, r.DB)
	case entry.dropped && last && r.Position >= entry.newest:
		return true, h.set.bury(b, r.DB)
	}
	if err := h.setMark(b, r, entry.name); err != nil {
		return false, err
	}
	if !entry.wholes {
		return false, nil
	}
	return false, deleteRecords(b, h.set.db, r.DB, min(r.Position, others))
}

// deleteRecords deletes the whole records of a database up to a position: one by one if
// they are few.
func deleteRecords(b *pebble.Batch, rows pebble.Reader, id layout.ID, to uint64) error {
	from, end := layout.RecordKey(nil, id, 0), layout.RecordKey(nil, id, to+1)
	it, err := rows.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: end})
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n > batch.PointDeletes {
			return b.DeleteRange(from, end, nil)
		}
		if err := b.Delete(it.Key(), nil); err != nil {
			return err
		}
	}
	return damage.Mark(it.Error())
}
