package admin

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// collectCluster sends how this node of a cluster does, if it is one.
func (c *collector) collectCluster(p page) {
	if c.opts.Cluster == nil {
		return
	}
	s := c.opts.Cluster.Stats()
	leads := 0
	for i := range s.Applied {
		name := strconv.Itoa(i)
		p.gauge("cluster_applied", "The number of the newest record of a shard that this node has applied.", float64(s.Applied[i]), "shard", name)
		p.gauge("cluster_term", "How often the node that judges the writes of a shard has changed.", float64(s.Tenures[i]), "shard", name)
		if s.Leads[i] {
			leads++
		}
	}
	p.gauge("cluster_leads", "Shards of which this node judges the writes.", float64(leads))
	for _, peer := range s.Peers {
		p.gauge("cluster_peer_up", "1 if this node reaches the other one, else 0.", boolean(peer.Up), "peer", peer.Node)
		p.gauge("cluster_peer_rtt_seconds", "How long a ping to the other node and its answer take, the shortest of the newest.", peer.RTT.Seconds(), "peer", peer.Node)
		p.gauge("cluster_clock_offset_seconds", "By how much the clock of the other node is ahead of that of this one.", peer.Clock.Seconds(), "peer", peer.Node)
	}
	p.counter("cluster_void_total", "Groups of the log that did not follow what their database had: a defect of the server.", float64(s.Void))
	for _, result := range slices.Sorted(maps.Keys(s.Forwarded)) {
		p.counter("cluster_forwarded_total", "Requests that were sent to the node that judges them: it answered, they were not made and are sent again, or their fate is unknown.",
			float64(s.Forwarded[result]), "result", result)
	}
	p.histogram("cluster_forward_seconds", "How long requests took that another node judged.", s.Forwards)
	p.histogram("cluster_append_seconds", "How long it took to append a record to the cluster's log and to apply it here.", s.Appends)
	p.histogram("cluster_apply_seconds", "How long it took to apply a record of the cluster's log.", s.Applies)
	p.histogram("cluster_barrier_seconds", "How long readers waited until this node had all that was acknowledged.", s.Barriers)
	p.counter("cluster_questions_total", "How often this node has asked where the cluster's log ends, once for all readers that waited.", float64(s.Questions))
	p.counter("cluster_append_again_total", "Records that were judged again since one of another node came first.", float64(s.Refused))
	p.counter("cluster_digest_mismatch_total", "Shards whose log this node could not go on with: its data differs, or is behind what the log still has.", float64(s.Broken))
	p.counter("cluster_repairs_total", "How often this node has set its data aside and begun again with a copy of another node's.", float64(s.Repairs))
	p.gauge("cluster_behind_records", "Records of the cluster's log that this node has not applied, when it looked last.", float64(s.Behind))
	p.gauge("cluster_level", "Level of the records that the cluster writes; it rises after an upgrade of all nodes.", float64(s.Level))
	p.gauge("cluster_log_file_bytes", "Size of the file of the cluster's log; it does not shrink by itself.", float64(s.LogFileBytes))
	p.gauge("cluster_log_bytes", "How much of that file is in use.", float64(s.LogBytes))
	p.gauge("cluster_large_write_bytes", "How many bytes of large writes are under way at this node, to the log or to their home.", float64(s.LargeBytes))
	p.gauge("cluster_large_writes_waiting", "How many large writes wait until there is room for them.", float64(s.LargeWaiting))
	const alarms = "Alarms of the cluster's log, of all nodes: nothing can be written while there is one."
	p.gauge("cluster_log_alarms", alarms, float64(s.AlarmsSpace), "kind", "space")
	p.gauge("cluster_log_alarms", alarms, float64(s.AlarmsCorrupt), "kind", "corrupt")
}

// etcdPrefix is that of the metrics of etcd, which has them in the registry of the process.
const etcdPrefix = "etcd_"

// gatherer returns where metrics come from: in a cluster also from etcd, which is part of this process.
func gatherer(registry *prometheus.Registry, c Cluster) prometheus.Gatherer {
	if c == nil {
		return registry
	}
	return prometheus.Gatherers{registry, prometheus.GathererFunc(onlyEtcd(prometheus.DefaultGatherer.Gather))}
}

// onlyEtcd leaves out what is not etcd's: that registry has metrics of the Go runtime and of libraries, too.
func onlyEtcd[F interface{ GetName() string }](gather func() ([]F, error)) func() ([]F, error) {
	return func() ([]F, error) {
		all, err := gather()
		return slices.DeleteFunc(all, func(f F) bool { return !strings.HasPrefix(f.GetName(), etcdPrefix) }), err
	}
}
