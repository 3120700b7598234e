package databases

import (
	"context"

	"github.com/livetree/livetree/internal/cluster/large"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/engine"
)

// Pend has a group that was judged here be under way, as commits with some origins.
func Pend(d *Databases, g *engine.Group, origins []record.Origin) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending[g.ID] = &pendingGroup{group: g, origins: origins}
}

// HoldOutgoing leaves no room for large writes that are sent to their home.
func HoldOutgoing(d *Databases) (leave func()) { return hold(d.outgoing, d.o.LargeBytes) }

// HoldJudging leaves no room for large writes that are judged here.
func HoldJudging(d *Databases) (leave func()) { return hold(d.judging, d.o.LargeBytes) }

func hold(g *large.Gate, bytes int64) (leave func()) {
	leave, err := g.Enter(context.Background(), nil, large.Who{UID: "a test"}, bytes)
	if err != nil {
		panic(err)
	}
	return leave
}
