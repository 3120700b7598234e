package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
)

// archiveCacheBytes is enough to read everything once, in order.
const archiveCacheBytes = 8 << 20

// An Archive is a store that is only read: that of a backup, or of a server that
// is stopped. Nothing in its directory changes, and it need not be writable.
type Archive struct {
	*inspect.Archive
	// Group is the newest group in the store, Durable what the durable file says.
	Group, Durable uint64
	// Epoch is that of the store.
	Epoch uint64

	store *Store
	view  *View
}

// OpenArchive opens the data directory at path for reading. The errors are those
// of Open. Nobody may be writing there: see LockDirectory.
func OpenArchive(path string, opts Options) (*Archive, error) {
	opts.CacheBytes = archiveCacheBytes
	opts.Fatal = func(int) { panic(datadir.ErrSealed) } // there is nothing that a disk could refuse
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	opts.FS = datadir.SealedFS{FS: opts.FS}
	s := &Store{opts: opts, bounds: usualBounds(), dir: datadir.At(opts.FS, path)}
	s.shared.GapSteps = opts.GapSteps
	s.health.opts, s.health.dir = opts, s.dir
	a := &Archive{store: s}
	if err := a.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, damage.Mark(err))
	}
	return a, nil
}

func (a *Archive) open() error {
	s := a.store
	_, err := s.dir.Read(datadir.MarkerFile)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: it holds no %s", ErrForeign, datadir.MarkerFile)
	}
	if err := s.dir.Prepare(); err != nil {
		return err
	}
	found, err := pebble.Peek(s.dir.PebblePath(), s.opts.FS)
	if err != nil {
		return damage.MarkOpen(err)
	}
	if !found.Exists {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, s.dir.PebblePath())
	}
	options := s.pebbleOptions(s.opts.FS)
	options.ReadOnly, options.ErrorIfNotExists = true, true
	if s.db, err = pebble.Open(s.dir.PebblePath(), options); err != nil {
		return damage.MarkOpen(err)
	}
	if err := a.load(); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

// load reads the metadata, which an archive cannot be without.
func (a *Archive) load() error {
	s := a.store
	if _, err := metaRow(s.db, layout.FormatKey, 4); err != nil {
		return missingMetadata(err)
	}
	if err := s.loadMetadata(); err != nil {
		return err
	}
	s.pipeline.init(s.meta.group+1, s.meta.millis)
	s.pipeline.shut = true
	a.Group, a.Durable, a.Epoch = s.meta.group, s.dir.Durable, s.meta.epoch
	a.view = s.newView(a.Group)
	a.Archive = &inspect.Archive{Files: s.files(), DB: s.db, Rows: a.view.snapshot, Next: s.databases.next, Millis: s.meta.millis}
	return nil
}

// Names calls yield with the databases in the order of their names, until it
// returns false.
func (a *Archive) Names(yield func(name string, id layout.ID) bool) error {
	return a.store.Names(yield)
}

// Tree returns a database.
func (a *Archive) Tree(id layout.ID) Tree { return a.view.Tree(id) }

// CheckLog reads the whole change log of a database, and reports what is wrong with
// it.
func (a *Archive) CheckLog(id layout.ID, report func(inspect.Flaw) bool) error {
	return inspect.CheckLog(a.Tree(id).reader, a.store.meta.millis, report)
}

// Rescue writes what can be read of a database into a database of another store,
// which must be empty. It writes the tree again, so that all that follows from it is
// right: what is lost is not there, and nothing else is. The change log begins with
// the rescue. The settings are what change makes of those that can be read.
func (a *Archive) Rescue(l *inspect.Losses, id layout.ID, into *Store, to layout.ID, change func(Settings) (Settings, error)) (inspect.Rescued, error) {
	f := &filling{store: into, id: to, millis: max(a.store.meta.millis, into.LastMillis())}
	rescued, err := a.RescueTo(f, l, id, change)
	if err == nil {
		f.wait()
	}
	return rescued, err
}

// Close closes the archive; nothing of it may be used any more.
func (a *Archive) Close() error {
	a.view.Release()
	return a.store.db.Close()
}

// LockDirectory keeps servers from opening a data directory until the closer is
// closed. It fails with ErrInUse while one has it open, and with ErrForeign where
// there is no data directory. One that no server has ever opened, as in a backup,
// has no file to lock and gets none: nothing is changed there.
func LockDirectory(path string, opts Options) (io.Closer, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, err := opts.FS.Stat(opts.FS.PathJoin(path, datadir.MarkerFile)); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w: it holds no %s", path, ErrForeign, datadir.MarkerFile)
	}
	name := opts.FS.PathJoin(path, datadir.LockFile)
	if _, err := opts.FS.Stat(name); errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	lock, err := opts.FS.Lock(name)
	if errors.Is(err, syscall.EROFS) {
		return io.NopCloser(nil), nil // no server can write there either
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, datadir.LockError(err))
	}
	return lock, nil
}

// CheckMarks compares the small files of the directory with the store: the format
// version, and the group that was known to be durable.
func (a *Archive) CheckMarks(report func(inspect.Flaw)) error {
	row, err := metaRow(a.store.db, layout.FormatKey, 4)
	if err != nil {
		return damage.Mark(err)
	}
	text, err := a.store.dir.Read(datadir.MarkerFile)
	if err != nil {
		return err
	}
	// It rises before the version in the store does, and versions before left it as it was: either may be higher.
	version, err := datadir.ParseNumber(text, datadir.MarkerText)
	if stored := binary.BigEndian.Uint32(row); err != nil || version < layout.FormatFirst || stored < layout.FormatFirst {
		want := datadir.MarkerText + strconv.Itoa(int(binary.BigEndian.Uint32(row))) + "\n"
		report(inspect.Flaw{File: datadir.MarkerFile, Err: fmt.Errorf("%w: it says %.60q instead of %q", ErrDamaged, text, want)})
	}
	if a.Group < a.Durable {
		report(inspect.Flaw{Err: fmt.Errorf("%w: the log ends at group %d, but group %d was committed", ErrDamaged, a.Group, a.Durable)})
	}
	return nil
}
