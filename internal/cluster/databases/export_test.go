package databases

import (
	"context"

	"github.com/livetree/livetree/internal/cluster/large"
)

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
