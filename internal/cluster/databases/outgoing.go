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
func (o *outgoing) take(tenure uint64, origin record.Origin, id store.ID) []byte {
	b := o.bytes
	o.bytes = nil
	if b == nil {
		b, _ = engine.EncodeRequest(o.req, forwardHead) // it did not fail before, and the request is the same
	}
	putHead(b, tenure, origin, id)
	return b
}

// wait returns when a request that was not taken may be sent again: when the home of its shard may be another, or after a while. That is longer each time for a large one. Its
// home may have no room, and would be sent all of it again with each record that others write.
func (o *outgoing) wait(ctx context.Context, d *Databases, s int, tenure uint64) {
	if !o.isLarge {
		_, _, changed := d.node.Watch(s)
		wait(ctx, changed)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(again<<min(o.refused, 8), mostAgain))
	defer cancel()
	o.refused++
	for {
		head, _, changed := d.node.Watch(s)
		if head.Tenure != tenure {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// putHead writes what stands before a request, which has room for it.
func putHead(b []byte, tenure uint64, o record.Origin, id store.ID) {
	binary.BigEndian.PutUint64(b, tenure)
	binary.BigEndian.PutUint64(b[8:], uint64(o.Node))
	binary.BigEndian.PutUint64(b[16:], o.Number)
	binary.BigEndian.PutUint32(b[24:], uint32(id))
}
