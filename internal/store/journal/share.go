package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// This file is for the stores of a cluster, which all have the same commits. Each has a hold of the same name, and one holder
// reads and releases. What it notes is noted by all of them, in one order: so another holder goes on where the last one was.
//
// A holder's store notes nothing by itself. It hands the notes to Options.Share, which has every store take them, this one too,
// and returns when this one has. Notes of a database may come to a store before the commits that they are about.

// notesBytes is how long some notes get before others travel apart from them. Each lot is good by itself: what is released of some
// databases and not of others is read again.
const notesBytes = 256 << 10

// A noted is what was noted of one database.
type noted struct {
	Released
	name string
}

// notes are what travels.
type notes struct {
	hold  string
	reset bool // what was noted before is forgotten
	list  []noted
}

// notesMark begins notes: among the control records of a cluster, no naming has the number 0, and no other record this text.
const notesMark = "\x00\x00\x00\x00hold"

// IsNotes reports whether bytes are notes.
func IsNotes(b []byte) bool { return bytes.HasPrefix(b, []byte(notesMark)) }

// The bytes of notes are
//
//	notesMark
//	reset:1 length:1 name of the hold
//	database:4 position:8 length:1 note length:1 name     of each database
func (n notes) encode() []byte {
	reset := byte(0)
	if n.reset {
		reset = 1
	}
	out := append([]byte(notesMark), reset, byte(len(n.hold)))
	out = append(out, n.hold...)
	for _, one := range n.list {
		out = binary.BigEndian.AppendUint32(out, uint32(one.DB))
		out = binary.BigEndian.AppendUint64(out, one.Position)
		out = append(append(out, byte(len(one.Note))), one.Note...)
		out = append(append(out, byte(len(one.name))), one.name...)
	}
	return out
}

// ErrNotes says that bytes are not what a holder has noted.
var ErrNotes = errors.New("not the notes of a hold")

func decodeNotes(b []byte) (n notes, err error) {
	b, marked := bytes.CutPrefix(b, []byte(notesMark))
	if !marked || len(b) == 0 || b[0] > 1 {
		return n, ErrNotes
	}
	n.reset = b[0] == 1
	name, b, ok := cutShort(b[1:])
	n.hold = string(name)
	if !ok || checkName(n.hold) != nil {
		return n, ErrNotes
	}
	for len(b) > 0 {
		if len(b) < 12 {
			return n, ErrNotes
		}
		one := noted{Released: Released{DB: layout.ID(binary.BigEndian.Uint32(b)), Position: binary.BigEndian.Uint64(b[4:])}}
		if one.Note, b, ok = cutShort(b[12:]); !ok || len(one.Note) > maxNote {
			return n, ErrNotes
		}
		if name, b, ok = cutShort(b); !ok {
			return n, ErrNotes
		}
		one.name = string(name)
		n.list = append(n.list, one)
	}
	return n, nil
}

// cutShort returns the bytes that one byte of length stands before.
func cutShort(b []byte) (short, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil, false
	}
	return b[1 : 1+b[0]], b[1+b[0]:], true
}

// shareAll has all stores take notes, in lots that are not too long. The last lot has the last note.
func (h *Hold) shareAll(reset bool, list []noted) error {
	n, size := notes{hold: h.name, reset: reset}, 0
	for i, one := range list {
		if len(one.Note) > maxNote {
			return fmt.Errorf("a note of %d bytes: at most %d are allowed", len(one.Note), maxNote)
		}
		n.list = append(n.list, one)
		if size += 14 + len(one.Note) + len(one.name); size < notesBytes && i < len(list)-1 {
			continue
		}
		if err := h.share(n.encode()); err != nil {
			return err
		}
		n, size = notes{hold: h.name}, 0
	}
	return nil
}

// noteShared is SetNote, in all stores. The position of the number 0, which no database has, says which databases were made after the
// base: see made. It stays.
func noteShared(h *Hold, note []byte) error {
	m, _, err := h.mark(0)
	if err != nil {
		return err
	}
	return h.shareAll(false, []noted{{Released: Released{Position: m.position, Note: note}}})
}

