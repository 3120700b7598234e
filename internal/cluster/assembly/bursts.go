package assembly

import (
	"context"

	"github.com/livetree/livetree/internal/cluster/burst"
)

// watchBursts has the collector work harder while the log of this node grows fast.
func watchBursts(ctx context.Context, a *Assembly) {
	log := a.membership.Log()
	burst.New(burst.Runtime{}, func() int64 {
		_, used := log.Size()
		return used
	}).Run(ctx)
}
