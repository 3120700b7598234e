package store

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/layout"
)

// A Ticket is told how the commit that it was handed in with goes on. Its
// methods are called by the syncer, in commit order, and must not block.
type Ticket interface {
	// Durable is called when the commit can no longer be lost, and before any
	// view shows it. View is the number of the first view that will.
	Durable(view uint64)
	// Visible is called when every new view shows the commit: the time to
	// answer.
	Visible()
}

// maxUnsynced bounds the commits that wait for a sync; more wait in Commit.
const maxUnsynced = 2048

// A pipeline holds the commits that are applied and not yet synced.
//
// Commits run under the gate's read lock and the syncer takes a group under its
// write lock, so that a snapshot holds exactly the commits of the groups up to
// its own, whole.
type pipeline struct {
	gate  sync.RWMutex
	group atomic.Uint64 // the number of the group that commits join now; set under the gate
	shut  bool          // no more commits
	// between, if set, is run once between two groups, with the number of the
	// first, while no commit can be made.
	between func(group uint64)

	durable atomic.Uint64 // the newest group that is synced

	// order is held while a batch gets its group row and its place in the
	// write-ahead log: whatever part of that a crash leaves, its last group row
	// has the latest time in it.
	order  sync.Mutex
	millis int64    // the latest time of a commit
	noted  [16]byte // the last group row that was written
	format uint32   // the format version of the store

	mu      sync.Mutex
	pending []Ticket // of the open group, in commit order
	batches int      // how many of them brought a batch

	slots chan struct{} // one for each batch that is not synced
	wake  chan struct{} // something is pending
}

func (p *pipeline) init(group uint64, millis int64) {
	p.group.Store(group)
	p.millis = millis
	p.durable.Store(group - 1)
	p.slots = make(chan struct{}, maxUnsynced)
	p.wake = make(chan struct{}, 1)
}

// add appends tickets to the open group. The gate must be held.
func (p *pipeline) add(batches int, tickets ...Ticket) {
	p.mu.Lock()
	p.pending = append(p.pending, tickets...)
	p.batches += batches
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// complete returns the number of the first view that shows all commits that were
// begun before the call.
func (p *pipeline) complete() uint64 {
	if !p.gate.TryLock() { // a commit is under way
		return p.group.Load()
	}
	defer p.gate.Unlock()
	if p.batches == 0 {
		return p.group.Load() - 1
	}
	return p.group.Load()
}

// close refuses further commits; it reports false when that was so already.
func (p *pipeline) close() bool {
	p.gate.Lock()
	defer p.gate.Unlock()
	was := p.shut
	p.shut = true
	return !was
}

// Commit applies a batch, which becomes visible to Live at once, and hands it
// to the syncer. It does not wait for the sync, only for a place in the queue.
// The batch is closed in any case; after an error nothing was applied and the
// ticket is not used.
func (s *Store) Commit(b *batch.Batch, t Ticket) error {
	defer b.Close()
	p := &s.pipeline
	p.slots <- struct{}{}
	p.gate.RLock()
	defer p.gate.RUnlock()
	foretell(s, b, p.group.Load())
	err := s.apply(b.Rows, b.Logged.Millis, b.Format())
	if err != nil {
		s.memos.Undo(b, p.group.Load())
		s.rows.Undo(b.Rows)
		s.holds.Undo(b)
		<-p.slots
		return err
	}
	s.log.Add(b.ID, b.Logged)
	p.add(1, t)
	return nil
}

// foretell tells all that is remembered of the rows, and all holds, that a batch is about to change them, in a group.
// The gate is held, so no view shows the batch yet.
func foretell(s *Store, b *batch.Batch, group uint64) {
	s.memos.Foretell(b, group)
	s.shared.CutGaps(b.ID, b.Rows)
	s.rows.Cut(b.Rows, group, b.Replaces())
	s.holds.Add(b)
}

// apply writes rows of a time, with the number of their group if that is not in the log
// already, and with the format version that they need. The gate is held.
func (s *Store) apply(rows *pebble.Batch, millis int64, format uint32) error {
	p := &s.pipeline
	if p.shut {
		return ErrClosed
	}
	p.order.Lock()
	defer p.order.Unlock()
	// Commits need not come in the order of their times: large ones are timed
	// before their turn, and the databases do not wait for each other.
	p.millis = max(p.millis, millis)
	// Most commits of a group are of one millisecond: the row of the first stands
	// in the log before all of them.
	row := layout.GroupRow(p.group.Load(), p.millis)
	if row != p.noted {
		if err := rows.Set(layout.GroupKey, row[:], nil); err != nil {
			return err
		}
	}
	format = max(p.format, format)
	if format > p.format {
		if err := s.dir.Raise(format); err != nil {
			return datadir.Failed(err)
		}
		if err := rows.Set(layout.FormatKey, binary.BigEndian.AppendUint32(nil, format), nil); err != nil {
			return err
		}
	}
	if err := s.db.Apply(rows, pebble.NoSync); err != nil {
		return err
	}
	p.noted, p.format = row, format
	return nil
}

// Barrier hands in a ticket without a batch: it is called when everything that
// was committed before is durable and visible. An answer that depends on what
// Live showed waits for it.
func (s *Store) Barrier(t Ticket) error {
	s.pipeline.gate.RLock()
	defer s.pipeline.gate.RUnlock()
	if s.pipeline.shut {
		return ErrClosed
	}
	s.pipeline.add(0, t)
	return nil
}

// runSyncer makes one group after the other durable and visible.
func (s *Store) runSyncer() {
	defer s.done.Done()
	several := false // commits were in the last group
	for {
		select {
		case <-s.pipeline.wake:
			if several {
				// Others are about to commit, and may do so first: a sync costs the same
				// for one commit and for many.
				runtime.Gosched()
			}
			several = s.syncGroup() > 1
		case <-s.stop:
			s.syncGroup() // what came in before the pipeline was shut
			return
		}
	}
}

// syncGroup takes the open group, syncs it, publishes it and answers. It returns
// how many were answered.
func (s *Store) syncGroup() int {
	p := &s.pipeline
	p.gate.Lock()
	tickets, batches, group := p.pending, p.batches, p.group.Load()
	p.pending, p.batches = nil, 0
	var view *View
	if batches > 0 {
		view = s.newView(group)
		p.group.Store(group + 1)
	}
	if p.between != nil {
		p.between(p.group.Load() - 1)
		p.between = nil
	}
	p.gate.Unlock()

	if view != nil {
		if !s.opts.Replicated {
			s.health.timeSync(s.syncLog)
		}
		s.counters.groups.Add(1)
		s.counters.commits.Add(uint64(batches))
		p.durable.Store(group)
		for _, t := range tickets {
			t.Durable(group)
		}
		s.view.Swap(view).Release()
		s.holds.Durable()
	}
	for _, t := range tickets {
		t.Visible()
	}
	for range batches {
		<-p.slots
	}
	return len(tickets)
}

// syncLog returns when everything applied before is on disk. It does not return
// when that fails: the StrictFS ends the process. (ApplyNoSyncWait and SyncWait would be
// a little faster, but Pebble reserves them for CockroachDB.)
func (s *Store) syncLog() {
	if s.opts.SlowSync != nil {
		s.opts.SlowSync()
	}
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		s.health.fail("sync the write-ahead log", err)
	}
}
