package journal

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// Pending is what a holder has to read of a database: the records from one position to
// another, both included. If To is less than From the database is new, and has none.
type Pending struct {
	DB       layout.ID
	Name     string
	From, To uint64
	// Note is what the holder noted when it released the record before From.
	Note []byte
}

// Pending calls yield with the databases of which something durable is to be read, in the
// order of their numbers, until it returns false.
func (h *Hold) Pending(yield func(Pending) bool) error {
	list, err := h.offers()
	if err != nil {
		return err
	}
	for _, p := range list {
		if h.note(p) && !yield(p) {
			return nil
		}
	}
	return nil
}

// offers returns what a view shows of all that is pending.
func (h *Hold) offers() (list []Pending, err error) {
	ids, err := h.pendingIDs()
	if err != nil {
		return nil, err
	}
	view, release := h.set.view()
	defer release()
	var names map[layout.ID]string
	for _, id := range ids {
		p, offers, err := h.offer(view, id)
		if err != nil {
			return nil, err
		}
		if !offers {
			continue
		}
		if p.Name == "" {
			if names == nil {
				if names, err = namesIn(view); err != nil {
					return nil, err
				}
			}
			p.Name = names[id]
		}
		list = append(list, p)
	}
	return list, nil
}

// pendingIDs returns the databases of which something is pending.
func (h *Hold) pendingIDs() ([]layout.ID, error) {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	if err := h.ready(); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(h.pending)), nil
}

// ready returns an error unless the hold follows. The lock is held.
func (h *Hold) ready() error {
	switch {
	case h.closed:
		return ErrClosed
	case h.state == Lost:
		return ErrLost
	case h.state == Beginning:
		return ErrNoBase
	}
	return nil
}

// offer works out what a view shows of what is pending of a database.
func (h *Hold) offer(view pebble.Reader, id layout.ID) (p Pending, ok bool, err error) {
	m, known, err := h.mark(id)
	if err != nil {
		return p, false, err
	}
	to, err := newestIn(view, id)
	if err != nil || known && to <= m.position {
		return p, false, err
	}
	p = Pending{DB: id, Name: m.name, From: m.position + 1, To: to, Note: m.note}
	h.set.mu.Lock()
	entry := h.pending[id]
	if entry != nil && p.Name == "" {
		p.Name = entry.name
	}
	h.set.mu.Unlock()
	if entry == nil {
		return p, false, nil // the hold is lost
	}
	if to > 0 {
		return p, true, nil
	}
	// That a database is new must be durable, too, before it is told.
	_, closer, err := view.Get(layout.NameKey(p.Name))
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			err = nil
		}
		return p, false, damage.Mark(err)
	}
	return p, true, closer.Close()
}

// note remembers what the holder is told to read; it reports false if that is not pending
// any more.
func (h *Hold) note(p Pending) bool {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	entry := h.pending[p.DB]
	if entry == nil {
		return false
	}
	entry.offered, entry.name = p.To, p.Name
	return true
}

// namesIn returns the names of all databases.
func namesIn(rows pebble.Reader) (map[layout.ID]string, error) {
	names := map[layout.ID]string{}
	err := seek.Names(rows, func(name string, id layout.ID) bool {
		names[id] = name
		return true
	})
	return names, err
}

// Read calls yield with the whole records of a database from one position to another, both
// included, as Pending has named them. A row is good until yield returns. If one is missing,
// the hold is lost.
func (h *Hold) Read(id layout.ID, from, to uint64, yield func(position uint64, row []byte) error) error {
	h.set.mu.Lock()
	err := h.ready()
	h.set.mu.Unlock()
	if err != nil || to < from {
		return err
	}
	view, release := h.set.view()
	defer release()
	it, err := view.NewIter(&pebble.IterOptions{LowerBound: layout.LogKey(nil, id, from), UpperBound: layout.LogKey(nil, id, to+1)})
	if err != nil {
		return damage.Mark(err)
	}
	next := from
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var row []byte
		if row, err = it.ValueAndErr(); err != nil {
			break
		}
		if layout.LogPosition(it.Key()) != next {
			break
		}
		if row, err = whole(view, id, next, row); err == nil {
			err = yield(next, row)
		}
		next++
	}
	if err = errors.Join(err, it.Error(), it.Close()); err == nil && next <= to {
		err = fmt.Errorf("%w: database %d at %d", ErrLost, id, next)
	}
	if errors.Is(err, ErrLost) {
		h.Lose()
	}
	return damage.Mark(err)
}

// whole returns the whole record of a log row.
func whole(view pebble.Reader, id layout.ID, position uint64, row []byte) ([]byte, error) {
	if layout.IsWholeRow(row) {
		return row, nil
	}
	key := layout.RecordKey(nil, id, position)
	packed, closer, err := view.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, fmt.Errorf("%w: the record of database %d at %d", ErrLost, id, position)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = closer.Close() }()
	record, err := layout.DecodeWhole(nil, packed)
	if err != nil {
		return nil, damage.AtRow(key, err)
	}
	return record, nil
}
