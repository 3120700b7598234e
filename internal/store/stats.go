package store

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/rowcache"
	"github.com/livetree/livetree/internal/tree"
)

// slowSync is from how long on a sync of the log counts as slow.
const slowSync = time.Second

// counters are what the store counts beside its health.
type counters struct {
	commits, groups, logRows, logBytes, digests, memoHits, memoMisses atomic.Uint64
}

// Stats are what a store knows of itself, for its operator.
type Stats struct {
	Disk                  string // ok, low or full
	FreeBytes, TotalBytes uint64 // of the disk, at most a second old
	Damages               uint64 // how often damage was met
	// ScrubProgress is how much of its round the scrub has read, from 0 to 1;
	// Scrubbed is when its last complete round ended, zero if none did.
	ScrubProgress float64
	Scrubbed      time.Time
	// Stalls is how often writes were held up, StallTime how long altogether,
	// Stalled for how long they are now.
	Stalls             uint64
	StallTime, Stalled time.Duration
	// Syncing is how long commits have been waiting for the sync that is under
	// way.
	Syncing   time.Duration
	Syncs     DurationCounts
	SlowSyncs uint64
	// Commits became durable in Groups; Durable is the number of the newest
	// group, which goes on over restarts.
	Commits, Groups, Durable uint64
	// Steps is how many rows, and remains of deleted ones, were stepped over.
	Steps uint64
	Views int64
	// LogRows were read from change logs, which are LogBytes.
	LogRows, LogBytes uint64
	// Digests were worked out, rather than recalled.
	Digests uint64
	// MemoHits are the reads that a memo answered, MemoMisses those of split nodes for
	// which there was none. A read of a chunk needs no memo and is neither.
	MemoHits, MemoMisses uint64
	// Rows are the rows that are remembered: look-ups that found theirs, or that there is none; those that had to
	// ask Pebble; the memory that they take.
	Rows   rowcache.Stats
	Pebble PebbleStats
}

// PebbleStats are the most telling of Pebble's own metrics.
type PebbleStats struct {
	Levels             []LevelStats
	DiskBytes          uint64
	LogBytes           uint64 // of write-ahead logs that a start would replay
	LogBytesWritten    uint64
	MemTableBytes      uint64
	Flushes            int64
	Compactions        int64
	CompactionTime     time.Duration
	CompactionsRunning int64
	CompactionDebt     uint64
	CacheBytes         int64
	CacheHits          int64
	CacheMisses        int64
	FilterHits         int64
	FilterMisses       int64
	PinnedBytes        uint64 // which open views kept from being dropped
	ReadAmplification  int
}

// LevelStats are those of one level of Pebble.
type LevelStats struct {
	Tables, Bytes int64
	BytesIn       uint64
	BytesRead     uint64
	BytesWritten  uint64
	Score         float64
}

// diskNames are how operators are told of the disk states.
var diskNames = [...]string{diskOK: "ok", diskLow: "low", diskFull: "full"}

// Stats returns the numbers of this moment. The store must be open.
func (s *Store) Stats() Stats {
	c, h := &s.counters, &s.health
	stats := s.Health()
	stats.FreeBytes, stats.TotalBytes = h.freeBytes.Load(), h.totalBytes.Load()
	stats.Damages = h.damages.Load()
	stats.ScrubProgress, stats.Scrubbed = s.scrub.stats()
	stats.Stalls = h.stalls.Load()
	stats.StallTime = time.Duration(h.stallMillis.Load())*time.Millisecond + stats.Stalled
	stats.Syncs, stats.SlowSyncs = h.syncs.Counts(), h.slowSyncs.Load()
	stats.Commits, stats.Groups = c.commits.Load(), c.groups.Load()
	stats.Durable, stats.Steps = s.pipeline.durable.Load(), s.shared.Steps.Load()
	stats.Views = h.views.Load()
	stats.LogRows, stats.LogBytes = c.logRows.Load(), c.logBytes.Load()
	stats.Digests, stats.MemoHits, stats.MemoMisses = c.digests.Load(), c.memoHits.Load(), c.memoMisses.Load()
	stats.Rows = s.rows.Stats()
	stats.Pebble = pebbleStats(s.db.Metrics())
	return stats
}

// Health returns only what tells whether the store is well: the disk, the
// stall and the sync under way. It takes no lock.
func (s *Store) Health() Stats {
	return Stats{
		Disk:    diskNames[s.health.disk.Load()],
		Stalled: s.health.since(&s.health.stalledSince),
		Syncing: s.health.since(&s.health.syncBegan),
	}
}

