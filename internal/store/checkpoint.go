package store

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/layout"
)

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
	if err := s.pipeline.enter(&s.done); err != nil {
		return nil, err
	}
	defer s.done.Done()
	if err := s.Damage(); err != nil {
		return nil, fmt.Errorf("what is damaged cannot be backed up, restore the last backup: %w", err)
	}
	if s.checkpoint.Swap(true) {
		return nil, ErrCheckpoint
	}
	c := &Checkpoint{Dir: s.dir.Join(datadir.CheckpointDir), store: s}
	if err := c.make(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a checkpoint: %w", damage.Mark(err)), c.Remove())
	}
	return c, nil
}

// enter keeps Close waiting, until done.Done.
func (p *pipeline) enter(done *sync.WaitGroup) error {
	p.gate.RLock()
	defer p.gate.RUnlock()
	if p.shut {
		return ErrClosed
	}
	done.Add(1)
	return nil
}

func (c *Checkpoint) make() error {
	s := c.store
	if err := s.dir.DropCheckpoint(); err != nil {
		return err
	}
	if err := datadir.MakeDirectory(s.opts.FS, c.Dir); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := c.link(); err != nil {
		return err
	}
	copied := datadir.At(s.opts.FS, c.Dir)
	marker, err := s.dir.Read(datadir.MarkerFile)
	if err != nil {
		return err
	}
	if err := copied.Write(datadir.MarkerFile, marker); err != nil {
		return err
	}
	if s.opts.Replicated {
		return nil // it has no such file
	}
	// A new directory has no such file, and its number is 0.
	return copied.WriteDurable(c.Group)
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
		if s.opts.Replicated {
			err = s.flush() // there is no write-ahead log to copy; the flush before has left little
		}
		if err == nil {
			err = s.db.Checkpoint(s.opts.FS.PathJoin(c.Dir, layout.PebbleDir), pebble.WithFlushedWAL())
		}
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
	err := c.store.dir.DropCheckpoint()
	c.store.checkpoint.Store(false)
	return err
}

// RenewEpoch draws another epoch for the store in a directory, which nobody may
// have open. A store that was restored goes on from positions that the original
// has used for other changes: those who know the original must not compare.
func RenewEpoch(path string, opts Options) error {
	s, err := Open(path, opts)
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	epoch := make([]byte, 8)
	_, err = io.ReadFull(s.opts.Rand, epoch)
	if err == nil {
		// Who holds the log of the original goes on with that.
		from, to := layout.HoldsRange()
		err = errors.Join(b.DeleteRange(from, to, nil), b.Set(layout.EpochKey, epoch, nil))
	}
	if err == nil {
		err = applyForGood(s, b)
	}
	return errors.Join(err, b.Close(), s.Close())
}
