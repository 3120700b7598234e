package journal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// A Set is the holds of a store.
type Set struct {
	db     *pebble.DB
	view   func() (rows pebble.Reader, release func())
	forget func(layout.ID)
	logger *slog.Logger

	held atomic.Bool // some hold is neither lost nor closed
	// ShedBytes is what a hold keeps at least if giving it up is worth while: see Shed. It is set
	// before anything is held.
	ShedBytes int64

	mu      sync.Mutex
	holds   []*Hold
	loading int  // holds that do not know yet what is pending
	unswept bool // there may be rows that nobody needs any more
}

// Init makes an empty set work. View returns rows that are durable; forget is told of a
// database whose log was deleted.
func (s *Set) Init(db *pebble.DB, view func() (pebble.Reader, func()), forget func(layout.ID), logger *slog.Logger) {
	s.db, s.view, s.forget, s.logger = db, view, forget, logger
	s.ShedBytes = 64 << 20
	s.unswept = true // what was there when the store was opened
}

// IsHeld reports whether somebody needs whole records.
func (s *Set) IsHeld() bool { return s.held.Load() }

// Add notes a commit. It is called before anybody can see its rows: what is not noted may
// be deleted.
func (s *Set) Add(b *batch.Batch) {
	if b.Logged.Position == 0 || !s.held.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holds {
		if h.isArmed() {
			h.add(b)
		}
	}
}

// Undo takes back what Add has noted of a commit that failed; of several the last one comes first. It does nothing for
// one that Add was not told of, or for nil. A database whose drop failed lives on: its log must not be deleted when a
// holder releases what it has read.
func (s *Set) Undo(b *batch.Batch) {
	if b == nil || b.Logged.Position == 0 || !s.held.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holds {
		if h.isArmed() {
			h.undo(b)
		}
	}
}

// Created notes a new database. It is called as Add is.
func (s *Set) Created(id layout.ID, name string) {
	if !s.held.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holds {
		if h.isArmed() {
			h.pending[id] = &pending{name: name, created: true, first: 1}
		}
	}
}

// Durable wakes those who wait for commits.
func (s *Set) Durable() {
	if !s.held.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holds {
		if len(h.pending) > 0 {
			h.signal()
		}
	}
}

// Floor returns up to which position nobody needs the log of a database any more.
func (s *Set) Floor(id layout.ID) uint64 {
	if !s.held.Load() {
		return math.MaxUint64
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.floor(id, nil)
}

// floor is Floor without one hold. The lock is held.
func (s *Set) floor(id layout.ID, but *Hold) uint64 {
	if s.loading > 0 {
		return 0
	}
	floor := uint64(math.MaxUint64)
	for _, h := range s.holds {
		if p := h.pending[id]; p != nil && h != but {
			floor = min(floor, p.first-1)
		}
	}
	return floor
}

// isPending reports whether a hold, but for one, has to read the log of a database. The lock
// is held.
func (s *Set) isPending(id layout.ID, but *Hold) bool {
	if s.loading > 0 {
		return true
	}
	for _, h := range s.holds {
		if h != but && h.pending[id] != nil {
			return true
		}
	}
	return false
}

// Awaits reports whether a hold that was there when the store was closed is not taken up yet, as far as that can be known: what
// it has not read must stay.
func (s *Set) Awaits() bool {
	from, to := layout.HoldsRange()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return true
	}
	defer func() { _ = it.Close() }()
	for ok := it.First(); ok; {
		name := layout.HoldName(it.Key())
		s.mu.Lock()
		taken := s.isTaken(name)
		s.mu.Unlock()
		if !taken {
			return true
		}
		_, next := layout.HoldRange(name)
		ok = it.SeekGE(next)
	}
	return it.Error() != nil
}

// isTaken reports whether there is a hold with a name. The lock is held.
func (s *Set) isTaken(name string) bool {
	return slices.ContainsFunc(s.holds, func(h *Hold) bool { return h.name == name })
}

// update works out again whether somebody needs whole records. The lock is held.
func (s *Set) update() {
	held := false
	for _, h := range s.holds {
		held = held || h.isArmed() || h.share != nil && !h.closed // the holder may be that of another store
	}
	s.held.Store(held)
}

