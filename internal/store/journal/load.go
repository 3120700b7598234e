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
	"github.com/livetree/livetree/internal/store/seek"
)

// A mark is what a holder has noted of a database.
type mark struct {
	position uint64
	note     []byte
	name     string
	// absent says that the store of a cluster had nothing of the database when it took the note: its drop had not come yet, and its name
	// belonged to another, or all of it had gone already.
	absent bool
}

// absentMark comes before the name in the row of a mark that is absent. No name has it.
const absentMark = 0

// appendTo appends the row of a mark: the position, the note behind its length, the name.
func (m mark) appendTo(dst []byte) []byte {
	dst = append(binary.BigEndian.AppendUint64(dst, m.position), byte(len(m.note)))
	if dst = append(dst, m.note...); m.absent {
		dst = append(dst, absentMark)
	}
	return append(dst, m.name...)
}

func decodeMark(key, row []byte) (m mark, err error) {
	if len(row) < 9 || len(row) < 9+int(row[8]) {
		return m, damage.AtRow(key, errors.New("the row of a hold is cut short"))
	}
	n := 9 + int(row[8])
	name, absent := bytes.CutPrefix(row[n:], []byte{absentMark})
	return mark{binary.BigEndian.Uint64(row), bytes.Clone(row[9:n]), string(name), absent}, nil
}

// mark returns what was noted of a database, and whether anything was.
func (h *Hold) mark(id layout.ID) (m mark, ok bool, err error) {
	key := layout.HoldKey(h.name, id)
	row, closer, err := h.set.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, damage.Mark(err)
	}
	defer func() { _ = closer.Close() }()
	m, err = decodeMark(key, row)
	return m, err == nil, err
}

// load finds out what is pending when a hold begins. If that cannot be followed, a base is
// needed.
func (h *Hold) load() error {
	rows, err := rowsIn(h.set.db, func() (from, to []byte) { return layout.HoldRange(h.name) })
	if err != nil || len(rows) == 0 {
		return err
	}
	marks := make(map[layout.ID]mark, len(rows))
	for key, row := range rows {
		if marks[layout.CutNumber([]byte(key))], err = decodeMark([]byte(key), row); err != nil {
			return err
		}
	}
	if h.share != nil && len(marks[0].note) == 0 {
		return nil // another holder was about to begin
	}
	h.since = marks[0].position
	delete(marks, 0) // it only says that there is a base
	missing := maps.Clone(marks)
	maps.DeleteFunc(missing, func(_ layout.ID, m mark) bool { return m.absent })
	look := func(id layout.ID, name string, dropped bool) error {
		m, known := marks[id]
		delete(missing, id)
		return h.find(id, name, dropped, m.position, known)
	}
	switch err := h.eachDatabase(look); {
	case errors.Is(err, ErrLost) || err == nil && len(missing) > 0: // one was dropped meanwhile
		return h.Restart()
	case err != nil:
		return err
	}
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	if h.state = Following; h.bytes > h.bound {
		h.lose()
	}
	return nil
}

// eachDatabase calls look with every database, also with those that were dropped and are
// still kept.
func (h *Hold) eachDatabase(look func(id layout.ID, name string, dropped bool) error) error {
	var failed error
	err := seek.Names(h.set.db, func(name string, id layout.ID) bool {
		failed = look(id, name, false)
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	dropped, err := rowsIn(h.set.db, layout.DroppedRange)
	if err != nil {
		return err
	}
	for key, name := range dropped {
		if err := look(layout.CutNumber([]byte(key)), string(name), true); err != nil {
			return err
		}
	}
	return nil
}

// find notes what is pending of a database that was released up to a position.
func (h *Hold) find(id layout.ID, name string, dropped bool, released uint64, known bool) error {
	newest, err := newestIn(h.set.db, id)
	switch {
	case err != nil:
		return err
	case known && newest < released && h.share != nil:
		h.set.mu.Lock()
		defer h.set.mu.Unlock()
		h.ahead[id] = released
		h.forget(id, released) // it may have come meanwhile
		return nil
	case known && newest < released:
		return fmt.Errorf("%w: database %d ends at %d, but %d was released", ErrLost, id, newest, released)
	case known && newest == released:
		return nil
	}
	if dropped && !known && h.share != nil && uint64(id.Serial()) < h.since {
		h.set.mu.Lock()
		defer h.set.mu.Unlock()
		h.forget(id, newest) // the base came after the drop
		h.set.unswept = true
		return nil
	}
	bytes, err := h.estimate(id, released+1, newest)
	if err != nil {
		return err
	}
	millis, err := h.millisOf(id, released+1)
	if err != nil {
		return err
	}
	h.expect(id, pending{name: name, dropped: dropped, first: released + 1, newest: newest}, segment{released + 1, bytes, millis})
	if h.share == nil {
		return nil
	}
	m, known, err := h.mark(id) // notes may have been taken meanwhile
	if err != nil || !known {
		return err
	}
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	h.forget(id, m.position)
	return nil
}

// expect notes what was found to be pending of a database.
func (h *Hold) expect(id layout.ID, found pending, all segment) {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	p := h.pending[id]
	if p == nil {
		p = &pending{newest: found.newest}
		h.pending[id] = p
	}
	if h.resumes { // what was noted since is counted here
		h.bytes -= p.bytes
		p.bytes, p.segments = 0, nil
	}
	p.name, p.dropped, p.first, p.wholes = found.name, p.dropped || found.dropped, found.first, true
	// What was added since the hold began is counted twice here; that is little.
	p.segments = append([]segment{all}, p.segments...)
	p.bytes += all.bytes
	h.bytes += all.bytes
}

// millisOf returns the time of the record at a position, 0 if it is not there.
func (h *Hold) millisOf(id layout.ID, position uint64) (int64, error) {
	row, closer, err := h.set.db.Get(layout.LogKey(nil, id, position))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, damage.Mark(err)
	}
	return layout.LogMillis(row), closer.Close()
}

// newestIn returns the position of the newest log row of a database, 0 for none.
func newestIn(rows pebble.Reader, id layout.ID) (uint64, error) {
	return seek.Reader{Source: rows, ID: id}.Position()
}
