package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// CheckFiles reads every block of every table that the store uses, and every
// record of its manifest, and holds them against their checksums. It reports
// each file, with its size, and what is wrong with it if something is.
func (a *Archive) CheckFiles(ctx context.Context, report func(bytes int64, f Flaw)) error {
	tables, err := a.store.tables()
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := ctx.Err(); err != nil {
			return err
		}
		bytes, err := a.store.checkFile(t.name(), a.store.checkTable)
		report(bytes, Flaw{File: t.file(), Err: err})
	}
	name, err := a.manifest()
	if err != nil {
		return err
	}
	bytes, err := a.store.checkFile(name, checkRecords)
	report(bytes, Flaw{File: pebbleDir + "/" + name, Err: err})
	return nil
}

// manifest returns the name of the manifest in use.
func (a *Archive) manifest() (string, error) {
	found, err := pebble.Peek(a.store.dir.pebblePath(), a.store.opts.FS)
	if err != nil {
		return "", err
	}
	return a.store.opts.FS.PathBase(found.ManifestFilename), nil
}

// A table is a file of Pebble with rows. Its number is higher than that of every
// table that was written before it.
type table struct {
	number uint64
	bytes  int64 // that are in use
	span   span
}

// name is that of the file, and file the same as seen from the data directory.
func (t table) name() string { return fmt.Sprintf("%06d.sst", t.number) }
func (t table) file() string { return pebbleDir + "/" + t.name() }

// tables returns those in use, by number.
func (s *Store) tables() ([]table, error) {
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, damaged(err)
	}
	byNumber := map[uint64]table{}
	for _, level := range levels {
		for _, info := range level {
			t := table{uint64(info.BackingSSTNum), int64(info.Size), span{info.Smallest.UserKey, info.Largest.UserKey}}
			if other, ok := byNumber[t.number]; ok { // another part of the file
				t.bytes += other.bytes
				t.span = t.span.with(other.span)
			}
			byNumber[t.number] = t
		}
	}
	list := make([]table, 0, len(byNumber))
	for _, t := range byNumber {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b table) int { return cmp.Compare(a.number, b.number) })
	return list, nil
}

// A span is the rows from one key to another, both included.
type span struct{ from, to []byte }

func (a span) with(b span) span {
	if bytes.Compare(b.from, a.from) < 0 {
		a.from = b.from
	}
	if bytes.Compare(b.to, a.to) > 0 {
		a.to = b.to
	}
	return a
}

// String says for people what the rows are.
func (a span) String() string {
	if bytes.Equal(a.from, a.to) {
		return describeKey(a.from)
	}
	return describeKey(a.from) + " to " + describeKey(a.to)
}

// checkFile opens a file of Pebble for a check of its content. What is wrong with
// it is marked as damage, what kept the check from reading it is not.
func (s *Store) checkFile(name string, check func(vfs.File) error) (bytes int64, err error) {
	fs := s.opts.FS
	f, err := fs.Open(fs.PathJoin(s.dir.pebblePath(), name))
	if err != nil {
		return 0, openError(err)
	}
	defer func() { _ = f.Close() }()
	if stat, err := f.Stat(); err == nil {
		bytes = stat.Size()
	}
	if err := check(f); err != nil {
		return bytes, openError(err)
	}
	return bytes, nil
}

// checkTable reads all blocks of a table, past the block cache.
func (s *Store) checkTable(f vfs.File) error {
	r, err := s.openTable(f)
	if err != nil {
		return err
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// openTable opens a table past the block cache.
func (s *Store) openTable(f vfs.File) (*sstable.Reader, error) {
	readable, err := sstable.NewSimpleReadable(keepOpen{f})
	if err != nil {
		return nil, err
	}
	options := s.pebbleOptions(s.opts.FS)
	options.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), readable, options.MakeReaderOptions())
	if err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	return r, nil
}

// keepOpen leaves closing a file to whoever opened it.
type keepOpen struct{ vfs.File }

func (keepOpen) Close() error { return nil }
