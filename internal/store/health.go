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

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/logkeep"
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
	opts   Options
	opened time.Time          // what moments are counted from
	dir    *datadir.Directory // nil until it is locked

	disk         atomic.Int32
	damage       atomic.Pointer[error] // the first damage met
	damagedFiles sync.Map              // those that were logged, by name
	stalledSince atomic.Int64          // a moment, 0 if writes flow
	views        atomic.Int64          // open snapshots
	flushAsked   atomic.Bool           // until the keeper's next round
	failed       atomic.Bool           // the process is ending

	// What is counted beside.
	damages               atomic.Uint64
	stalls                atomic.Uint64
	stallMillis           atomic.Int64 // of stalls that are over
	syncs                 Durations
	slowSyncs             atomic.Uint64
	syncBegan             atomic.Int64 // a moment, 0 if no sync is under way
	freeBytes, totalBytes atomic.Uint64
}

// fail ends the process because the disk did not take a write. It does not
// return. Only the first failure is logged: a disk that fails rarely does so once.
func (h *health) fail(what string, err error) {
	if h.failed.Swap(true) {
		select {} // until the first has ended the process
	}
	// The text alone: errors of Pebble print their stacks in a log of text.
	h.opts.Logger.Error("the disk failed: stopping, so that nothing is acknowledged that is not stored; check the disk, then start again",
		"while", what, "error", err.Error(), "exit", ExitIO)
	h.opts.Fatal(ExitIO)
	h.failed.Store(false)                  // what is deferred may fail again, and must not wait
	panic("store: Options.Fatal returned") // going on could lose acknowledged writes
}

// pebbleLogger passes on what Pebble says.
type pebbleLogger struct{ *health }

func (l pebbleLogger) Infof(format string, args ...any) {
	l.opts.Logger.Debug("pebble", "text", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.opts.Logger.Warn("pebble", "text", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.fail("write", fmt.Errorf(format, args...))
}

func (h *health) eventListener() *pebble.EventListener {
	return &pebble.EventListener{
		// Without a handler Pebble ends the process at the first bad block.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			h.noteDamage(damagedFile{h.dir.FileName(info.Path), inspect.Span{From: info.Bounds.Start, To: info.Bounds.End.Key}, info.Details})
		},
		BackgroundError: h.backgroundError,
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			h.stallBegan()
			h.opts.Logger.Warn("writes are held up", "reason", info.Reason)
		},
		WriteStallEnd: h.stallEnded,
	}
}

// backgroundError judges a failed flush or compaction. A full disk is waited
// out; damage is noted; anything else is a disk that cannot be trusted.
func (h *health) backgroundError(err error) {
	switch {
	case datadir.IsNoSpace(err):
		h.diskFull()
	case errors.Is(damage.Mark(err), ErrDamaged) || h.met() != nil:
		h.noteDamage(damagedFile{err: err})
	default:
		h.fail("flush or compact", err)
	}
}

// Admit reports whether the disk can take a write: ErrDamaged, ErrNoSpace or
// ErrStalled if not. A write that only deletes is let in when space is low.
func (s *Store) Admit(w tree.Write) error { return s.health.admit(!w.OnlyDeletes()) }

// AdmitStep is Admit for a step of building an index, which adds rows, or of
// dropping one.
func (s *Store) AdmitStep(adds bool) error { return s.health.admit(adds) }

// AdmitSettings is Admit for a change of settings. It is let in when space is low:
// it is small, and an operator must be able to lock clients out.
func (s *Store) AdmitSettings() error { return s.health.admit(false) }

func (h *health) admit(adds bool) error {
	if err := h.met(); err != nil {
		return err
	}
	switch disk := h.disk.Load(); {
	case disk == diskFull, disk == diskLow && adds:
		return ErrNoSpace
	}
	if h.since(&h.stalledSince) > stallLimit {
		return ErrStalled
	}
	return nil
}

// runKeeper looks after the disk.
func (s *Store) runKeeper() {
	defer s.done.Done()
	ticker := time.NewTicker(keeperInterval)
	defer ticker.Stop()
	rounds := logkeep.Rounds{Trimmed: s.opts.Now()}
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		s.health.checkSpace()
		s.health.flushAsked.Store(false)
		s.shared.Calm()
		if err := noteDurable(s); err != nil {
			s.health.fail("note the durable group", err)
		}
		shed := s.health.disk.Load() != diskOK && s.holds.Shed()
		if s.log.Tend(&rounds, shed, s.holds.Awaits) {
			s.holds.Sweep()
		}
	}
}

// noteDurable notes which commits the store has for good. One that is replicated has no log, and knows
// that only when it is closed.
func noteDurable(s *Store) error {
	if s.opts.Replicated {
		return nil
	}
	return s.health.noteDurable(s.pipeline.durable.Load())
}

// isWell reports whether a flush can succeed.
func (h *health) isWell() bool { return h.disk.Load() != diskFull && h.met() == nil }

// noteDurable writes the durable file, unless the disk is full: then the old one
// stays, which is as true.
func (h *health) noteDurable(group uint64) error {
	err := h.dir.WriteDurable(group)
	if datadir.IsNoSpace(err) {
		return nil
	}
	return err
}

// diskFull is called when the file system has no space left: it gives up the
// ballast, so that what has begun can end, and lets no write in.
func (h *health) diskFull() {
	was := h.disk.Swap(diskFull)
	if err := h.dir.DropBallast(); err != nil {
		h.opts.Logger.Error("remove the ballast", "error", err)
	}
	if was != diskFull {
		h.opts.Logger.Error("the disk is full: all writes are refused; free some space")
	}
}

// checkSpace compares the free space with the marks.
func (h *health) checkSpace() {
	usage, err := h.opts.FS.GetDiskUsage(h.dir.Path)
	if err != nil {
		return // the file system does not tell; ENOSPC will
	}
	h.freeBytes.Store(usage.AvailBytes)
	h.totalBytes.Store(usage.TotalBytes)
	mark := max(softMarkBytes, usage.TotalBytes/20, 4*h.opts.MemTableBytes)
	was := h.disk.Load()
	now := nextDiskState(was, usage, mark)
	if now == diskOK && h.opts.BallastBytes > 0 && usage.AvailBytes > mark+uint64(h.opts.BallastBytes) {
		if err := h.dir.MakeBallast(h.opts.BallastBytes); err != nil {
			h.opts.Logger.Warn("make the ballast", "error", err)
		}
	}
	if now == was || !h.disk.CompareAndSwap(was, now) {
		return
	}
	switch now {
	case diskLow:
		h.opts.Logger.Warn("the disk is nearly full: only deletes are accepted; free some space",
			"free_bytes", usage.AvailBytes, "needed_bytes", mark)
	case diskOK:
		h.opts.Logger.Info("there is enough space on the disk again", "free_bytes", usage.AvailBytes)
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
