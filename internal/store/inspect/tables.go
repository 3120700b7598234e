package inspect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	manifestrecord "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// CheckFiles reads every block of every table that the store uses, and every
// record of its manifest, and holds them against their checksums. It reports
// each file, with its size, and what is wrong with it if something is.
func (a *Archive) CheckFiles(ctx context.Context, report func(bytes int64, f Flaw)) error {
	tables, err := Tables(a.DB)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := ctx.Err(); err != nil {
			return err
		}
		bytes, err := a.Files.Check(t.Name(), a.Files.CheckTable)
		report(bytes, Flaw{File: t.File(), Err: err})
	}
	name, err := a.Files.manifest()
	if err != nil {
		return err
	}
	bytes, err := a.Files.Check(name, checkRecords)
	report(bytes, Flaw{File: layout.PebbleDir + "/" + name, Err: err})
	return nil
}

// manifest returns the name of the manifest in use.
func (f Files) manifest() (string, error) {
	found, err := pebble.Peek(f.Dir, f.FS)
	if err != nil {
		return "", err
	}
	return f.FS.PathBase(found.ManifestFilename), nil
}

// A Table is a file of Pebble with rows. Its number is higher than that of every
// table that was written before it.
type Table struct {
	Number uint64
	Bytes  int64 // that are in use
	span   Span
}

// Name returns the name of the file.
func (t Table) Name() string { return fmt.Sprintf("%06d.sst", t.Number) }

// File returns the name as seen from the data directory.
func (t Table) File() string { return layout.PebbleDir + "/" + t.Name() }

// Tables returns the tables in use, by number.
func Tables(db *pebble.DB) ([]Table, error) {
	levels, err := db.SSTables()
	if err != nil {
		return nil, damage.Mark(err)
	}
	byNumber := map[uint64]Table{}
	for _, level := range levels {
		for _, info := range level {
			t := Table{uint64(info.BackingSSTNum), int64(info.Size), Span{info.Smallest.UserKey, info.Largest.UserKey}}
			if other, ok := byNumber[t.Number]; ok { // another part of the file
				t.Bytes += other.Bytes
				t.span = t.span.with(other.span)
			}
			byNumber[t.Number] = t
		}
	}
	list := make([]Table, 0, len(byNumber))
	for _, t := range byNumber {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Table) int { return cmp.Compare(a.Number, b.Number) })
	return list, nil
}

// A Span is the rows from one key to another, both included.
type Span struct{ From, To []byte }

func (a Span) with(b Span) Span {
	if bytes.Compare(b.From, a.From) < 0 {
		a.From = b.From
	}
	if bytes.Compare(b.To, a.To) > 0 {
		a.To = b.To
	}
	return a
}

// String says for people what the rows are.
func (a Span) String() string {
	if bytes.Equal(a.From, a.To) {
		return layout.DescribeKey(a.From)
	}
	return layout.DescribeKey(a.From) + " to " + layout.DescribeKey(a.To)
}

// Files are the files of Pebble, to be read beside it.
type Files struct {
	FS     vfs.FS
	Dir    string // Pebble's
	Reader sstable.ReaderOptions
}

// Check opens a file of Pebble for a check of its content. What is wrong with
// it is marked as damage, what kept the check from reading it is not.
func (f Files) Check(name string, check func(vfs.File) error) (bytes int64, err error) {
	opened, err := f.FS.Open(f.FS.PathJoin(f.Dir, name))
	if err != nil {
		return 0, damage.MarkOpen(err)
	}
	defer func() { _ = opened.Close() }()
	if stat, err := opened.Stat(); err == nil {
		bytes = stat.Size()
	}
	if err := check(opened); err != nil {
		return bytes, damage.MarkOpen(err)
	}
	return bytes, nil
}

// CheckTable reads all blocks of a table, past the block cache.
func (f Files) CheckTable(table vfs.File) error {
	r, err := f.openTable(table)
	if err != nil {
		return err
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// openTable opens a table past the block cache.
func (f Files) openTable(table vfs.File) (*sstable.Reader, error) {
	readable, err := sstable.NewSimpleReadable(keepOpen{table})
	if err != nil {
		return nil, err
	}
	r, err := sstable.NewReader(context.Background(), readable, f.Reader)
	if err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	return r, nil
}

// keepOpen leaves closing a file to whoever opened it.
type keepOpen struct{ vfs.File }

func (keepOpen) Close() error { return nil }

// checkRecords reads a manifest to its end. Pebble takes a bad record for the end,
// as a power cut may leave one there.
func checkRecords(f vfs.File) error {
	records := manifestrecord.NewReader(f, 0)
	for {
		r, err := records.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnfinished, err)
		}
	}
}

// ErrUnfinished says that a file ends with a record that is not whole. A power cut
// leaves that, and does no harm; so does damage, which does.
var ErrUnfinished = errors.New("the last record is not whole")
