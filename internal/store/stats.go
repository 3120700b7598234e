package store

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// slowSync is from how long on a sync of the log counts as slow.
const slowSync = time.Second

// counters are what the store counts beside its health.
type counters struct {
	commits     atomic.Uint64
	groups      atomic.Uint64
	syncs       Durations
	slowSyncs   atomic.Uint64
	damages     atomic.Uint64
	stalls      atomic.Uint64
	stallMillis atomic.Int64 // of stalls that are over
	syncBegan   atomic.Int64 // in Unix milliseconds, 0 if no sync is under way
	freeBytes   atomic.Uint64
	totalBytes  atomic.Uint64
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
	Views                    int64
	Pebble                   PebbleStats
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
	c := &s.counters
	stats := s.Health()
	stats.FreeBytes, stats.TotalBytes = c.freeBytes.Load(), c.totalBytes.Load()
	stats.Damages = c.damages.Load()
	stats.ScrubProgress, stats.Scrubbed = s.scrubStats()
	stats.Stalls = c.stalls.Load()
	stats.StallTime = time.Duration(c.stallMillis.Load())*time.Millisecond + stats.Stalled
	stats.Syncs, stats.SlowSyncs = c.syncs.Counts(), c.slowSyncs.Load()
	stats.Commits, stats.Groups = c.commits.Load(), c.groups.Load()
	stats.Durable = s.pipeline.durable.Load()
	stats.Views = s.health.views.Load()
	stats.Pebble = pebbleStats(s.db.Metrics())
	return stats
}

// Health returns only what tells whether the store is well: the disk, the
// stall and the sync under way. It takes no lock.
func (s *Store) Health() Stats {
	return Stats{
		Disk:    diskNames[s.health.disk.Load()],
		Stalled: s.since(&s.health.stalledSince),
		Syncing: s.since(&s.counters.syncBegan),
	}
}

// since returns how long ago a moment was that is kept in Unix milliseconds; 0
// if there was none.
func (s *Store) since(millis *atomic.Int64) time.Duration {
	began := millis.Load()
	if began == 0 {
		return 0
	}
	return max(0, s.opts.Now().Sub(time.UnixMilli(began)))
}

// timeSync counts a sync of the log.
func (s *Store) timeSync(sync func()) {
	began := s.opts.Now()
	s.counters.syncBegan.Store(began.UnixMilli())
	sync()
	s.counters.syncBegan.Store(0)
	took := s.opts.Now().Sub(began)
	s.counters.syncs.Observe(took)
	if took > slowSync {
		s.counters.slowSyncs.Add(1)
	}
}

// stallBegan and stallEnded are called by Pebble.
func (s *Store) stallBegan() {
	if s.health.stalledSince.CompareAndSwap(0, s.opts.Now().UnixMilli()) {
		s.counters.stalls.Add(1)
	}
}

func (s *Store) stallEnded() {
	s.counters.stallMillis.Add(s.since(&s.health.stalledSince).Milliseconds())
	s.health.stalledSince.Store(0)
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
func (s *Store) DatabaseStats(id ID) (DatabaseStats, error) {
	view := s.View()
	defer view.Release()
	var stats DatabaseStats
	var err error
	if stats.Position, err = view.Tree(id).Position(); err != nil {
		return stats, err
	}
	for space, bytes := range map[byte]*uint64{spaceData: &stats.DataBytes, spaceIndex: &stats.IndexBytes, spaceLog: &stats.LogBytes} {
		if *bytes, err = s.db.EstimateDiskUsage(appendSpace(nil, space, id), appendSpace(nil, space, id+1)); err != nil {
			return stats, damaged(err)
		}
	}
	return stats, nil
}
