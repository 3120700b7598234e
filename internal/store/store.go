package store

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Store is the trees of one data directory. It is safe for concurrent use,
// but for Live and Build, which belong to the goroutine that orders the writes
// of their database.
type Store struct {
	opts Options
	dir  *directory
	db   *pebble.DB
	meta metadata

	pipeline pipeline
	view     atomic.Pointer[View]
	hints    hints
	memos    memos
	health   health
	counters counters
	log      logKeeper
	scrub    scrubber
	// checkpoint is true while there is one.
	checkpoint atomic.Bool

	databases struct {
		mu   sync.Mutex // held while a database is made or dropped
		next ID
	}

	stop chan struct{} // closed to stop the keeper and the scrub
	done sync.WaitGroup
}

// Open opens the store in a directory, which it makes if there is none. The
// errors ErrInUse, ErrForeign, ErrNewer and ErrDamaged say why a directory
// cannot be served. Nothing that was stored is changed then, though Pebble may
// have written its log into tables before the damage was met. ExitCode tells a
// directory that cannot be used from a disk that fails. A disk that fails inside
// of Pebble ends the process here already, through Options.Fatal.
func Open(path string, opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, stop: make(chan struct{})}
	s.memos.init(opts.CacheBytes)
	if s.dir, err = openDirectory(opts.FS, path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, failed(err))
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, failed(damaged(err))), s.dir.close())
	}
	return s, nil
}

// open is Open behind the lock on the directory.
func (s *Store) open() error {
	if err := s.dir.dropCheckpoint(); err != nil {
		return err
	}
	fs := &strictFS{FS: vfs.OnDiskFull(s.opts.FS, s.diskFull), dir: s.dir.pebblePath(), fail: s.fail}
	if err := s.openPebble(fs); err != nil {
		return err
	}
	fs.isOpen.Store(true)
	if err := s.start(); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

// openPebble opens Pebble, and makes it first where there is none.
func (s *Store) openPebble(fs vfs.FS) error {
	path := s.dir.pebblePath()
	found, err := pebble.Peek(path, fs)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	exists := err == nil && found.Exists
	if !exists && s.dir.durable > 0 {
		return fmt.Errorf("%w: %s is missing, but group %d was committed", ErrDamaged, path, s.dir.durable)
	}
	// The first log of a new directory, or of one whose making was cut short, is
	// in Pebble's oldest format whatever is asked for: nothing is served before
	// the next.
	if !exists || found.FormatMajorVersion < formatMajorVersion {
		if err := s.createPebble(fs); err != nil {
			return openError(err)
		}
	}
	options := s.pebbleOptions(fs)
	options.ErrorIfNotExists = true
	s.db, err = pebble.Open(path, options)
	if err != nil {
		return fmt.Errorf("group %d was durable: %w", s.dir.durable, openError(err))
	}
	return nil
}

func (s *Store) createPebble(fs vfs.FS) error {
	db, err := pebble.Open(s.dir.pebblePath(), s.pebbleOptions(fs))
	if err != nil {
		return err
	}
	return db.Close()
}

// openError marks the failures of Pebble's Open that mean damage: all but those
// of the system. Pebble names files that are missing, too short or cannot be
// understood, but not always as corruption.
func openError(err error) error {
	errno, ok := errors.AsType[syscall.Errno](err)
	if ok && errno != syscall.ENOENT && !pebble.IsCorruptionError(err) {
		return err
	}
	return fmt.Errorf("%w; restore a backup into an empty directory with livetree restore", &corruption{err})
}

// start reads the metadata, publishes the first view and starts the
// goroutines.
func (s *Store) start() error {
	if err := s.loadMetadata(); err != nil {
		return err
	}
	if s.meta.group < s.dir.durable {
		return fmt.Errorf("%w: the log ends at group %d, but group %d was committed; restore a backup into an empty directory with livetree restore",
			ErrDamaged, s.meta.group, s.dir.durable)
	}
	// Logs may hold old changes of databases that nobody writes to any more.
	if err := s.Names(func(_ string, id ID) bool { s.log.touch(id); return true }); err != nil {
		return err
	}
	if err := errors.Join(s.recallDamage(), s.loadScrub()); err != nil {
		return err
	}
	s.pipeline.init(s.meta.group+1, s.meta.millis)
	s.view.Store(s.newView(s.meta.group))
	s.checkSpace()
	s.done.Add(2)
	go s.runSyncer()
	go s.runKeeper()
	if s.opts.Scrub.isOn() {
		s.done.Add(1)
		go s.runScrub()
	}
	return nil
}

// Close commits what is pending, flushes, so that the next start has nothing to
// replay, and closes. Every view must have been released, every printer closed.
func (s *Store) Close() error {
	if !s.pipeline.close() {
		return nil
	}
	close(s.stop)
	s.done.Wait()
	s.view.Load().Release()
	err := s.flush()
	if err == nil {
		err = failed(s.noteDurable())
	}
	return errors.Join(err, s.db.Close(), s.dir.close())
}

// flush writes out what is only in the write-ahead log. It does not wait for that
// on a full or damaged disk, where Pebble tries again and again.
func (s *Store) flush() error {
	done, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	ticker := time.NewTicker(flushPoll)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ticker.C:
			if s.health.disk.Load() == diskFull || s.Damage() != nil {
				return nil
			}
		}
	}
}
