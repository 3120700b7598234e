package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkpointDir is where a checkpoint is made: in the data directory, so that it
// can be of hard links wherever the backup goes.
const checkpointDir = "checkpoint" + temporarySuffix

// ErrCheckpoint says that a checkpoint is there already.
var ErrCheckpoint = errors.New("a backup is being taken already: wait for it to end")

// A Checkpoint is a copy of the store at one moment, in a directory that is a data
// directory itself. It shares its tables with the store, as hard links.
type Checkpoint struct {
	Dir string
	// Group is the newest group in the copy: all its commits are in it, and none
	// of a later one.
	Group uint64
	// Paused is how long commits were held up.
	Paused time.Duration

	store *Store
}

// Checkpoint makes a copy that holds every commit made before, durable then. The
// copy ends with a group, as views do: commits wait while it is made. That takes
// a few syncs, since what is in memory is flushed before. There is one checkpoint
// at a time, until Remove.
func (s *Store) Checkpoint() (*Checkpoint, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.done.Done()
	if err := s.Damage(); err != nil {
		return nil, fmt.Errorf("what is damaged cannot be backed up, restore the last backup: %w", err)
	}
	if s.checkpoint.Swap(true) {
		return nil, ErrCheckpoint
	}
	c := &Checkpoint{Dir: s.dir.join(checkpointDir), store: s}
	if err := c.make(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a checkpoint: %w", damaged(err)), c.Remove())
	}
	return c, nil
}

// enter keeps Close waiting, until done.Done.
func (s *Store) enter() error {
	s.pipeline.gate.RLock()
	defer s.pipeline.gate.RUnlock()
	if s.pipeline.shut {
		return ErrClosed
	}
	s.done.Add(1)
	return nil
}

func (c *Checkpoint) make() error {
	s := c.store
	if err := s.dir.dropCheckpoint(); err != nil {
		return err
	}
	if err := makeDirectory(s.opts.FS, c.Dir); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := c.link(); err != nil {
		return err
	}
	copied := &directory{fs: s.opts.FS, path: c.Dir}
	marker, err := s.dir.read(markerFile)
	if err != nil {
		return err
	}
	if err := copied.write(markerFile, marker); err != nil {
		return err
	}
	// A new directory has no such file, and its number is 0.
	return copied.writeDurable(c.Group)
}

// link has Pebble make its part of the copy. The syncer runs that between two
// groups: if commits were only held off, those of the open group that come later
// would be missing.
func (c *Checkpoint) link() error {
	s := c.store
	var err error
	done := make(chan struct{})
	if closed := s.pipeline.run(func(group uint64) {
		defer close(done)
		began := s.opts.Now()
		c.Group = group
		err = s.db.Checkpoint(s.opts.FS.PathJoin(c.Dir, pebbleDir), pebble.WithFlushedWAL())
		c.Paused = s.opts.Now().Sub(began)
	}); closed != nil {
		return closed
	}
	<-done
	return err
}

// run has the syncer run something between two groups, soon.
func (p *pipeline) run(between func(group uint64)) error {
	p.gate.Lock()
	defer p.gate.Unlock()
	if p.shut {
		return ErrClosed
	}
	p.between = between
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return nil
}

// Remove gives the space of the checkpoint back.
func (c *Checkpoint) Remove() error {
	err := c.store.dir.dropCheckpoint()
	c.store.checkpoint.Store(false)
	return err
}

// dropCheckpoint removes what was left of a checkpoint when a process ended.
func (d *directory) dropCheckpoint() error {
	path := d.join(checkpointDir)
	if _, err := d.fs.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return d.fs.RemoveAll(path)
}

// RenewEpoch draws another epoch for the store in a directory, which nobody may
// have open. A store that was restored goes on from positions that the original
// has used for other changes: those who know the original must not compare.
func RenewEpoch(path string, opts Options) error {
	s, err := Open(path, opts)
	if err != nil {
		return err
	}
	epoch := make([]byte, 8)
	_, err = io.ReadFull(s.opts.Rand, epoch)
	if err == nil {
		err = s.db.Set(epochKey, epoch, pebble.Sync)
	}
	return errors.Join(err, s.Close())
}

// A sealedFS is a file system on which nothing can be changed. Locks on it hold
// nobody off: they would be files.
type sealedFS struct{ vfs.FS }

var errSealed = errors.New("opened for reading only")

func (sealedFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errSealed }

func (sealedFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errSealed
}

func (sealedFS) ReuseForWrite(_, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errSealed
}

func (sealedFS) Link(_, _ string) error             { return errSealed }
func (sealedFS) Rename(_, _ string) error           { return errSealed }
func (sealedFS) Remove(string) error                { return errSealed }
func (sealedFS) RemoveAll(string) error             { return errSealed }
func (sealedFS) MkdirAll(string, os.FileMode) error { return errSealed }
func (sealedFS) Lock(string) (io.Closer, error)     { return io.NopCloser(nil), nil }
