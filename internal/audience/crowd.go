package audience

import (
	"net/netip"
	"sync"
)

// A Crowd counts the listens of many clients. When half of Max are there, a network gets no more than
// a quarter of it: clients that one machine makes must not keep all others from listening. The zero
// Addr is no network.
type Crowd struct {
	Max int64

	mu       sync.Mutex
	listens  int64
	networks map[netip.Addr]int64
}

// crowdShare is the part of a Crowd that a network gets, when crowdedShare is taken.
const (
	crowdShare   = 4
	crowdedShare = 2
)

// join counts a listen. It reports false if there are too many; nil is allowed, as for leave.
func (c *Crowd) join(network netip.Addr) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.networks[network]
	switch {
	case c.listens >= c.Max,
		network.IsValid() && c.listens >= c.Max/crowdedShare && of >= c.Max/crowdShare:
		return false
	case c.networks == nil:
		c.networks = make(map[netip.Addr]int64)
	}
	c.listens++
	c.networks[network] = of + 1
	return true
}

// leave undoes join.
func (c *Crowd) leave(network netip.Addr) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listens--
	if c.networks[network]--; c.networks[network] == 0 {
		delete(c.networks, network)
	}
}
