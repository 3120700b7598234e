package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// Create makes a database and returns its number, which is never used again. When it
// returns, the database cannot be lost. Only what gives out the number is done one after the
// other: a sync of one database keeps no other from being made. As settings are, it is let in
// when space is low.
func (s *Store) Create(name string) (layout.ID, error) { return create(s, name, 0) }

// CreateAs is Create with a number that no database of the store has: for databases that
// come from another store. Create gives out higher numbers only.
func CreateAs(s *Store, name string, id layout.ID) error {
	_, err := create(s, name, id)
	return err
}

// create gives a name a number, the next one for 0.
func create(s *Store, name string, id layout.ID) (layout.ID, error) {
	id, err := s.addName(name, id)
	if err != nil {
		return 0, err
	}
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		return 0, fmt.Errorf("sync the name of a database: %w", err)
	}
	if s.holds.IsHeld() {
		_ = showNames(s, make(shown)) // a store that is closing makes no view, and needs none
	}
	return id, nil
}

// showNames has a view show the databases that were made: a commit of nothing does. Others
// read them from the newest state.
func showNames(s *Store, t Ticket) error { return s.Commit(s.Live(0).NewBatch(), t) }

// A shown is a ticket that is closed when views show a commit.
type shown chan struct{}

func (shown) Durable(uint64) {}
func (c shown) Visible()     { close(c) }

// addName gives a name a number, the next one for 0.
func (s *Store) addName(name string, id layout.ID) (layout.ID, error) {
	s.databases.mu.Lock()
	defer s.databases.mu.Unlock()
	_, found, err := s.Find(name)
	if err == nil && found {
		err = fmt.Errorf("%w: %s", ErrExists, name)
	}
	if err != nil {
		return 0, err
	}
	if err := s.health.admit(false); err != nil {
		return 0, err // on a disk that is full the process would end
	}
	if id == 0 {
		id = s.databases.next
	}
	next := max(s.databases.next, id.Serial()+1)
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	err = errors.Join(
		b.Set(layout.NameKey(name), binary.BigEndian.AppendUint32(nil, uint32(id)), nil),
		b.Set(layout.NextIDKey, binary.BigEndian.AppendUint32(nil, uint32(next)), nil),
	)
	if err == nil {
		s.holds.Created(id, name)
		err = s.db.Apply(b, pebble.NoSync)
	}
	if err != nil {
		return 0, err
	}
	s.databases.next = next
	return id, nil
}

// Find returns the number of a database.
func (s *Store) Find(name string) (layout.ID, bool, error) {
	value, err := metaRow(s.db, layout.NameKey(name), 4)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, damage.Mark(err)
	}
	return layout.ID(binary.BigEndian.Uint32(value)), true, nil
}

// Names calls yield with the databases in the order of their names, until it
// returns false.
func (s *Store) Names(yield func(name string, id layout.ID) bool) error {
	return seek.Names(s.db, yield)
}

// Displaced calls yield with the databases whose names later ones have, and which this node has not dropped yet.
func Displaced(s *Store, yield func(name string, id layout.ID)) error {
	return seek.Displaced(s.db, yield)
}

// BuildDrop works out a batch that removes a database with all it holds. It must be the
// last one of the database. Of the change the position, the time and the author count, and
// only while the database is held. Forget is called when it is committed.
func (s *Store) BuildDrop(name string, id layout.ID, c tree.Change) (*batch.Batch, error) {
	return s.batches.Drop(name, s.Live(id).reader, c)
}

// Forget gives up what is remembered of a database that was dropped.
func (s *Store) Forget(id layout.ID) {
	s.log.Forget(id)
	s.memos.Forget(id)
	s.shared.ForgetGaps(id)
}
