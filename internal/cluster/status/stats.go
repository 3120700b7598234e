package status

import "time"

// Stats are what a node counts and knows by itself, without asking any other: they are cheap.
type Stats struct {
	// Applied, Tenures and Leads have a value for each shard: how far this node is, how often the home has changed, and whether this
	// node is the home.
	Applied, Tenures []uint64
	Leads            []bool
	// Peers are the other nodes.
	Peers []Peer
	// Void counts groups that did not follow what their database had: a defect. Forwarded counts requests that were sent to
	// their home.
	Void, Forwarded uint64
	// LogFileBytes is the size of the file of the log, LogBytes how much of it is in use.
	LogFileBytes, LogBytes int64
}

// A Peer is another node, as this one sees it.
type Peer struct {
	Node string
	Up   bool
	// RTT and Clock are 0 until they are known. Clock is by how much the other clock is ahead.
	RTT, Clock time.Duration
}
