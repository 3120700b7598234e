package rest

import (
	"io"
	"net/netip"
	"slices"
	"sync"

	"github.com/livetree/livetree/internal/state"
)

// turns share the processors among long reads.
//
// A long read goes through many rows, and prints and perhaps compresses what it finds.
// Hundreds of them at a time would leave a short request to wait for each of them
// whenever it has to do with the network or the disk: the scheduler of Go lets all
// that can run have their time, and looks at the network last. So a long read works
// only at its turn, of which there are fewer than processors. It ends its turn while
// its client takes what was printed, for as long as that lasts. A stream that begins
// with much data, or does so again, is a long read meanwhile.
//
// Who waits for a turn gets it by address, one address after the other: a client that
// asks for a hundred long reads waits for itself.
type turns struct {
	mu   sync.Mutex
	free int
	// queues are who waits, by address; order has the addresses, the next one first.
	queues map[netip.Addr][]chan struct{}
	order  []netip.Addr
}

// newTurns leaves a quarter of the processors, one at least, to short requests. If
// there is only one, it has a turn.
func newTurns(processors int) *turns {
	return &turns{free: max(1, processors-max(1, processors/4)), queues: map[netip.Addr][]chan struct{}{}}
}

// take waits for a turn. It reports false if nobody waits for the answer any more.
func (t *turns) take(from netip.Addr, gone <-chan struct{}) bool {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	if len(t.queues[from]) == 0 {
		t.order = append(t.order, from)
	}
	t.queues[from] = append(t.queues[from], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-gone:
		t.leave(from, turn)
		return false
	}
}

// leave gives up a place in the queue, or the turn that was given meanwhile.
func (t *turns) leave(from netip.Addr, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queues[from]
	i := slices.Index(queue, turn)
	if i < 0 {
		t.next()
		return
	}
	t.queues[from] = slices.Delete(queue, i, i+1)
	if len(queue) == 1 {
		delete(t.queues, from)
		t.order = slices.DeleteFunc(t.order, func(h netip.Addr) bool { return h == from })
	}
}

// end ends a turn.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next gives a turn to who waits, those of the next address first.
func (t *turns) next() {
	if len(t.order) == 0 {
		t.free++
		return
	}
	from := t.order[0]
	t.order = slices.Delete(t.order, 0, 1)
	queue := t.queues[from]
	close(queue[0])
	if queue = slices.Delete(queue, 0, 1); len(queue) == 0 {
		delete(t.queues, from)
		return
	}
	t.queues[from] = queue
	t.order = append(t.order, from)
}

// A turn is that of one read. The zero value takes none.
type turn struct {
	turns  *turns
	from   netip.Addr
	gone   <-chan struct{}
	taken  bool
	paused bool // it is to be taken again
	paces  int  // how often between was called
}

// take waits for the turn, unless it was taken.
func (t *turn) take() error {
	if t.turns == nil || t.taken {
		return nil
	}
	if !t.turns.take(t.from, t.gone) {
		return state.PrintError(state.ErrUnwanted)
	}
	t.taken = true
	return nil
}

// end ends the turn, if it was taken.
func (t *turn) end() {
	if t.taken {
		t.taken = false
		t.turns.end()
	}
}

// pause ends the turn while a client takes what was printed, resume takes it again.
func (t *turn) pause() {
	t.paused = t.taken
	t.end()
}

func (t *turn) resume() error {
	if !t.paused {
		return nil
	}
	t.paused = false
	return t.take()
}

// isWanted reports whether others wait for a turn.
func (t *turns) isWanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.order) > 0
}

// fewChildren is how many children a read may ask for that is expected to be short.
const fewChildren = 256

// A paced body has a function called while it is printed and has nothing to write.
type paced interface{ Between(f func() error) }

// prepareTurn gives the answer a turn if it takes work, and takes it if it is needed
// from the beginning. What asks for a few children, or is paced, needs it only when it
// turns out to be long.
func (o *output) prepareTurn(body content, encoding string) error {
	size, known := body.Size()
	if !o.asked.verb.reads() || known && (size <= bufferBytes || encoding == "") {
		return nil
	}
	o.turn = turn{turns: o.usage.longReads, from: addressOf(o.r), gone: waiting(o.r)}
	params := &o.asked.params
	if few := max(params.limit, params.query.Limit); !known && few > 0 && few <= fewChildren {
		return nil
	}
	if p, ok := body.(paced); ok && !known {
		p.Between(o.turn.between)
		return nil
	}
	return o.turn.take()
}

// A pacedWriter calls between for each part that is printed. A compressor gathers many
// of them before it has anything to send.
type pacedWriter struct {
	w    io.Writer
	turn *turn
}

func (p *pacedWriter) Write(part []byte) (int, error) {
	if err := p.turn.between(); err != nil {
		return 0, err
	}
	return p.w.Write(part)
}

// freePaces is how often between is called before a read counts as long.
const freePaces = 4

// between is called while a read goes through rows and has nothing to send, and when
// it has printed a part. A long read lets others have a turn.
func (t *turn) between() error {
	if t.paces++; t.paces < freePaces {
		return nil
	}
	if t.taken && t.turns.isWanted() {
		t.end()
	}
	return t.take()
}