// Shed gives up the holds that keep much, because the disk has little space left. It reports
// whether there were any.
func (s *Set) Shed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	shed := false
	for _, h := range s.holds {
		if h.isArmed() && h.bytes >= s.ShedBytes {
			s.logger.Error("the disk has little space left: the records of commits that are kept are given up, so that writes can go on", "for", h.name, "bytes", h.bytes)
			h.lose()
			shed = true
		}
	}
	return shed
}

// Sweep deletes what no hold needs any more: records, and the logs of databases that were
// dropped. It does nothing unless a hold was lost or closed, or the store was opened, since
// it was last called.
func (s *Set) Sweep() {
	s.mu.Lock()
	due := s.unswept && s.loading == 0
	s.unswept = s.unswept && !due
	for _, h := range s.holds {
		s.unswept = s.unswept || h.share != nil && h.state == Lost // whole records are written all the same
	}
	s.mu.Unlock()
	if !due {
		return
	}
	if err := errors.Join(s.sweepRecords(), s.sweepDropped()); err != nil {
		s.logger.Error("sweep the records of commits", "error", err)
	}
}

// sweepRecords deletes the whole records that nobody needs.
func (s *Set) sweepRecords() error {
	end := []byte{layout.SpaceRecord + 1}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{layout.SpaceRecord}, UpperBound: end})
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	for ok := it.First(); ok; {
		id := layout.RecordDatabase(it.Key())
		next := layout.AppendSpace(nil, layout.SpaceRecord, id+1)
		first := bytes.Clone(it.Key())
		if !it.SeekLT(next) {
			return damage.Mark(it.Error())
		}
		// A hold may have begun since: what was written after the iterator was made stays.
		to := append(bytes.Clone(it.Key()), 0)
		if floor := s.Floor(id); floor < math.MaxUint64 {
			to = slices.MinFunc([][]byte{to, layout.RecordKey(nil, id, floor+1)}, bytes.Compare)
		}
		if bytes.Compare(first, to) < 0 {
			if err := b.DeleteRange(layout.AppendSpace(nil, layout.SpaceRecord, id), to, nil); err != nil {
				return err
			}
		}
		ok = it.SeekGE(next)
	}
	if err := it.Error(); err != nil || b.Empty() {
		return damage.Mark(err)
	}
	return s.db.Apply(b, pebble.NoSync)
}

// sweepDropped deletes what is left of databases that were dropped.
func (s *Set) sweepDropped() error {
	dropped, err := rowsIn(s.db, layout.DroppedRange)
	if err != nil {
		return err
	}
	for key := range dropped {
		id := layout.CutNumber([]byte(key))
		s.mu.Lock()
		needed, shared := s.isPending(id, nil), s.shared()
		s.mu.Unlock()
		for _, h := range shared {
			waits, err := waitsFor(h, id)
			if err != nil {
				return err
			}
			needed = needed || waits
		}
		if needed {
			continue
		}
		b := s.db.NewBatch()
		err := errors.Join(s.bury(b, id), b.Commit(pebble.NoSync), b.Close())
		if err != nil {
			return fmt.Errorf("database %d: %w", id, err)
		}
		s.forget(id)
	}
	return nil
}

// bury deletes the last rows of a database that was dropped, and what holders have noted of
// it. A hold that is closed, and has not released the drop, finds its note without a database.
func (s *Set) bury(b *pebble.Batch, id layout.ID) error {
	err := b.Delete(layout.DroppedKey(id), nil)
	for _, space := range []byte{layout.SpaceLog, layout.SpaceRecord} {
		err = errors.Join(err, b.DeleteRange(layout.AppendSpace(nil, space, id), layout.AppendSpace(nil, space, id+1), nil))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holds {
		err = errors.Join(err, b.Delete(layout.HoldKey(h.name, id), nil))
	}
	return err
}

// rowsIn returns the rows of a range, which are few or small.
func rowsIn(r pebble.Reader, span func() (from, to []byte)) (map[string][]byte, error) {
	from, to := span()
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return nil, damage.Mark(err)
	}
	rows := map[string][]byte{}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var row []byte
		row, err = it.ValueAndErr()
		rows[string(it.Key())] = append([]byte(nil), row...)
	}
	return rows, damage.Mark(errors.Join(err, it.Error(), it.Close()))
}
