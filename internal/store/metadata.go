package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// metadata is what a store knows of itself.
type metadata struct {
	epoch   uint64   // drawn when the store was made
	etagKey [32]byte // likewise
	group   uint64   // of the newest commit, when the store was opened
	millis  int64    // the latest time of a commit until then
}

// Epoch is a number that was drawn when the store was made: positions of
// different epochs cannot be compared.
func (s *Store) Epoch() uint64 { return s.meta.epoch }

// ETagKey is a secret that was drawn when the store was made.
func (s *Store) ETagKey() []byte { return s.meta.etagKey[:] }

// LastMillis is the latest time of a commit when the store was opened. No later
// commit may have an earlier one.
func (s *Store) LastMillis() int64 { return s.meta.millis }

// loadMetadata reads the metadata rows, and writes them into an empty store.
func (s *Store) loadMetadata() error {
	format, err := metaRow(s.db, layout.FormatKey, 4)
	if errors.Is(err, pebble.ErrNotFound) {
		if err := s.createMetadata(); err != nil {
			return err
		}
		format, err = metaRow(s.db, layout.FormatKey, 4)
	}
	if err != nil {
		return err
	}
	version := binary.BigEndian.Uint32(format)
	if version > layout.FormatVersion {
		return fmt.Errorf("%w: its format is %d, this version reads up to %d", ErrNewer, version, layout.FormatVersion)
	}
	s.pipeline.format = version
	epoch, err := metaRow(s.db, layout.EpochKey, 8)
	if err != nil {
		return missingMetadata(err)
	}
	s.meta.epoch = binary.BigEndian.Uint64(epoch)
	secret, err := metaRow(s.db, layout.ETagKey, len(s.meta.etagKey))
	if err != nil {
		return missingMetadata(err)
	}
	copy(s.meta.etagKey[:], secret)
	group, err := metaRow(s.db, layout.GroupKey, 16)
	if err != nil {
		return missingMetadata(err)
	}
	s.meta.group = binary.BigEndian.Uint64(group)
	s.meta.millis = int64(binary.BigEndian.Uint64(group[8:]))
	next, err := metaRow(s.db, layout.NextIDKey, 4)
	if err != nil {
		return missingMetadata(err)
	}
	s.databases.next = layout.ID(binary.BigEndian.Uint32(next))
	return nil
}

func missingMetadata(err error) error {
	if errors.Is(err, pebble.ErrNotFound) {
		return fmt.Errorf("%w: metadata is missing", ErrDamaged)
	}
	return err
}

// metaRow returns a copy of a row of a known size.
func metaRow(source pebble.Reader, key []byte, size int) ([]byte, error) {
	value, closer, err := source.Get(key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closer.Close() }()
	if len(value) != size {
		return nil, damage.AtRow(key, fmt.Errorf("%d bytes instead of %d", len(value), size))
	}
	return append([]byte(nil), value...), nil
}

// createMetadata writes the metadata of a new store. A store that has rows but
// no metadata is not ours.
func (s *Store) createMetadata() error {
	if s.dir.Durable > 0 {
		return fmt.Errorf("%w: metadata is missing, but group %d was committed", ErrDamaged, s.dir.Durable)
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	empty := !it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%w: its store holds rows but no format version", ErrForeign)
	}
	random := make([]byte, 8+len(s.meta.etagKey))
	if _, err := io.ReadFull(s.opts.Rand, random); err != nil {
		return fmt.Errorf("draw the epoch: %w", err)
	}
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	group := layout.GroupRow(0, s.opts.Now().UnixMilli())
	rows := []struct{ key, value []byte }{
		{layout.FormatKey, binary.BigEndian.AppendUint32(nil, layout.FormatFirst)},
		{layout.EpochKey, random[:8]},
		{layout.ETagKey, random[8:]},
		{layout.GroupKey, group[:]},
		{layout.NextIDKey, binary.BigEndian.AppendUint32(nil, 1)},
	}
	for _, row := range rows {
		if err := b.Set(row.key, row.value, nil); err != nil {
			return err
		}
	}
	return applyForGood(s, b)
}

// applyForGood applies rows, which cannot be lost when it returns. Nothing else is waited for, so
// it is for what is done seldom.
func applyForGood(s *Store, b *pebble.Batch) error {
	if !s.opts.Replicated {
		return s.db.Apply(b, pebble.Sync)
	}
	if err := s.db.Apply(b, pebble.NoSync); err != nil {
		return err
	}
	return s.db.Flush()
}
