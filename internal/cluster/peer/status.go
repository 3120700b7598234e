package peer

import (
	"slices"
	"strings"
	"time"
)

// A Status is what is known of a peer.
type Status struct {
	Addr string
	Up   bool
	// Since is when the connection was made, or lost.
	Since time.Time
	// RTT is how long a ping and its answer took, the shortest of the newest, and Clock how far the peer's clock is ahead of
	// this node's. Both are 0 until the first answer.
	RTT, Clock time.Duration
	// Err is why there is no connection, nil if there is one.
	Err error
}

// Statuses returns what is known of all peers that are kept, in order of their addresses.
func (f *Front) Statuses() []Status {
	l := &f.links
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Status, 0, len(l.byAddr))
	for addr, k := range l.byAddr {
		s := Status{Addr: addr, Up: k.conn != nil, Since: k.since, Err: k.err}
		if s.Up {
			s.Err = nil
		}
		s.RTT, s.Clock = k.times.best()
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Addr, b.Addr) })
	return all
}

// samples are the newest answers to pings.
type samples struct {
	all  [16]sample
	next int
}

type sample struct {
	rtt, clock time.Duration
	ok         bool
}

func (s *samples) add(sent, now time.Time, clock int64) {
	rtt := now.Sub(sent)
	middle := sent.Add(rtt / 2)
	s.all[s.next%len(s.all)] = sample{rtt, time.Unix(0, clock).Sub(middle), true}
	s.next++
}

// best is the answer that took the shortest time: its clock is known best.
func (s *samples) best() (rtt, clock time.Duration) {
	var found sample
	for _, one := range s.all {
		if one.ok && (!found.ok || one.rtt < found.rtt) {
			found = one
		}
	}
	return found.rtt, found.clock
}
