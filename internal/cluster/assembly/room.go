package assembly

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/livetree/livetree/internal/cluster/fulldisk"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/store"
)

// diskOK is the state of a disk that takes everything.
const diskOK = "ok"

// keepRoom looks at the free space on the disk of this node. When it is low, the store takes no writes but deletes: so the node is the home of
// nothing then, as long as another node can be. When hardly any is left the node stops, with fulldisk.ErrFull.
func keepRoom(ctx context.Context, a *Assembly) {
	err := fulldisk.Watch(ctx, a.o.Data, fulldisk.DiskOf(a.o.Data), func() { stepAside(ctx, a, a.store.Health().Disk != diskOK) }, a.o.Logger)
	if errors.Is(err, fulldisk.ErrFull) {
		a.fail(ctx, errors.Join(err, store.DropBallast(a.store)))
	}
}

// stepAside has this node be the home of nothing, or of its share again. What it is the home of goes to nodes that are ready; it is called again
// and again, so that one that gets ready later is given it then.
func stepAside(ctx context.Context, a *Assembly, aside bool) {
	membership.StepAside(a.membership, aside)
	if !aside {
		return
	}
	homes := 0
	for s := range shard.Count {
		if _, home := a.node.Home(s); home {
			homes++
		}
	}
	if others := a.others(); homes > 0 && len(others) > 0 {
		a.o.Logger.Warn("the disk is nearly full: other nodes judge what this one did", "shards", homes)
		a.giveTo(ctx, others)
	}
}

// TellFull has a node that waits for space say so to the other nodes, so that their status does. What it returns ends that, and must be called before Enter. A node
// whose port is taken, or that is none yet, says nothing.
func TellFull(o Options) (over func()) {
	if !membership.IsNode(o.Data) {
		return func() {}
	}
	front, err := peer.Listen(peer.Options{Addr: o.Addr, Listen: o.Listen, Key: o.Key, Now: o.Now, Logger: o.Logger})
	if err != nil {
		o.Logger.Debug("the other nodes are not told that this one waits for space", "error", err)
		return func() {}
	}
	if err := membership.AnswerWaiting(front, o.Data); err != nil {
		o.Logger.Debug("the other nodes are not told that this one waits for space", "error", err)
	}
	front.Handle(statusCall, func(context.Context, string, []byte) ([]byte, error) {
		free, _ := fulldisk.DiskOf(o.Data)()
		return json.Marshal(status.Report{Version: o.Version, Free: free, Full: true})
	})
	return func() {
		if err := front.Close(); err != nil {
			o.Logger.Debug("close of the front", "error", err)
		}
	}
}
