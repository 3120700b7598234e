package databases

import (
	"context"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/cluster/large"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// This file has large writes wait until there is room for them at this node: see package large.
//
// A write enters once where it is judged. One of this node's client does so when the database begins to make it, one that was forwarded here before its bytes are
// read: they are in memory as they came, and the nodes that are made of them come on top. A write that is sent to another node enters before
// it is turned into bytes, and leaves when it is answered.
//
// A write waits for as long as it may take, and its time begins when it has entered. Otherwise one that waited long would be given up in the middle, and then nobody can tell its
// client whether it was made.

// DefaultLargeBytes is Options.LargeBytes where that is 0.
const DefaultLargeBytes = 64 << 20

// Enter implements [engine.Log]. A write that was forwarded here has entered before.
func (d *Databases) Enter(ctx context.Context, late <-chan time.Time, id store.ID, req *engine.Request) (leave func(), err error) {
	bytes := int64(req.Bytes())
	if req.Origin != (engine.Origin{}) || bytes <= d.o.SmallBytes {
		return passed, nil
	}
	return enter(ctx, d, d.judging, late, whoOf(id, req.Who), bytes)
}

// passed is how a write leaves that did not enter.
func passed() {}

// enterForwarded is Enter for a request of another node.
func enterForwarded(d *Databases, id store.ID, body []byte) (leave func(), err error) {
	if int64(len(body)) <= d.o.SmallBytes {
		return passed, nil
	}
	return enter(context.Background(), d, d.judging, nil, whoOf(id, engine.AskerOf(body)), int64(len(body)))
}

// enter has a write enter by a gate, until its deadline. Nothing waits any more when the node has ended.
func enter(ctx context.Context, d *Databases, g *large.Gate, late <-chan time.Time, who large.Who, bytes int64) (leave func(), err error) {
	if bytes <= d.o.SmallBytes {
		return passed, nil
	}
	ctx, cancel := d.untilEnd(ctx, engine.WaitFor(d.o.Deadline, int(bytes)))
	defer cancel()
	if leave, err = g.Enter(ctx, late, who, bytes); err != nil {
		return nil, noRoom(err)
	}
	return leave, nil
}

// whoOf returns whose write it is.
func whoOf(id store.ID, who auth.Identity) large.Who {
	return large.Who{Database: uint32(id), UID: who.UID(), Admin: who.Admin}
}

// noRoom says that a write has not entered.
func noRoom(err error) error {
	return fault.Wrap(fault.Unavailable, err, "nothing was written: too many large writes are under way, try again, or cut it into smaller ones")
}

// Large returns how many bytes of large writes are under way at a node, and how many large writes wait until there is room.
func Large(d *Databases) (bytes int64, waiting int) {
	out, outWaiting := d.outgoing.Bytes()
	in, inWaiting := d.judging.Bytes()
	return out + in, outWaiting + inWaiting
}
