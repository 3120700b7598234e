package assembly

import (
	"context"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/burst"
	"github.com/livetree/livetree/internal/cluster/databases"
)

// watchBursts has the collector work harder while the log of this node grows fast, or large writes are under way here.
func watchBursts(ctx context.Context, a *Assembly) {
	log := a.membership.Log()
	size := func() int64 {
		_, used := log.Size()
		return used
	}
	busy := func() int64 {
		bytes, _ := databases.Large(a.data)
		return bytes + cluster.Assembling(a.node)
	}
	burst.New(burst.Runtime{}, size, busy).Run(ctx)
}