// made returns the least serial number of the databases that are not in a base and still to be read, or that are yet to be made. Of others
// that are not in the base, it came after the drop.
func made(h *Hold, base []Released) (uint64, error) {
	row, closer, err := h.set.db.Get(layout.NextIDKey)
	if err != nil {
		return 0, damage.Mark(err)
	}
	least := uint64(binary.BigEndian.Uint32(row))
	if err := closer.Close(); err != nil {
		return 0, err
	}
	based := make(map[layout.ID]bool, len(base))
	for _, r := range base {
		based[r.DB] = true
	}
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	for id, p := range h.pending {
		if p.created && !based[id] {
			least = min(least, uint64(id.Serial()))
		}
	}
	return least, nil
}

// beginShared is what Begin writes, in all stores. What another holder has noted is forgotten with the first lot, and there is a base
// with the last.
func beginShared(h *Hold, base []Released, names map[layout.ID]string) error {
	h.set.mu.Lock()
	h.begins = true
	h.set.mu.Unlock()
	defer func() {
		h.set.mu.Lock()
		h.begins = false
		h.set.mu.Unlock()
	}()
	least, err := made(h, base)
	if err != nil {
		return err
	}
	list := make([]noted, 0, len(base))
	for _, r := range base {
		if r.DB == 0 {
			r.Position = least
		}
		list = append(list, noted{r, names[r.DB]})
	}
	return h.shareAll(true, list)
}

// releaseShared is Release, in all stores.
func releaseShared(h *Hold, released []Released) error {
	list := make([]noted, 0, len(released))
	all, _, err := h.mark(0)
	h.set.mu.Lock()
	if err == nil {
		err = h.ready()
	}
	for _, r := range released {
		one := noted{Released: r}
		if r.DB == 0 {
			one.Position = all.position
		} else if err == nil {
			p := h.pending[r.DB]
			if p == nil || r.Position > p.offered {
				err = fmt.Errorf("position %d of database %d was not read: it cannot be released", r.Position, r.DB)
				break
			}
			one.name = p.name
		}
		list = append(list, one)
	}
	h.set.mu.Unlock()
	if err != nil {
		return err
	}
	return h.shareAll(false, list)
}

// Resume goes on where all stores have noted that the holder is, if the hold does not follow. It stays as it is where nothing is
// noted, or where that cannot be followed here.
func (h *Hold) Resume() error {
	switch h.State() {
	case Following:
		return nil
	case Lost:
		if err := h.Restart(); err != nil {
			return err
		}
	}
	h.set.mu.Lock()
	h.set.loading++
	h.resumes = true
	h.set.mu.Unlock()
	err := h.load()
	h.set.mu.Lock()
	h.set.loading--
	h.resumes = false
	h.set.mu.Unlock()
	h.signal()
	return err
}

// Passed returns a function that reports whether all was released that waits now; nil if the hold does not follow. Anybody may call it.
func (h *Hold) Passed() func() bool {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	if h.state != Following {
		return nil
	}
	waits := map[layout.ID]uint64{}
	for id, p := range h.pending {
		waits[id] = p.newest
	}
	return func() bool {
		h.set.mu.Lock()
		defer h.set.mu.Unlock()
		maps.DeleteFunc(waits, func(id layout.ID, newest uint64) bool {
			p := h.pending[id]
			return p == nil || p.first > newest && newest > 0
		})
		return h.state == Following && len(waits) == 0
	}
}

// shared returns the holds that all stores of a cluster have. The lock is held.
func (s *Set) shared() (list []*Hold) {
	for _, h := range s.holds {
		if h.share != nil {
			list = append(list, h)
		}
	}
	return list
}

// waitsFor reports whether the drop of a database was not released, by a hold that may go on with it once it follows.
func waitsFor(h *Hold, id layout.ID) (bool, error) {
	m, known, err := h.mark(id)
	if err != nil || !known {
		return false, err
	}
	newest, err := newestIn(h.set.db, id)
	return newest > m.position, err
}

