package assembly

import (
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
	s.Void, s.Forwarded = a.data.Void(), a.data.Forwarded()
	s.LogFileBytes, s.LogBytes = a.membership.Log().Size()
	return s
}
