package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// CommitLevel notes the level of the cluster that the store is of, as CommitRecord commits a record.
func CommitLevel(s *Store, level uint16, applied Applied) error {
	return commitRecord(s, nil, applied, func(b *pebble.Batch) error {
		return b.Set(layout.LevelKey, binary.BigEndian.AppendUint16(nil, level), nil)
	})
}

// LevelOf returns the level that was noted last, 0 if none was.
func LevelOf(s *Store) (uint16, error) {
	row, closer, err := s.db.Get(layout.LevelKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, damage.Mark(err)
	}
	defer func() { _ = closer.Close() }()
	if len(row) != 2 {
		return 0, damage.AtRow(layout.LevelKey, fmt.Errorf("the level of the cluster has %d bytes, not 2", len(row)))
	}
	return binary.BigEndian.Uint16(row), nil
}