// moment returns a time as a number above 0: the milliseconds since the store was
// opened, and one. Unlike the time of day it does not change when the clock is set.
func (h *health) moment(at time.Time) int64 { return 1 + max(0, at.Sub(h.opened).Milliseconds()) }

// since returns how long ago a moment was; 0 if there was none.
func (h *health) since(moment *atomic.Int64) time.Duration {
	began := moment.Load()
	if began == 0 {
		return 0
	}
	return time.Duration(max(0, h.moment(h.opts.Now())-began)) * time.Millisecond
}

// timeSync counts a sync of the log.
func (h *health) timeSync(sync func()) {
	began := h.opts.Now()
	h.syncBegan.Store(h.moment(began))
	sync()
	h.syncBegan.Store(0)
	took := h.opts.Now().Sub(began)
	h.syncs.Observe(took)
	if took > slowSync {
		h.slowSyncs.Add(1)
	}
}

// stallBegan and stallEnded are called by Pebble.
func (h *health) stallBegan() {
	if h.stalledSince.CompareAndSwap(0, h.moment(h.opts.Now())) {
		h.stalls.Add(1)
	}
}

func (h *health) stallEnded() {
	h.stallMillis.Add(h.since(&h.stalledSince).Milliseconds())
	h.stalledSince.Store(0)
}

func pebbleStats(m *pebble.Metrics) PebbleStats {
	p := PebbleStats{
		DiskBytes:          m.DiskSpaceUsage(),
		LogBytes:           m.WAL.Size,
		LogBytesWritten:    m.WAL.BytesWritten,
		MemTableBytes:      m.MemTable.Size,
		Flushes:            m.Flush.Count,
		Compactions:        m.Compact.Count,
		CompactionTime:     m.Compact.Duration,
		CompactionsRunning: m.Compact.NumInProgress,
		CompactionDebt:     m.Compact.EstimatedDebt,
		CacheBytes:         m.BlockCache.Size,
		CacheHits:          m.BlockCache.Hits,
		CacheMisses:        m.BlockCache.Misses,
		FilterHits:         m.Filter.Hits,
		FilterMisses:       m.Filter.Misses,
		PinnedBytes:        m.Snapshots.PinnedSize,
		ReadAmplification:  m.ReadAmp(),
	}
	for _, l := range m.Levels {
		p.Levels = append(p.Levels, LevelStats{
			Tables:       l.TablesCount,
			Bytes:        l.TablesSize,
			BytesIn:      l.TableBytesIn,
			BytesRead:    l.TableBytesRead,
			BytesWritten: l.TableBytesFlushed + l.TableBytesCompacted,
			Score:        l.Score,
		})
	}
	return p
}

// DatabaseStats are what a database takes.
type DatabaseStats struct {
	Position uint64
	// The bytes on disk are estimates; what is only in the write-ahead log does
	// not count.
	DataBytes, IndexBytes, LogBytes uint64
}

// DatabaseStats returns what a database takes, without reading its rows.
func (s *Store) DatabaseStats(id layout.ID) (DatabaseStats, error) {
	view := s.View()
	defer view.Release()
	var stats DatabaseStats
	var err error
	if stats.Position, err = view.Tree(id).Position(); err != nil {
		return stats, err
	}
	for space, bytes := range map[byte]*uint64{layout.SpaceData: &stats.DataBytes, layout.SpaceIndex: &stats.IndexBytes, layout.SpaceLog: &stats.LogBytes} {
		if *bytes, err = s.db.EstimateDiskUsage(layout.AppendSpace(nil, space, id), layout.AppendSpace(nil, space, id+1)); err != nil {
			return stats, damage.Mark(err)
		}
	}
	return stats, nil
}

// DiskBytes returns about how much the rows of the node at p take on disk. What is only in
// the write-ahead log does not count.
func (t Tree) DiskBytes(p tree.Path) (uint64, error) {
	l := t.reader.Locate(p)
	bytes, err := t.store.db.EstimateDiskUsage(l.Key, l.End())
	return bytes, damage.Mark(err)
}

// FreeBytes returns how much space the disk has left, as it was seen last; 0 if that is not known.
func FreeBytes(s *Store) uint64 { return s.health.freeBytes.Load() }

// DropBallast gives back the space that the store keeps for a full disk, so that what has begun can end. It is taken again when there is
// enough.
func DropBallast(s *Store) error { return s.health.dir.DropBallast() }
