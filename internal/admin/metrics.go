package admin

import (
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/store"
)

// prefix is that of every metric. docs/metrics.md lists them all.
const prefix = "livetree_"

// maxDatabaseLabels is how many databases have series of their own: the first by
// name. There may be any number of databases, but not of series.
const maxDatabaseLabels = 50

// A collector reads what the packages of the server have counted, at the moment
// when the metrics are asked for.
type collector struct {
	opts    Options
	started time.Time
}

func newCollector(opts Options) *collector {
	return &collector{opts: opts, started: opts.Now()}
}

// Describe implements prometheus.Collector. It describes nothing: that makes the
// registry check the metrics when they are collected.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	p := page{out}
	stats := c.opts.Store.Stats()
	c.collectStore(p, stats)
	collectPebble(p, stats.Pebble)
	c.collectDatabases(p)
	c.collectEngine(p)
	c.collectServer(p)
	c.collectStreams(p)
	c.collectClients(p)
	c.collectArchive(p)
	c.collectHooks(p)
	c.collectCluster(p)
	c.collectProcess(p)
}

// A page takes the metrics of one collection. Labels are pairs of a name and a
// value.
type page struct{ out chan<- prometheus.Metric }

func (p page) send(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	names, values := split(labels)
	p.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(prefix+name, help, names, nil), kind, value, values...)
}

func (p page) gauge(name, help string, value float64, labels ...string) {
	p.send(prometheus.GaugeValue, name, help, value, labels)
}

func (p page) counter(name, help string, value float64, labels ...string) {
	p.send(prometheus.CounterValue, name, help, value, labels)
}

// counters sends one counter for each value of a label.
func (p page) counters(name, help, label string, counts map[string]uint64) {
	for value, n := range counts {
		p.counter(name, help, float64(n), label, value)
	}
}

func (p page) histogram(name, help string, d store.DurationCounts) {
	p.out <- prometheus.MustNewConstHistogram(prometheus.NewDesc(prefix+name, help, nil, nil), d.Count, d.Sum.Seconds(), d.UpTo)
}

func split(labels []string) (names, values []string) {
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return names, values
}

// age returns how many seconds ago something was, +Inf for never.
func (c *collector) age(at time.Time) float64 {
	if at.IsZero() {
		return math.Inf(1)
	}
	return max(0, c.opts.Now().Sub(at).Seconds())
}

