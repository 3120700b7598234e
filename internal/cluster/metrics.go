package cluster

import (
	"sync/atomic"

	"github.com/livetree/livetree/internal/store"
)

// Metrics count what a node does. They live as long as the process, which may begin again with a copy of its data.
type Metrics struct {
	// Appends are records that this node has appended, until they were applied here; Applies all records, without waiting for their turn; Barriers
	// the waits of readers.
	Appends, Applies, Barriers store.Durations
	// Refused counts records that were not appended since another node's came before them: they are judged again.
	Refused atomic.Uint64
	// Broken counts shards that this node could not go on with, and Repairs how often it began again with a copy.
	Broken, Repairs atomic.Uint64
}
