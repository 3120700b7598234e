// Package large bounds how many bytes of large writes are under way at a node.
//
// On its way to the log of a cluster a write is in memory several times: as nodes, as the bytes that are sent to the home, as
// rows, and as the parts of a group. A large write is that for seconds. So large writes enter through a [Gate], which lets in a bounded
// number of bytes. The others wait outside, as the nodes that they were decoded to, or as the bytes that came from another node; these are bounded by who holds
// them, and are there once.
//
// A node has two gates. One is for writes that it sends to their home, and one for writes that it judges as the home. They are two, because a write holds the first while it
// waits for the second, at another node: with one gate, two nodes that send to each other could wait for each other. A write that holds the second never waits for the first.
//
// Small writes do not enter: they pass beside the gate, whatever is in it. Among large ones no client can shut out others. One that has something inside gets no
// more than half of the gate, and who waits is let in by turns, one write of each client after the other. A write that is larger than the
// gate enters when it is empty, and while the first in turn waits for that, nobody passes it.
//
// What grows: an entry for each write that waits, and one for each client that has one inside or waiting.
package large

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// clientShare is the part of a gate that one client gets for several writes: a half.
const clientShare = 2

// errLate says that a write has waited until its deadline.
var errLate = errors.New("the deadline for writes has passed")

// A Who is a client: an identity of a database.
type Who struct {
	Database uint32
	UID      string
	Admin    bool
}

// A Gate lets large writes in. It is safe for concurrent use.
type Gate struct {
	limit int64 // how many bytes may be inside
	small int64 // up to which size a write passes beside it

	mu      sync.Mutex
	bytes   int64 // inside
	inside  map[Who]int64
	lines   map[Who][]*waiter // those who wait, in the order in which they came
	turns   []Who             // who waits, the next one first
	waiting int
}

// A waiter is a write that waits.
type waiter struct {
	bytes   int64
	entered chan struct{} // closed when it is inside
}

// New returns an empty gate for so many bytes. A write of small bytes, or less, passes beside it.
func New(limit, small int64) *Gate {
	return &Gate{limit: limit, small: small, inside: map[Who]int64{}, lines: map[Who][]*waiter{}}
}

// Enter returns when a write of some bytes may go on. What it returns is called once, when the write is not under way any more. It fails if ctx ends before, or
// when late tells the time; nil never does.
func (g *Gate) Enter(ctx context.Context, late <-chan time.Time, who Who, bytes int64) (leave func(), err error) {
	if bytes <= g.small {
		return pass, nil
	}
	w := &waiter{bytes: bytes, entered: make(chan struct{})}
	g.mu.Lock()
	g.add(who, w)
	g.advance()
	g.mu.Unlock()
	select {
	case <-w.entered:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late:
		err = errLate
	}
	if err != nil && g.remove(who, w) {
		return pass, err
	}
	return sync.OnceFunc(func() { g.leave(who, bytes) }), nil
}

// pass is how a write leaves that did not enter.
func pass() {}

// Bytes returns how many bytes are inside, and how many writes wait.
func (g *Gate) Bytes() (inside int64, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes, g.waiting
}

// add puts a write at the end of its client's line. The lock is held, here and in what follows but for remove and leave.
func (g *Gate) add(who Who, w *waiter) {
	if len(g.lines[who]) == 0 {
		g.turns = append(g.turns, who)
	}
	g.lines[who] = append(g.lines[who], w)
	g.waiting++
}

// advance lets in all who may enter now. A client that has its share is passed over; one for which there is no room is waited for.
func (g *Gate) advance() {
	for i := 0; i < len(g.turns); {
		who := g.turns[i]
		next, has := g.lines[who][0], g.inside[who]
		switch {
		case has > 0 && has+next.bytes > g.limit/clientShare:
			i++
			continue
		case g.bytes > 0 && g.bytes+next.bytes > g.limit:
			return
		}
		g.bytes += next.bytes
		g.inside[who] += next.bytes
		g.drop(who, 0)
		if len(g.lines[who]) > 0 { // its next turn comes after those of all others
			at := slices.Index(g.turns, who)
			g.turns = append(slices.Delete(g.turns, at, at+1), who)
		}
		close(next.entered)
		i = 0
	}
}

// drop takes a write out of its client's line.
func (g *Gate) drop(who Who, i int) {
	g.waiting--
	if line := slices.Delete(g.lines[who], i, i+1); len(line) > 0 {
		g.lines[who] = line
		return
	}
	delete(g.lines, who)
	at := slices.Index(g.turns, who)
	g.turns = slices.Delete(g.turns, at, at+1)
}

// remove takes back a write that waits, and says whether it did. Others may have waited for its turn.
func (g *Gate) remove(who Who, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.lines[who], w)
	if i < 0 {
		return false // it has entered in the same moment
	}
	g.drop(who, i)
	g.advance()
	return true
}

// leave gives the room of a write to others.
func (g *Gate) leave(who Who, bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bytes -= bytes
	if g.inside[who] -= bytes; g.inside[who] == 0 {
		delete(g.inside, who)
	}
	g.advance()
}
