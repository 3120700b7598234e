package store

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/gather"
	"github.com/livetree/livetree/internal/store/journal"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/logkeep"
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/store/rowcache"
	"github.com/livetree/livetree/internal/store/seek"
)

// A Store is the trees of one data directory. It is safe for concurrent use,
// but for Live and Build, which belong to the goroutine that orders the writes
// of their database.
type Store struct {
	opts   Options
	spares *datadir.SpareFS // nil if the file system was given
	dir    *datadir.Directory
	db     *pebble.DB
	meta   metadata

	pipeline pipeline
	view     atomic.Pointer[View]
	shared   seek.Shared
	batches  batch.Maker
	blocks   *pebble.Cache
	rows     *rowcache.Cache // nil if there is none
	memos    memo.Memos
	digests  digests
	health   health
	counters counters
	log      logkeep.Keeper
	holds    journal.Set
	scrub    scrubber
	bounds   selectBounds
	// checkpoint is true while there is one.
	checkpoint atomic.Bool

	databases struct {
		mu   sync.Mutex // held while a database is given its number
		next layout.ID
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
	var spares *datadir.SpareFS
	if opts.FS == nil {
		spares = datadir.NewSpareFS(vfs.Default)
		opts.FS = spares
	}
	s, err := openOn(path, opts)
	if err != nil {
		spares.Close()
		return nil, err
	}
	s.spares = spares
	return s, nil
}

// openOn is Open on a given file system.
func openOn(path string, opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, bounds: usualBounds(), stop: make(chan struct{})}
	s.shared.GapSteps, s.shared.Ahead, s.shared.Flush = opts.GapSteps, opts.Ahead, s.askFlush
	s.shared.Complete, s.shared.Newest = s.pipeline.complete, func() uint64 { return s.view.Load().number }
	s.health.opts, s.health.opened = opts, opts.Now()
	s.memos.Init(opts.CacheBytes)
	s.digests.init()
	if s.dir, err = datadir.Open(opts.FS, path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, datadir.Failed(err))
	}
	s.health.dir = s.dir
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, datadir.Failed(damage.Mark(err))), s.dir.Close())
	}
	return s, nil
}

// open is Open behind the lock on the directory.
func (s *Store) open() error {
	if err := s.dir.DropCheckpoint(); err != nil {
		return err
	}
	fs := &datadir.StrictFS{FS: vfs.OnDiskFull(s.opts.FS, s.health.diskFull), Dir: s.dir.PebblePath(), Fail: s.health.fail}
	if err := s.openPebble(fs); err != nil {
		return err
	}
	fs.IsOpen.Store(true)
	// What rows take, blocks no longer have.
	s.rows = rowcache.New(s.opts.RowBytes, func(bytes int) { s.blocks.Reserve(bytes) })
	if err := s.start(); err != nil {
		return errors.Join(err, closePebble(s))
	}
	return nil
}

func closePebble(s *Store) error {
	err := s.db.Close()
	s.blocks.Unref()
	return err
}

// openPebble opens Pebble, and makes it first where there is none.
func (s *Store) openPebble(fs vfs.FS) error {
	path := s.dir.PebblePath()
	found, err := pebble.Peek(path, fs)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	exists := err == nil && found.Exists
	if !exists && s.dir.Durable > 0 {
		return fmt.Errorf("%w: %s is missing, but group %d was committed", ErrDamaged, path, s.dir.Durable)
	}
	// The first log of a new directory, or of one whose making was cut short, is
	// in Pebble's oldest format whatever is asked for: nothing is served before
	// the next.
	if !exists || found.FormatMajorVersion < formatMajorVersion {
		if err := createPebble(path, s.pebbleOptions(fs)); err != nil {
			return damage.MarkOpen(err)
		}
	}
	options := s.pebbleOptions(fs)
	options.ErrorIfNotExists = true
	s.blocks = pebble.NewCache(options.CacheSize)
	options.Cache = s.blocks
	merges := gather.NewScheduler(max(s.opts.Gather, 0))
	options.Experimental.CompactionScheduler = merges
	s.db, err = pebble.Open(path, options)
	if err != nil {
		s.blocks.Unref()
		return fmt.Errorf("group %d was durable: %w", s.dir.Durable, damage.MarkOpen(err))
	}
	merges.Start(s.db.Metrics)
	return nil
}

func createPebble(path string, options *pebble.Options) error {
	db, err := pebble.Open(path, options)
	if err != nil {
		return err
	}
	return db.Close()
}

// start reads the metadata, publishes the first view and starts the
// goroutines.
func (s *Store) start() error {
	if err := s.loadMetadata(); err != nil {
		return err
	}
	if err := s.dir.Raise(s.pipeline.format); err != nil { // versions before did not
		return err
	}
	if s.meta.group < s.dir.Durable {
		return fmt.Errorf("%w: the log ends at group %d, but group %d was committed; restore a backup into an empty directory with livetree restore",
			ErrDamaged, s.meta.group, s.dir.Durable)
	}
	s.log.Init(s.db, s.opts.LogKeep, s.opts.Now, s.opts.Logger, s.holds.Floor)
	s.holds.Init(s.db, func() (pebble.Reader, func()) {
		v := s.View()
		return v.snapshot, v.Release
	}, s.log.Forget, s.opts.Logger)
	s.scrub.opts, s.scrub.db, s.scrub.files, s.scrub.health, s.scrub.stop = s.opts.Scrub, s.db, s.files(), &s.health, s.stop
	if err := errors.Join(s.health.recallDamage(), s.scrub.load()); err != nil {
		return err
	}
	s.batches = batch.Maker{DB: s.db, IsHeld: s.holds.IsHeld, ChunkBytes: s.opts.ChunkBytes, PriorityRows: s.opts.PriorityRows}
	s.batches.StepChildren, s.batches.Spread, s.batches.ManyRows = s.opts.StepChildren, s.opts.Spread, s.opts.ManyRows
	s.pipeline.init(s.meta.group+1, s.meta.millis)
	s.view.Store(s.newView(s.meta.group))
	s.health.checkSpace()
	s.done.Add(2)
	go s.runSyncer()
	go s.runKeeper()
	if s.opts.Scrub.isOn() {
		s.done.Add(1)
		go func() {
			defer s.done.Done()
			s.scrub.run()
		}()
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
	if err == nil && (!s.opts.Replicated || s.health.isWell()) {
		err = datadir.Failed(s.health.noteDurable(s.pipeline.durable.Load()))
	}
	err = errors.Join(err, closePebble(s), s.dir.Close())
	s.spares.Close()
	return err
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
			if !s.health.isWell() {
				return nil
			}
		}
	}
}
