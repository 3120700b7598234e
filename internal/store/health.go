package store

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/tree"
)

// Disk states, from good to bad.
const (
	diskOK   int32 = iota
	diskLow        // only writes that free space are let in
	diskFull       // none are
)

const (
	// softMarkBytes is the free space below which the store only lets deletes
	// in; it is also at least a twentieth of the disk and four memtables.
	softMarkBytes = 512 << 20
	// stallLimit is how long Pebble may hold writes up before new ones are
	// refused.
	stallLimit = 5 * time.Second
	// keeperInterval is how often the disk is looked at and the durable group
	// is noted.
	keeperInterval = time.Second
	// flushPoll is how often Close looks whether a flush can still succeed.
	flushPoll = 50 * time.Millisecond
)

// health is what a store knows of its disk.
type health struct {
	disk         atomic.Int32
	damage       atomic.Pointer[error] // the first damage met
	damagedFiles sync.Map              // those that were logged, by name
	stalledSince atomic.Int64          // in Unix milliseconds, 0 if writes flow
	views        atomic.Int64          // open snapshots
	flushAsked   atomic.Bool           // until the keeper's next round
	failed       atomic.Bool           // the process is ending
}

// fail ends the process because the disk did not take a write. It does not
// return. Only the first failure is logged: a disk that fails rarely does so once.
func (s *Store) fail(what string, err error) {
	if s.health.failed.Swap(true) {
		select {} // until the first has ended the process
	}
	// The text alone: errors of Pebble print their stacks in a log of text.
	s.opts.Logger.Error("the disk failed: stopping, so that nothing is acknowledged that is not stored; check the disk, then start again",
		"while", what, "error", err.Error(), "exit", ExitIO)
	s.opts.Fatal(ExitIO)
	s.health.failed.Store(false)           // what is deferred may fail again, and must not wait
	panic("store: Options.Fatal returned") // going on could lose acknowledged writes
}

// pebbleLogger passes on what Pebble says.
type pebbleLogger struct{ *Store }

func (l pebbleLogger) Infof(format string, args ...any) {
	l.opts.Logger.Debug("pebble", "text", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.opts.Logger.Warn("pebble", "text", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.fail("write", fmt.Errorf(format, args...))
}

func (s *Store) eventListener() *pebble.EventListener {
	return &pebble.EventListener{
		// Without a handler Pebble ends the process at the first bad block.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.noteDamage(damage{s.dir.fileName(info.Path), span{info.Bounds.Start, info.Bounds.End.Key}, info.Details})
		},
		BackgroundError: s.backgroundError,
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			s.stallBegan()
			s.opts.Logger.Warn("writes are held up", "reason", info.Reason)
		},
		WriteStallEnd: s.stallEnded,
	}
}

// backgroundError judges a failed flush or compaction. A full disk is waited
// out; damage is noted; anything else is a disk that cannot be trusted.
func (s *Store) backgroundError(err error) {
	switch {
	case isNoSpace(err):
		s.diskFull()
	case errors.Is(damaged(err), ErrDamaged) || s.Damage() != nil:
		s.noteDamage(damage{err: err})
	default:
		s.fail("flush or compact", err)
	}
}

// Admit reports whether the disk can take a write: ErrDamaged, ErrNoSpace or
// ErrStalled if not. A write that only deletes is let in when space is low.
func (s *Store) Admit(w tree.Write) error {
	if err := s.Damage(); err != nil {
		return err
	}
	switch disk := s.health.disk.Load(); {
	case disk == diskFull, disk == diskLow && !w.OnlyDeletes():
		return ErrNoSpace
	}
	since := s.health.stalledSince.Load()
	if since != 0 && s.opts.Now().Sub(time.UnixMilli(since)) > stallLimit {
		return ErrStalled
	}
	return nil
}

// runKeeper looks after the disk.
func (s *Store) runKeeper() {
	defer s.done.Done()
	ticker := time.NewTicker(keeperInterval)
	defer ticker.Stop()
	trimmed := s.opts.Now()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		s.checkSpace()
		s.health.flushAsked.Store(false)
		if err := s.noteDurable(); err != nil {
			s.fail("note the durable group", err)
		}
		if now := s.opts.Now(); now.Sub(trimmed) >= trimInterval {
			trimmed = now
			s.trimLogs()
		}
	}
}

// noteDurable writes the durable file, unless the disk is full: then the old one
// stays, which is as true.
func (s *Store) noteDurable() error {
	err := s.dir.writeDurable(s.pipeline.durable.Load())
	if isNoSpace(err) {
		return nil
	}
	return err
}

// diskFull is called when the file system has no space left: it gives up the
// ballast, so that what has begun can end, and lets no write in.
func (s *Store) diskFull() {
	was := s.health.disk.Swap(diskFull)
	if err := s.dir.dropBallast(); err != nil {
		s.opts.Logger.Error("remove the ballast", "error", err)
	}
	if was != diskFull {
		s.opts.Logger.Error("the disk is full: all writes are refused; free some space")
	}
}

// checkSpace compares the free space with the marks.
func (s *Store) checkSpace() {
	usage, err := s.opts.FS.GetDiskUsage(s.dir.path)
	if err != nil {
		return // the file system does not tell; ENOSPC will
	}
	s.counters.freeBytes.Store(usage.AvailBytes)
	s.counters.totalBytes.Store(usage.TotalBytes)
	mark := max(softMarkBytes, usage.TotalBytes/20, 4*s.opts.MemTableBytes)
	was := s.health.disk.Load()
	now := nextDiskState(was, usage, mark)
	if now == diskOK && s.opts.BallastBytes > 0 && usage.AvailBytes > mark+uint64(s.opts.BallastBytes) {
		if err := s.dir.makeBallast(s.opts.BallastBytes); err != nil {
			s.opts.Logger.Warn("make the ballast", "error", err)
		}
	}
	if now == was || !s.health.disk.CompareAndSwap(was, now) {
		return
	}
	switch now {
	case diskLow:
		s.opts.Logger.Warn("the disk is nearly full: only deletes are accepted; free some space",
			"free_bytes", usage.AvailBytes, "needed_bytes", mark)
	case diskOK:
		s.opts.Logger.Info("there is enough space on the disk again", "free_bytes", usage.AvailBytes)
	}
}

// nextDiskState leaves a bad state only when half as much again as the mark is
// free, so that it does not flap.
func nextDiskState(was int32, usage vfs.DiskUsage, mark uint64) int32 {
	free := usage.AvailBytes
	switch {
	case free > mark+min(mark/2, math.MaxUint64-mark):
		return diskOK
	case was == diskFull && free > mark:
		return diskLow
	case was != diskOK:
		return was
	case free < mark:
		return diskLow
	}
	return was
}

// askFlush starts a flush in the background, at most one in a keeper's round.
func (s *Store) askFlush() {
	if s.health.flushAsked.Swap(true) {
		return
	}
	if _, err := s.db.AsyncFlush(); err != nil {
		s.opts.Logger.Warn("start a flush", "error", err)
	}
}
