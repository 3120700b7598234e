package outbox

import "net/netip"

// A count is of the clients of one kind. Nobody needs a connection for each client: one over HTTP/2 has
// a hundred streams, and a browser that polls has none most of the time. So what bounds the connections
// of a network does not bound its clients.
type count struct {
	most, open int
	share      int                // of a network
	networks   map[netip.Addr]int // how many they have; one that is not valid is none
	closed     map[Reason]int64   // how many have ended
}

// networkShare is the part of all that a network gets, by default. Few may be its own in any case.
const networkShare = 8

func newCount(most, share int) count {
	if share == 0 {
		share = max(fewStrangers, most/networkShare)
	}
	return count{most: most, share: share, networks: make(map[netip.Addr]int), closed: make(map[Reason]int64)}
}

// isShared reports whether a network gets no more, because others may need the rest.
func (n *count) isShared(network netip.Addr) bool {
	return n.open > n.most/2 && n.networks[network] >= n.share
}

func (n *count) add(network netip.Addr) {
	n.open++
	if network.IsValid() {
		n.networks[network]++
	}
}

func (n *count) remove(network netip.Addr) {
	n.open--
	if n.networks[network]--; n.networks[network] <= 0 {
		delete(n.networks, network)
	}
}