// Take takes notes. Commit is called with what adds them to a batch, and commits that. One goroutine takes notes.
func (s *Set) Take(encoded []byte, commit func(more func(*pebble.Batch) error) error) error {
	var done func()
	err := commit(func(b *pebble.Batch) (err error) {
		done, err = s.take(b, encoded)
		return err
	})
	if err == nil {
		done()
	}
	return err
}

// take adds notes to a batch. When that is committed, done must be called.
func (s *Set) take(b *pebble.Batch, encoded []byte) (done func(), err error) {
	n, err := decodeNotes(encoded)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	var h *Hold
	for _, other := range s.holds {
		if other.name == n.hold {
			h = other
		}
	}
	s.mu.Unlock()
	t := &taking{set: s, hold: h, notes: n, ahead: map[layout.ID]uint64{}}
	if n.reset {
		from, to := layout.HoldRange(n.hold)
		if err := b.DeleteRange(from, to, nil); err != nil {
			return nil, err
		}
	}
	for _, one := range n.list {
		if err := t.note(b, one); err != nil {
			return nil, err
		}
	}
	return t.done, nil
}

// A taking is notes that a store takes.
type taking struct {
	set    *Set
	hold   *Hold // nil where nobody holds
	notes  notes
	ahead  map[layout.ID]uint64 // databases that have not come to what was released
	buried []layout.ID
}

// note adds what was noted of one database.
func (t *taking) note(b *pebble.Batch, one noted) error {
	key, m := layout.HoldKey(t.notes.hold, one.DB), mark{position: one.Position, note: one.Note, name: one.name}
	if one.DB == 0 {
		return b.Set(key, m.appendTo(nil), nil)
	}
	newest, err := newestIn(t.set.db, one.DB)
	if err != nil {
		return err
	}
	dropped, err := t.set.has(layout.DroppedKey(one.DB), nil)
	if err != nil {
		return err
	}
	if newest < one.Position {
		t.ahead[one.DB] = one.Position
	}
	number := binary.BigEndian.AppendUint32(nil, uint32(one.DB))
	if named, err := t.set.has(layout.NameKey(one.name), number); err != nil {
		return err
	} else if !named && !dropped && newest == 0 {
		m.absent = true
		return b.Set(key, m.appendTo(nil), nil)
	}
	t.set.mu.Lock()
	others, last, wholes := t.set.floor(one.DB, t.hold), !t.set.isPending(one.DB, t.hold), t.wholes(one.DB)
	t.set.unswept = t.set.unswept || dropped && !last
	t.set.mu.Unlock()
	if dropped && last && one.Position >= newest {
		t.buried = append(t.buried, one.DB)
		return t.set.bury(b, one.DB)
	}
	if err := b.Set(key, m.appendTo(nil), nil); err != nil || !wholes {
		return err
	}
	return deleteRecords(b, t.set.db, one.DB, min(one.Position, others))
}

// wholes reports whether there may be whole records that the hold keeps. The lock is held.
func (t *taking) wholes(id layout.ID) bool {
	return t.hold != nil && t.hold.pending[id] != nil && t.hold.pending[id].wholes
}

// has reports whether there is a row, with a value if one is asked for.
func (s *Set) has(key, value []byte) (bool, error) {
	row, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, damage.Mark(err)
	}
	defer func() { _ = closer.Close() }()
	return value == nil || string(row) == string(value), nil
}

// done notes in memory what was committed.
func (t *taking) done() {
	t.set.mu.Lock()
	if t.hold == nil {
		t.set.unswept = true // whole records that nobody needs here
	} else {
		t.tell()
	}
	t.set.mu.Unlock()
	for _, id := range t.buried {
		t.set.forget(id)
	}
}

// tell has the hold know of the notes. The lock is held.
func (t *taking) tell() {
	h := t.hold
	if t.notes.reset && !h.begins && !h.closed {
		// Another holder begins. Resume goes on from its base.
		h.state, h.ahead = Beginning, map[layout.ID]uint64{}
		h.set.update()
	}
	if !h.isArmed() {
		return
	}
	for _, one := range t.notes.list {
		h.forget(one.DB, one.Position)
	}
	maps.Copy(h.ahead, t.ahead)
}