func (c *collector) collectStore(p page, s store.Stats) {
	p.histogram("fsync_seconds", "How long syncs of the write-ahead log took.", s.Syncs)
	p.counter("fsync_slow_total", "Syncs of the write-ahead log that took more than a second.", float64(s.SlowSyncs))
	p.gauge("fsync_waiting_seconds", "How long commits have been waiting for the sync under way.", s.Syncing.Seconds())
	p.counter("commits_total", "Commits made durable, changes of settings included.", float64(s.Commits))
	p.counter("commit_groups_total", "Groups of commits, each made durable by one sync.", float64(s.Groups))
	p.counter("row_steps_total", "Steps that reads and writes took over rows and over what is left of deleted ones.", float64(s.Steps))
	p.counter("log_rows_read_total", "Rows of change logs that were read for streams that go on where they were.", float64(s.LogRows))
	p.counter("log_read_bytes_total", "Bytes of those rows.", float64(s.LogBytes))
	p.gauge("last_commit", "The number of the newest durable group; it grows over restarts.", float64(s.Durable))
	p.gauge("wal_bytes", "Write-ahead log that a start would replay.", float64(s.Pebble.LogBytes))
	p.gauge("disk_free_bytes", "Free space on the disk of the data directory.", float64(s.FreeBytes))
	p.gauge("disk_size_bytes", "Size of the disk of the data directory.", float64(s.TotalBytes))
	for _, state := range []string{"ok", "low", "full"} {
		p.gauge("disk_state", "1 for the state that the disk is in: ok, low (only deletes) or full (no writes).",
			boolean(state == s.Disk), "state", state)
	}
	p.counter("corruption_total", "How often damaged data was met.", float64(s.Damages))
	p.counter("write_stalls_total", "How often Pebble held writes up.", float64(s.Stalls))
	p.counter("write_stall_seconds_total", "How long Pebble held writes up.", s.StallTime.Seconds())
	p.counter("etags_hashed_total", "ETags of nodes above 64 KiB that were worked out; the others were remembered.", float64(s.Digests))
	p.counter("memo_hits_total", "Reads of many rows that were answered from remembered text.", float64(s.MemoHits))
	p.counter("memo_misses_total", "Reads of many rows for which no text was remembered, so that the rows were read.", float64(s.MemoMisses))
	p.counter("row_hits_total", "Rows looked up that were remembered, or of which it was that there is none.", float64(s.Rows.Hits))
	p.counter("row_misses_total", "Rows looked up that were not remembered, so that blocks were looked at.", float64(s.Rows.Misses))
	p.gauge("row_cache_bytes", "Memory that remembered rows take.", float64(s.Rows.Bytes))
	p.gauge("views", "Views of the store that are open.", float64(s.Views))
	p.gauge("scrub_progress", "How much of its round the scrub has read, from 0 to 1.", s.ScrubProgress)
	p.gauge("scrub_age_seconds", "Time since the scrub has last read all tables; +Inf for never.", c.age(s.Scrubbed))
	p.gauge("restore_verified_age_seconds", "Time since a backup of this server was last verified and the server was told; +Inf for never.", c.age(read(c.opts.LastVerified)))
	p.gauge("backup_age_seconds", "Age of the newest backup that was made through the admin listener; +Inf for none.", c.age(read(c.opts.LastBackup)))
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func collectPebble(p page, s store.PebbleStats) {
	p.gauge("pebble_disk_bytes", "Disk space that Pebble takes.", float64(s.DiskBytes))
	p.counter("pebble_wal_written_bytes_total", "Bytes written to the write-ahead log.", float64(s.LogBytesWritten))
	p.gauge("pebble_memtable_bytes", "Memory of memtables.", float64(s.MemTableBytes))
	p.counter("pebble_flushes_total", "Flushes of memtables.", float64(s.Flushes))
	p.counter("pebble_compactions_total", "Compactions.", float64(s.Compactions))
	p.counter("pebble_compaction_seconds_total", "Time spent in compactions.", s.CompactionTime.Seconds())
	p.gauge("pebble_compactions_running", "Compactions under way.", float64(s.CompactionsRunning))
	p.gauge("pebble_compaction_debt_bytes", "Bytes that compactions have yet to read.", float64(s.CompactionDebt))
	p.gauge("pebble_cache_bytes", "Bytes in the block cache.", float64(s.CacheBytes))
	p.counter("pebble_cache_hits_total", "Blocks found in the cache.", float64(s.CacheHits))
	p.counter("pebble_cache_misses_total", "Blocks read from disk.", float64(s.CacheMisses))
	p.counter("pebble_filter_hits_total", "Tables not read because their filter said so.", float64(s.FilterHits))
	p.counter("pebble_filter_misses_total", "Tables read although they have a filter.", float64(s.FilterMisses))
	p.gauge("pebble_pinned_bytes", "Old data that open views kept from being dropped.", float64(s.PinnedBytes))
	p.gauge("pebble_read_amplification", "Tables that a read may have to look at.", float64(s.ReadAmplification))
	for i, l := range s.Levels {
		level := strconv.Itoa(i)
		p.gauge("pebble_level_tables", "Tables of a level.", float64(l.Tables), "level", level)
		p.gauge("pebble_level_bytes", "Size of a level.", float64(l.Bytes), "level", level)
		p.gauge("pebble_level_score", "How much a level needs to be compacted: from 1 on it is.", l.Score, "level", level)
		p.counter("pebble_level_in_bytes_total", "Bytes that came into a level.", float64(l.BytesIn), "level", level)
		p.counter("pebble_level_read_bytes_total", "Bytes read from a level by compactions.", float64(l.BytesRead), "level", level)
		p.counter("pebble_level_written_bytes_total", "Bytes written to a level by flushes and compactions.", float64(l.BytesWritten), "level", level)
	}
}

// collectDatabases sends what single databases take. A database that cannot be
// looked at is left out: corruption_total tells.
func (c *collector) collectDatabases(p page) {
	n := 0
	err := c.opts.Store.Names(func(name string, id store.ID) bool {
		n++
		if n > maxDatabaseLabels {
			return true // but counted
		}
		stats, err := c.opts.Store.DatabaseStats(id)
		if err != nil {
			return true
		}
		p.gauge("database_position", "Position of the newest commit of a database.", float64(stats.Position), "database", name)
		p.gauge("database_bytes", "Estimated size on disk of a database, with indexes and change log.",
			float64(stats.DataBytes+stats.IndexBytes+stats.LogBytes), "database", name)
		return true
	})
	if err == nil {
		p.gauge("databases", "Databases of the server.", float64(n))
	}
}

func (c *collector) collectEngine(p page) {
	m := c.opts.Engine
	p.counters("writes_total", "Writes by what became of them.", "outcome", m.Outcomes())
	p.histogram("commit_seconds", "How long writes took that changed something, until they were durable.", m.Commits.Counts())
	p.counters("left_total", "Writes that clients had left for when they go, by what became of them.", "outcome",
		map[string]uint64{"written": m.LeftWritten.Load(), "refused": m.LeftRefused.Load()})
	p.counter("expiry_deleted_total", "Children that were deleted when the time that .expireOn names was over.", float64(m.Expired.Load()))
	p.counter("expiry_failures_total", "Tries to delete what has expired that failed. They are repeated.", float64(m.ExpiryFailures.Load()))
	databases, by := m.LateNow()
	p.gauge("expiry_due_databases", "Databases in which something has expired and is not deleted yet.", float64(databases))
	p.gauge("expiry_lag_seconds", "How long the oldest of that could have been deleted: since it has expired, or since the start or the write that told of it.", by.Seconds())
	p.gauge("left_waiting", "Clients that are gone and have left writes that cannot be made now.", float64(m.LeftWaiting.Load()))
	p.histogram("rules_eval_seconds", "How long it took to judge one read or write by the rules.", m.Judgements.Counts())
	p.counters("rules_denied_total", "Reads and writes that the rules refused.", "access",
		map[string]uint64{"read": m.DeniedReads.Load(), "write": m.DeniedWrites.Load()})
	p.counter("rules_budget_exceeded_total", "Rules that were given up because they did too much.", float64(m.OverBudget.Load()))
}

func (c *collector) collectServer(p page) {
	p.counters("auth_failed_total", "Credentials that were refused, by reason.", "reason", read(c.opts.AuthFailures))
	rejected := c.opts.Requests.rejectedCounts()
	maps.Copy(rejected, read(c.opts.Rejected))
	p.counters("rejected_total", "Requests and connections turned away to protect the server, by reason.", "reason", rejected)
	p.counter("unindexed_queries_total", "Queries refused, or answered by a scan, because there is no index for their order.", float64(c.opts.Requests.unindexed.Load()))
	p.counter("scans_total", "Long scans for queries without an index.", float64(read(c.opts.Scans)))
	p.counter("panics_total", "Requests that ended in a panic: a defect of the server.", float64(read(c.opts.Panics)))
	p.gauge("inflight_body_bytes", "Memory that bodies take at the moment.", float64(read(c.opts.BodyBytes)))
	p.gauge("inflight_requests", "Requests being answered, streams included.", float64(read(c.opts.OpenRequests)))
	p.gauge("recordings", "Recordings of operations under way.", float64(len(*c.opts.Requests.recordings.Load())))
	p.gauge("info", "1, with the version.", 1, "version", c.opts.Version)
	p.gauge("uptime_seconds", "Time since the server started.", c.opts.Now().Sub(c.started).Seconds())
	ready := map[string]float64{"pass": 0, "warn": 0, "fail": 1}
	handler := Handler{opts: c.opts}
	for _, check := range handler.Readiness().Checks {
		p.gauge("not_ready", "1 for a check of /readyz that fails.", ready[check.Result], "check", check.Name)
	}
}

// collectArchive sends how the archive does, if there is one.
func (c *collector) collectArchive(p page) {
	if c.opts.Archive == nil {
		return
	}
	s := c.opts.Archive()
	p.gauge("archive_lag_seconds", "Age of the oldest commit that is not in the archive.", s.Lag(c.opts.Now()).Seconds())
	p.gauge("archive_waiting_bytes", "Records on disk that are not in the archive.", float64(s.WaitingBytes))
	p.counter("archive_sent_bytes_total", "Bytes of records that were archived, before they were compressed.", float64(s.Bytes))
	p.counter("archive_records_total", "Commits that were archived.", float64(s.Records))
	p.counter("archive_segments_total", "Segments that were archived.", float64(s.Segments))
	p.counter("archive_bases_total", "Bases that were archived.", float64(s.Bases))
	p.counter("archive_failures_total", "Tries to write to the archive that failed.", float64(s.Failures))
	p.counter("archive_losses_total", "How often records were lost to the archive: too many waited, or it is not the one that was written before.", float64(s.Losses))
	writes := 1.0
	if s.Standby {
		writes = 0
	} else { // another node knows
		p.gauge("archive_base_age_seconds", "Age of the newest base in the archive; +Inf for none. In a cluster only the node that writes the archive has it.", c.age(s.Base))
	}
	p.gauge("archive_writes", "1 if this server writes the archive: all do but the nodes of a cluster, of which one does.", writes)
}

// maxHookLabels is how many webhooks have series of their own.
const maxHookLabels = 50

// collectHooks sends what webhooks do. Those that are too many for series of their own count together, as other.
func (c *collector) collectHooks(p page) {
	all := read(c.opts.HookStats)
	var others deliver.Stat
	for i, s := range all {
		if i < maxHookLabels {
			c.hook(p, s)
			continue
		}
		others = deliver.Stat{
			Database: "other", Hook: "other", Delivered: others.Delivered + s.Delivered, Failed: others.Failed + s.Failed,
			Retried: others.Retried + s.Retried, Skipped: others.Skipped + s.Skipped, Pending: others.Pending + s.Pending,
			Bytes: others.Bytes + s.Bytes, Lag: max(others.Lag, s.Lag),
		}
	}
	if len(all) > maxHookLabels {
		c.hook(p, others)
	}
	p.gauge("hooks", "Webhooks of all databases.", float64(len(all)))
}

func (c *collector) hook(p page, s deliver.Stat) {
	labels := []string{"database", s.Database, "hook", s.Hook}
	p.counter("hook_delivered_total", "Deliveries of a webhook that its receiver has taken.", float64(s.Delivered), labels...)
	p.counter("hook_failed_total", "Deliveries of a webhook that were given up.", float64(s.Failed), labels...)
	p.counter("hook_retried_total", "Tries to deliver that failed, and are made again.", float64(s.Retried), labels...)
	p.counter("hook_skipped_total", "Commits that are not delivered, as too many waited.", float64(s.Skipped), labels...)
	p.gauge("hook_stored_bytes", "What a webhook has on disk: to be delivered, and the last deliveries, which can be replayed.", float64(s.Bytes), labels...)
	p.gauge("hook_lag_seconds", "Age of the oldest commit that a webhook has not delivered.", s.Lag, labels...)
}

// read asks a source that may be missing.
func read[T any](source func() T) (value T) {
	if source == nil {
		return value
	}
	return source()
}

func (c *collector) collectStreams(p page) {
	s := read(c.opts.Streams)
	p.gauge("streams", "Event streams that are open.", float64(s.Open))
	p.gauge("stream_queue_bytes", "Events waiting for slow streams.", float64(s.QueueBytes))
	p.counter("stream_events_total", "Events sent to streams.", float64(s.Events))
	p.counter("streams_resync_total", "Streams that did not keep up and were given the whole node again.", float64(s.Resyncs))
	p.counters("streams_closed_total", "Streams that ended, by reason.", "reason", s.Closed)
	p.histogram("event_lag_seconds", "Time from a commit until its event was handed to the stream's connection.", s.Lag)
}

func (c *collector) collectClients(p page) {
	s := read(c.opts.Clients)
	p.gauge("clients", "Clients of the SDKs that are connected.", float64(s.Open))
	p.counter("client_events_total", "Events sent to clients of the SDKs.", float64(s.Events))
	if passed := c.opts.Passed; passed != nil {
		p.gauge("clients_passed_on", "Clients of the SDKs that came to this node and are served by another node of the cluster.", float64(passed().Open))
		p.counter("clients_passed_on_total", "Requests of the SDKs that were passed on to another node of the cluster.", float64(passed().Requests))
	}
	p.counters("clients_closed_total", "Clients of the SDKs that ended, by reason.", "reason", s.Closed)
	p.counters("clients_sdk_total", "Clients of the SDKs that came, by the SDK that they say they are.", "sdk", s.SDKs)
	for name, bySDK := range s.Operations {
		for sdk, n := range bySDK {
			p.counter("client_operations_total", "What clients of the SDKs did and were told, as a profile names it, by the kind of client.",
				float64(n), "operation", name, "sdk", sdk)
		}
	}
}

func (c *collector) collectProcess(p page) {
	s := readProcess()
	p.gauge("goroutines", "Goroutines.", float64(s.goroutines))
	p.gauge("rss_bytes", "Memory that the process takes.", float64(s.rssBytes))
	p.gauge("heap_bytes", "Memory of objects, garbage included.", float64(s.heapBytes))
	p.gauge("memory_limit_bytes", "The limit that the garbage collector works for.", float64(s.memoryLimit))
	p.counter("gc_cycles_total", "Garbage collections.", float64(s.gcCycles))
	p.counter("gc_cpu_seconds_total", "Estimated processor time of the garbage collector.", s.gcCPUSeconds)
	p.counter("cpu_seconds_total", "Estimated processor time of the program itself.", s.cpuSeconds)
}
