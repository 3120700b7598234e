package store

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// CommitLevel notes the level of the cluster that the store is of, as CommitRecord commits a record.
func CommitLevel(s *Store, level uint16, applied Applied) error {
	return commitRecord(s, nil, applied, func(b *pebble.Batch) error {
		return b.Set(layout.LevelKey, binary.BigEndian.AppendUint16(nil, level), nil)
	})
}

// LevelOf returns the level that was noted last, 0 if none was.
func LevelOf(s *Store) (uint16, error) {
	row, err := seek.CopyOf(s.db, layout.LevelKey)
	if row == nil || err != nil {
		return 0, err
	}
	if len(row) != 2 {
		return 0, damage.AtRow(layout.LevelKey, fmt.Errorf("the level of the cluster has %d bytes, not 2", len(row)))
	}
	return binary.BigEndian.Uint16(row), nil
}
