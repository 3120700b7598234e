package databases

import (
	"context"
	"encoding/binary"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
)

// An outgoing request is one that is sent to its home. It may be as large as a body, and the home takes seconds for such a one, in which nobody needs
// its bytes: so they are given up as they are sent, and made again should they be sent again.
type outgoing struct {
	req     engine.Request
	bytes   []byte // nil once they were taken
	isLarge bool
	refused int // how often it was sent in vain
}

// take returns the bytes of the request, with what stands before it.
func (o *outgoing) take(h forwardHeader) []byte {
	b := o.bytes
	o.bytes = nil
	if b == nil {
		b, _ = engine.EncodeRequest(o.req, forwardHead) // it did not fail before, and the request is the same
	}
	h.put(b)
	return b
}

// wait returns when a request that was not taken may be sent again: when the home of its shard may be another, or after a while. That is longer each time for a large one. Its
// home may have no room, and would be sent all of it again with each record that others write.
func (o *outgoing) wait(ctx context.Context, d *Databases, id store.ID, tenure uint64) {
	s := store.ShardOf(id)
	if !o.isLarge {
		_, _, changed := d.node.Watch(s)
		wait(ctx, changed)
		return
	}
	defer learnHome(ctx, d, id)
	waiting, cancel := context.WithTimeout(ctx, min(again<<min(o.refused, 8), mostAgain))
	defer cancel()
	o.refused++
	for {
		head, _, changed := d.node.Watch(s)
		if head.Tenure != tenure {
			return
		}
		select {
		case <-changed:
		case <-waiting.Done():
			return
		}
	}
}

// learnHome returns when this node knows which one is the home of a database. A large request is turned into bytes and sent only then: one that is not the
// home any more would take all of it in vain. If the nodes do not agree in time the request fails by itself.
func learnHome(ctx context.Context, d *Databases, id store.ID) {
	_ = d.node.Barrier(ctx, store.ShardOf(id))
}

// A forwardHeader is what stands before a request.
type forwardHeader struct {
	tenure uint64
	origin record.Origin
	id     store.ID
	start  uint64 // the number before the first of the process that sends it
	again  bool   // it was sent before
}

// put writes the header to where there is room for it.
func (h forwardHeader) put(b []byte) {
	binary.BigEndian.PutUint64(b, h.tenure)
	binary.BigEndian.PutUint64(b[8:], uint64(h.origin.Node))
	binary.BigEndian.PutUint64(b[16:], h.origin.Number)
	binary.BigEndian.PutUint32(b[24:], uint32(h.id))
	binary.BigEndian.PutUint64(b[28:], h.start)
	b[36] = 0
	if h.again {
		b[36] = 1
	}
}

func readHeader(b []byte) forwardHeader {
	return forwardHeader{
		tenure: binary.BigEndian.Uint64(b),
		origin: record.Origin{Node: record.NodeID(binary.BigEndian.Uint64(b[8:])), Number: binary.BigEndian.Uint64(b[16:])},
		id:     store.ID(binary.BigEndian.Uint32(b[24:])), start: binary.BigEndian.Uint64(b[28:]), again: b[36] != 0,
	}
}
