package assembly

import (
	"context"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/pause"
)

// alarmsEvery is how often a node looks for alarms of the log, and alarmsTime how long what it then does may take.
const (
	alarmsEvery = 500 * time.Millisecond
	alarmsTime  = 5 * time.Second
)

// watchAlarms acts on alarms of the log until ctx ends.
func watchAlarms(ctx context.Context, a *Assembly) {
	for pause.For(ctx, alarmsEvery) == nil {
		looking, cancel := context.WithTimeout(ctx, alarmsTime)
		if err := a.alarms.Look(looking); err != nil && ctx.Err() == nil {
			a.o.Logger.Debug("an alarm of the log is not ended", "error", err)
		}
		cancel()
	}
}

// alarmProblems says what alarms there are, and what to do.
func alarmProblems(a *Assembly) []string {
	return a.alarms.Problems(func(id uint64) string { return a.membership.AddrOf(record.NodeID(id)) })
}

// isCorrupt says whether the log of this node is.
func isCorrupt(a *Assembly) bool {
	log := a.membership.Log()
	return etcdlog.IsCorrupt(log.Raised(), log.ID())
}
