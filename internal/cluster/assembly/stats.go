package assembly

import (
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/status"
)

// Stats returns what this node knows by itself. It asks no other node, so that it can be called often.
func (a *Assembly) Stats() status.Stats {
	var s status.Stats
	for i := range shard.Count {
		head, _ := a.node.Applied(i) // the head is where a broken shard stands still
		_, home := a.node.Home(i)
		s.Applied, s.Tenures, s.Leads = append(s.Applied, head.Number), append(s.Tenures, head.Tenure), append(s.Leads, home)
	}
	for _, m := range a.membership.Members() {
		if m.Addr != a.o.Addr {
			s.Peers = append(s.Peers, status.Peer{Node: m.Addr, Up: m.Up, RTT: m.RTT, Clock: m.Clock})
		}
	}
	s.Void, s.Level = a.data.Void(), databases.Level(a.data)
	sent := a.data.Forwarded()
	s.Forwarded = map[string]uint64{"answered": sent.Answered.Load(), "again": sent.Again.Load(), "unknown": sent.Unknown.Load()}
	m := a.o.Metrics
	s.Forwards, s.Appends, s.Applies, s.Barriers = sent.Took.Counts(), m.Appends.Counts(), m.Applies.Counts(), m.Barriers.Counts()
	s.Refused, s.Broken, s.Repairs = m.Refused.Load(), m.Broken.Load(), m.Repairs.Load()
	if heads := a.heads.Load(); heads != nil {
		for i, head := range heads {
			s.Behind += max(head.Number, s.Applied[i]) - s.Applied[i]
		}
	}
	s.Questions = cluster.Questions(a.node)
	s.LargeBytes, s.LargeWaiting = databases.Large(a.data)
	s.LogFileBytes, s.LogBytes = a.membership.Log().Size()
	for _, alarm := range a.membership.Log().Raised() {
		if alarm.Space {
			s.AlarmsSpace++
		} else {
			s.AlarmsCorrupt++
		}
	}
	return s
}
