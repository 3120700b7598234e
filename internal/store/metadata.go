package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// The rows of the metadata space. Names of databases are behind the others, so
// that listing them never steps over the group row, which every commit writes.
const (
	metaSettings byte = 0x00
	metaNames    byte = 0x01
)

func metaKey(name string) []byte { return append([]byte{spaceMeta, metaSettings}, name...) }

func nameKey(name string) []byte { return append([]byte{spaceMeta, metaNames}, name...) }

var (
	formatKey  = metaKey("format")
	epochKey   = metaKey("epoch")
	etagKeyKey = metaKey("etag-key")
	groupKey   = metaKey("group")
	nextIDKey  = metaKey("next-id")
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
	format, err := s.metaRow(formatKey, 4)
	if errors.Is(err, pebble.ErrNotFound) {
		if err := s.createMetadata(); err != nil {
			return err
		}
		format, err = s.metaRow(formatKey, 4)
	}
	if err != nil {
		return err
	}
	if v := binary.BigEndian.Uint32(format); v > formatVersion {
		return fmt.Errorf("%w: its format is %d, this version reads up to %d", ErrNewer, v, formatVersion)
	}
	epoch, err := s.metaRow(epochKey, 8)
	if err != nil {
		return missingMetadata(err)
	}
	s.meta.epoch = binary.BigEndian.Uint64(epoch)
	secret, err := s.metaRow(etagKeyKey, len(s.meta.etagKey))
	if err != nil {
		return missingMetadata(err)
	}
	copy(s.meta.etagKey[:], secret)
	group, err := s.metaRow(groupKey, 16)
	if err != nil {
		return missingMetadata(err)
	}
	s.meta.group = binary.BigEndian.Uint64(group)
	s.meta.millis = int64(binary.BigEndian.Uint64(group[8:]))
	next, err := s.metaRow(nextIDKey, 4)
	if err != nil {
		return missingMetadata(err)
	}
	s.databases.next = ID(binary.BigEndian.Uint32(next))
	return nil
}

func missingMetadata(err error) error {
	if errors.Is(err, pebble.ErrNotFound) {
		return fmt.Errorf("%w: metadata is missing", ErrDamaged)
	}
	return err
}

// metaRow returns a copy of a row of a known size.
func (s *Store) metaRow(key []byte, size int) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closer.Close() }()
	if len(value) != size {
		return nil, rowError(key, fmt.Errorf("%d bytes instead of %d", len(value), size))
	}
	return append([]byte(nil), value...), nil
}

// createMetadata writes the metadata of a new store. A store that has rows but
// no metadata is not ours.
func (s *Store) createMetadata() error {
	if s.dir.durable > 0 {
		return fmt.Errorf("%w: metadata is missing, but group %d was committed", ErrDamaged, s.dir.durable)
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
	group := groupRow(0, s.opts.Now().UnixMilli())
	rows := []struct{ key, value []byte }{
		{formatKey, binary.BigEndian.AppendUint32(nil, formatVersion)},
		{epochKey, random[:8]},
		{etagKeyKey, random[8:]},
		{groupKey, group[:]},
		{nextIDKey, binary.BigEndian.AppendUint32(nil, 1)},
	}
	for _, row := range rows {
		if err := b.Set(row.key, row.value, nil); err != nil {
			return err
		}
	}
	return s.db.Apply(b, pebble.Sync)
}

func groupRow(group uint64, millis int64) (row [16]byte) {
	binary.BigEndian.PutUint64(row[:8], group)
	binary.BigEndian.PutUint64(row[8:], uint64(millis))
	return row
}
