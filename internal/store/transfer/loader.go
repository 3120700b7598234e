package transfer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// tableBytes is as large as Pebble makes the tables of its last level.
	tableBytes = 64 << 20
	// namesAtOnce is how many databases are named in one batch.
	namesAtOnce = 1000
)

// ErrOrder says that rows did not come in key order.
var ErrOrder = errors.New("rows are not in order")

// Options say where a Loader loads.
type Options struct {
	// DB is the Pebble of a store that is new, and that is closed when all is loaded:
	// it knows nothing of what the Loader writes.
	DB *pebble.DB
	FS vfs.FS
	// Dir is where tables are written before Pebble takes them over, on the file system
	// of the store. It is removed at the beginning and at the end.
	Dir string
	// Tables are the options of the tables.
	Tables sstable.WriterOptions
}

// A Loader fills a new store with the rows of databases: Add in key order, Flush where
// it must be known that they are there, Name for each database, and Finish. What was
// flushed may be added again after an interruption.
type Loader struct {
	// TableBytes is about how large a table is that is taken over; smaller in tests.
	TableBytes uint64

	opts  Options
	table *sstable.Writer // nil if none is begun
	path  string
	made  int
	last  []byte

	names  *pebble.Batch
	next   layout.ID
	millis int64
}

// NewLoader returns a Loader.
func NewLoader(opts Options) (*Loader, error) {
	l := &Loader{TableBytes: tableBytes, opts: opts, next: 1}
	if err := opts.FS.RemoveAll(opts.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return l, opts.FS.MkdirAll(opts.Dir, 0o700)
}

// Add adds a row. Its key must be after those of all rows that were added.
func (l *Loader) Add(key, value []byte) error {
	if err := checkRow(key); err != nil {
		return err
	}
	if l.last != nil && bytes.Compare(key, l.last) <= 0 {
		return fmt.Errorf("%w: %.32x comes after %.32x", ErrOrder, key, l.last)
	}
	l.last = append(l.last[:0], key...)
	if l.table == nil {
		if err := l.begin(); err != nil {
			return err
		}
	}
	if err := l.table.Set(key, value); err != nil {
		return err
	}
	if l.table.Raw().EstimatedSize() < l.TableBytes {
		return nil
	}
	return l.Flush()
}

// begin starts another table.
func (l *Loader) begin() error {
	l.made++
	l.path = l.opts.FS.PathJoin(l.opts.Dir, fmt.Sprintf("%06d.sst", l.made))
	f, err := l.opts.FS.Create(l.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	l.table = sstable.NewWriter(objstorageprovider.NewFileWritable(f), l.opts.Tables)
	return nil
}

// Flush has the store take over what was added. When it returns, that is durable.
func (l *Loader) Flush() error {
	if l.table == nil {
		return nil
	}
	table := l.table
	l.table = nil
	if err := table.Close(); err != nil { // it syncs the file
		return err
	}
	return l.opts.DB.Ingest(context.Background(), []string{l.path})
}

// Name adds a database with its position.
func (l *Loader) Name(d Database) error {
	if l.names == nil {
		l.names = l.opts.DB.NewBatch()
	}
	l.next, l.millis = max(l.next, d.ID.Serial()+1), max(l.millis, d.Millis)
	if err := l.names.Set(layout.NameKey(d.Name), binary.BigEndian.AppendUint32(nil, uint32(d.ID)), nil); err != nil {
		return err
	}
	if d.Position > 0 {
		// Who reads the log must find that all may be different, not that nothing is.
		row, _ := layout.AppendLogRow(nil, layout.Record{Change: tree.Change{Position: d.Position, Millis: d.Millis, Truncated: true}})
		if err := l.names.Set(layout.LogKey(nil, d.ID, d.Position), row, nil); err != nil {
			return err
		}
	}
	if l.names.Count() < namesAtOnce {
		return nil
	}
	return l.nameAll()
}

// nameAll writes the names that wait.
func (l *Loader) nameAll() error {
	b := l.names
	l.names = nil
	if b == nil {
		return nil
	}
	return errors.Join(l.opts.DB.Apply(b, pebble.Sync), b.Close())
}

// Finish ends the loading. Next is the number that the next new database gets, if that
// is more than follows from the names. No commit of the store may have an earlier time
// than millis. The store must be closed and opened before it is used.
func (l *Loader) Finish(next layout.ID, millis int64) error {
	if err := errors.Join(l.Flush(), l.nameAll()); err != nil {
		return err
	}
	b := l.opts.DB.NewBatch()
	defer func() { _ = b.Close() }()
	err := errors.Join(
		b.Set(layout.NextIDKey, binary.BigEndian.AppendUint32(nil, uint32(max(l.next, next))), nil),
		// Rows of any version may be among them.
		b.Set(layout.FormatKey, binary.BigEndian.AppendUint32(nil, layout.FormatVersion), nil),
		l.late(b, max(l.millis, millis)),
	)
	if err == nil {
		err = l.opts.DB.Apply(b, pebble.Sync)
	}
	return errors.Join(err, l.Close())
}

// late notes the latest time of a commit.
func (l *Loader) late(b *pebble.Batch, millis int64) error {
	row, closer, err := l.opts.DB.Get(layout.GroupKey)
	if err != nil {
		return err
	}
	group, now := binary.BigEndian.Uint64(row), int64(binary.BigEndian.Uint64(row[8:]))
	if err := closer.Close(); err != nil || now >= millis {
		return err
	}
	value := layout.GroupRow(group, millis)
	return b.Set(layout.GroupKey, value[:], nil)
}

// Close frees what an interrupted loading holds.
func (l *Loader) Close() error {
	var err error
	if l.table != nil {
		err = l.table.Close()
		l.table = nil
	}
	if l.names != nil {
		err = errors.Join(err, l.names.Close())
		l.names = nil
	}
	return errors.Join(err, l.opts.FS.RemoveAll(l.opts.Dir))
}
