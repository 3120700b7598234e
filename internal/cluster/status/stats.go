package status

import (
	"time"

	"github.com/livetree/livetree/internal/store"
)

// Stats are what a node counts and knows by itself, without asking any other: they are cheap.
type Stats struct {
	// Applied, Tenures and Leads have a value for each shard: how far this node is, how often the home has changed, and whether this
	// node is the home.
	Applied, Tenures []uint64
	Leads            []bool
	// Peers are the other nodes.
	Peers []Peer
	// Level is that of the cluster. Behind is how many records this node lacks, as it looked last.
	Level  uint16
	Behind uint64
	// Void counts groups that did not follow what their database had: a defect.
	Void uint64
	// Forwarded counts requests that were sent to their home, by what became of them.
	Forwarded map[string]uint64
	Forwards  store.DurationCounts
	// Appends, Applies and Barriers are how long these took; see cluster.Metrics for them and for what follows.
	Appends, Applies, Barriers store.DurationCounts
	Refused, Broken, Repairs   uint64
	// Questions counts how often the log was asked where it ends: once for all readers that waited.
	Questions uint64
	// LargeBytes is how many bytes of large writes are under way, LargeWaiting how many large writes wait.
	LargeBytes   int64
	LargeWaiting int
	// LogFileBytes is the size of the file of the log, LogBytes how much of it is in use.
	LogFileBytes, LogBytes int64
	// AlarmsSpace and AlarmsCorrupt are alarms of the log: a file that is full, and one that is not what most others have.
	AlarmsSpace, AlarmsCorrupt int
}

// A Peer is another node, as this one sees it.
type Peer struct {
	Node string
	Up   bool
	// RTT and Clock are 0 until they are known. Clock is by how much the other clock is ahead.
	RTT, Clock time.Duration
}
