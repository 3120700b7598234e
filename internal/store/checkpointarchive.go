package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// archiveCacheBytes is enough to read everything once, in order.
const archiveCacheBytes = 8 << 20

// An Archive is a store that is only read: that of a backup, or of a server that
// is stopped. Nothing in its directory changes, and it need not be writable.
type Archive struct {
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
	opts.Fatal = func(int) { panic(errSealed) } // there is nothing that a disk could refuse
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	opts.FS = sealedFS{opts.FS}
	s := &Store{opts: opts, dir: &directory{fs: opts.FS, path: path}}
	a := &Archive{store: s}
	if err := a.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, damaged(err))
	}
	return a, nil
}

func (a *Archive) open() error {
	s := a.store
	_, err := s.dir.read(markerFile)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: it holds no %s", ErrForeign, markerFile)
	}
	if err := s.dir.prepare(); err != nil {
		return err
	}
	found, err := pebble.Peek(s.dir.pebblePath(), s.opts.FS)
	if err != nil {
		return openError(err)
	}
	if !found.Exists {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, s.dir.pebblePath())
	}
	options := s.pebbleOptions(s.opts.FS)
	options.ReadOnly, options.ErrorIfNotExists = true, true
	if s.db, err = pebble.Open(s.dir.pebblePath(), options); err != nil {
		return openError(err)
	}
	if err := a.load(); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

// load reads the metadata, which an archive cannot be without.
func (a *Archive) load() error {
	s := a.store
	if _, err := s.metaRow(formatKey, 4); err != nil {
		return missingMetadata(err)
	}
	if err := s.loadMetadata(); err != nil {
		return err
	}
	s.pipeline.init(s.meta.group+1, s.meta.millis)
	s.pipeline.shut = true
	a.Group, a.Durable, a.Epoch = s.meta.group, s.dir.durable, s.meta.epoch
	a.view = s.newView(a.Group)
	return nil
}

// Names calls yield with the databases in the order of their names, until it
// returns false.
func (a *Archive) Names(yield func(name string, id ID) bool) error { return a.store.Names(yield) }

// Tree returns a database.
func (a *Archive) Tree(id ID) Tree { return a.view.Tree(id) }

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
	if _, err := opts.FS.Stat(opts.FS.PathJoin(path, markerFile)); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w: it holds no %s", path, ErrForeign, markerFile)
	}
	name := opts.FS.PathJoin(path, lockFile)
	if _, err := opts.FS.Stat(name); errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	lock, err := opts.FS.Lock(name)
	if errors.Is(err, syscall.EROFS) {
		return io.NopCloser(nil), nil // no server can write there either
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, lockError(err))
	}
	return lock, nil
}
