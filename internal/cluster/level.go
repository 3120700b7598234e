package cluster

import (
	"fmt"
	"slices"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// A NewerError is [ErrNewer] with the record that cannot be applied.
type NewerError struct {
	Shard        int
	Number       uint64
	Level, Known uint16
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%v: record %d of shard %d has level %d, and this version knows records up to level %d: start this node with the version that the other nodes have",
		ErrNewer, e.Number, e.Shard, e.Level, e.Known)
}

// Is implements what [errors.Is] asks for.
func (e *NewerError) Is(target error) bool { return target == ErrNewer }

// NextLevel returns to which level a cluster may be raised, given what its members have said last, whether they are up or not: to the newest
// that all of them know. It returns the level that the cluster has if one of them knows no later one, or has said nothing yet.
func NextLevel(level uint16, members []record.NodeID, rows []shard.Flushed) uint16 {
	if len(members) == 0 {
		return level
	}
	var known []uint16
	for _, id := range members {
		i := slices.IndexFunc(rows, func(row shard.Flushed) bool { return row.Node == id })
		if i < 0 {
			return level
		}
		known = append(known, rows[i].Level)
	}
	return max(level, slices.Min(known))
}
