// Package burst keeps the memory of a node small while much is written to it at once.
//
// A write of 100 MB is sent to its home, and goes through etcd in parts, and each of them is copied some ten times on its way. All but two of these copies are garbage
// soon, but Go's collector lets the heap double before it collects: with 500 MB in use that is half a gigabyte of it, on every node. So while the log grows fast, or
// large writes are under way, a [Burst] has the heap grow by a bounded number of bytes between two collections, instead of by its own size. When that is over,
// the collector works as it did before, and what a large write has left is given back: a node with little to do would keep it
// for minutes, and the next large write, or read, would come on top. It is given back at once, and a second time somewhat later: the store writes to its tables
// what it was given last, and holds all of it until then.
//
// Every node of a cluster has its log grow by a large write, so each notices by itself, whichever of them the client has asked. Nothing is announced, and
// nothing rests on it: a burst that is noticed late, or never, costs memory, and one that is none costs some collections.
//
// What it costs: a collection looks through the part of the heap that has pointers, and large writes have hardly any. So the heap may always grow by
// half of that part: where it is most of the heap, the collector runs at most about twice as often as it would.
package burst

import (
	"context"
	"time"
)

const (
	// Every is how often the log is looked at.
	Every = 200 * time.Millisecond
	// fastBytes is by how much the log grows in a burst, within span or up to twice as long.
	fastBytes = 16 << 20
	span      = time.Second
	// calm is how long a burst lasts after that.
	calm = 2 * time.Second
	// spareBytes is by how much the heap may grow between two collections in a burst, or by half of what a collection looks through, and
	// leastPercent is how much it may grow by in any case.
	spareBytes   = 64 << 20
	leastPercent = 5
	// coarse is by which part of its percentage the collector must be off before it is told so: each time stops the process for a moment.
	coarse = 4
	// leftBytes is by how much the log has grown in a burst after which memory is given back, or how large the writes under way were. It is done
	// again after a while.
	leftBytes = 48 << 20
	freeAgain = 6 * time.Second
)

// A Heap is what a Burst changes: that of this process is [Runtime].
type Heap interface {
	// Live is how many bytes were in use after the last collection.
	Live() int64
	// Scanned is how many of them a collection has to look through.
	Scanned() int64
	// Percent is by how much the heap may grow until the next collection. Below 0 it is not collected.
	Percent() int
	SetPercent(percent int)
	// Free collects, and gives the system back what is free.
	Free()
}

// A Burst follows one node. It is of one goroutine.
type Burst struct {
	heap Heap
	size func() int64
	busy func() int64

	last        int64 // the size when it was looked at last
	since       time.Time
	before, now int64 // the growth in the span before since, and after it

	usual int // percent outside of a burst
	tight int // percent now, 0 outside of a burst
	fast  time.Time
	total int64     // by how much the log has grown in this burst
	most  int64     // the largest number of bytes that were under way
	again time.Time // when memory is given back a second time, zero for never
}

// New returns a Burst for a node: size returns the size of its log, which may get smaller, and busy how many bytes of large writes are under way.
func New(heap Heap, size, busy func() int64) *Burst {
	return &Burst{heap: heap, size: size, busy: busy, last: size()}
}

// Run looks at the log until ctx ends, and leaves the heap as it was.
func (b *Burst) Run(ctx context.Context) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			b.Look(now)
		case <-ctx.Done():
			b.end()
			return
		}
	}
}

// Look looks at the node once, at a time.
func (b *Burst) Look(now time.Time) {
	size, busy := b.size(), b.busy()
	grown := max(size-b.last, 0)
	b.last = size
	for elapsed := now.Sub(b.since); elapsed >= span; elapsed = now.Sub(b.since) {
		if elapsed >= 2*span {
			b.since, b.before, b.now = now, 0, 0
			break
		}
		b.since, b.before, b.now = b.since.Add(span), b.now, 0
	}
	b.now += grown
	b.total, b.most = b.total+grown, max(b.most, busy)
	switch fast := b.before+b.now >= fastBytes || busy >= fastBytes; {
	case fast && b.tight == 0:
		b.begin(now, grown, busy)
	case fast:
		b.fast = now
		b.tighten()
	case b.tight != 0 && now.Sub(b.fast) < calm:
		b.tighten()
	case b.tight != 0:
		b.end()
		if b.total >= leftBytes || b.most >= leftBytes {
			b.again = now.Add(freeAgain)
		}
	case !b.again.IsZero() && !now.Before(b.again):
		b.again = time.Time{}
		b.heap.Free()
	}
}

// begin begins a burst, unless an operator has ended all collections.
func (b *Burst) begin(now time.Time, grown, busy int64) {
	if b.usual = b.heap.Percent(); b.usual < 0 {
		return
	}
	b.tight, b.fast, b.total, b.most = b.usual, now, grown, busy
	b.tighten()
}

// tighten has the heap grow by a bounded number of bytes.
func (b *Burst) tighten() {
	spare := max(spareBytes, b.heap.Scanned()/2)
	percent := max(leastPercent, int(min(100*spare/max(b.heap.Live(), 1), int64(b.usual))))
	percent = min(percent, b.usual)
	if off := percent - b.tight; off <= -max(b.tight/coarse, 1) || off >= max(b.tight/coarse, 1) {
		b.tight = percent
		b.heap.SetPercent(percent)
	}
}

// end ends a burst.
func (b *Burst) end() {
	if b.tight == 0 {
		return
	}
	if b.tight != b.usual {
		b.heap.SetPercent(b.usual)
	}
	if b.tight = 0; b.total >= leftBytes || b.most >= leftBytes {
		b.heap.Free()
	}
}
