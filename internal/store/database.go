package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Create makes a database and returns its number, which is never used again.
func (s *Store) Create(name string) (ID, error) {
	s.databases.mu.Lock()
	defer s.databases.mu.Unlock()
	if _, ok, err := s.Find(name); ok || err != nil {
		return 0, errors.Join(err, existsError(ok, name))
	}
	id := s.databases.next
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	err := errors.Join(
		b.Set(nameKey(name), binary.BigEndian.AppendUint32(nil, uint32(id)), nil),
		b.Set(nextIDKey, binary.BigEndian.AppendUint32(nil, uint32(id+1)), nil),
	)
	if err == nil {
		err = s.db.Apply(b, pebble.Sync)
	}
	if err != nil {
		return 0, err
	}
	s.databases.next++
	return id, nil
}

func existsError(exists bool, name string) error {
	if exists {
		return fmt.Errorf("%w: %s", ErrExists, name)
	}
	return nil
}

// Find returns the number of a database.
func (s *Store) Find(name string) (ID, bool, error) {
	value, err := s.metaRow(nameKey(name), 4)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, damaged(err)
	}
	return ID(binary.BigEndian.Uint32(value)), true, nil
}

// Names calls yield with the databases in the order of their names, until it
// returns false.
func (s *Store) Names(yield func(name string, id ID) bool) error {
	first := nameKey("")
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: first, UpperBound: []byte{spaceMeta, metaNames + 1}})
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err == nil && len(value) != 4 {
			err = rowError(it.Key(), errors.New("not a database number"))
		}
		if err != nil {
			return damaged(err)
		}
		if !yield(string(it.Key()[len(first):]), ID(binary.BigEndian.Uint32(value))) {
			return nil
		}
	}
	return damaged(it.Error())
}

// Drop removes a database with all it holds. Nobody may be writing to it.
func (s *Store) Drop(name string) error {
	s.databases.mu.Lock()
	defer s.databases.mu.Unlock()
	id, ok, err := s.Find(name)
	if err != nil || !ok {
		return err
	}
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	if err := b.Delete(nameKey(name), nil); err != nil {
		return err
	}
	for _, space := range []byte{spaceData, spaceIndex, spaceSettings, spaceLog} {
		if err := b.DeleteRange(appendSpace(nil, space, id), appendSpace(nil, space, id+1), nil); err != nil {
			return err
		}
	}
	s.log.forget(id)
	s.memos.forget(id)
	return s.db.Apply(b, pebble.Sync)
}
