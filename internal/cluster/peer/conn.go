package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// errSilent is why a connection is closed on which nothing arrives.
var errSilent = errors.New("nothing was heard for too long")

// arrivals counts what arrives on a connection, below its encryption: a part of a large frame is a sign of life.
type arrivals struct {
	net.Conn
	count atomic.Uint64
}

func (a *arrivals) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if n > 0 {
		a.count.Add(1)
	}
	return n, err
}

// queuedFrames is how many frames wait to be written.
const queuedFrames = 16

// conn is a connection with a peer, after the handshake: what both ends do alike. One goroutine reads it, one writes,
// and one watches that something arrives.
type conn struct {
	net.Conn
	arrived *arrivals
	frames  *frameReader
	peer    string // the address that the other end goes by
	ping    time.Duration
	now     func() time.Time
	// quiet is how many pings may pass without anything arriving; a write may take as long.
	quiet int
	// asks says that this end sends pings. The other end answers each, so one of the two is enough for both to hear something; it is the one that has made the
	// connection, which also learns the clock of the other. One that comes from an older version sends pings of its own.
	asks bool
	// asked is set by each ping that comes.
	asked atomic.Bool

	out  chan []byte
	soon soon
	// used has the memory of large frames that went out, for the next ones: a large body would leave as much garbage as it has bytes.
	used chan []byte
	// cancels are those that were taken of soon and wait for what is queued; only the one that writes has them.
	cancels cancels
	// held is true while this end does not read because what has come is not taken yet.
	held atomic.Bool

	done chan struct{} // closed with the connection
	once sync.Once
	err  error // why, once done is closed

	// heard, if set, is told of each pong.
	heard func(sent, now time.Time, clock int64)
	// sent is when the ping under way was sent, 0 if none is; only its number counts.
	sent struct {
		sync.Mutex
		number uint64
		at     time.Time
	}
}

// soon is what goes out before anything else, however full the queue is, but for cancels.
type soon struct {
	sync.Mutex
	wake    chan struct{}
	ping    bool
	pong    *frame   // the newest alone: who sends pings faster than they are answered gets fewer answers
	cancels []uint64 // one for each call that was given up; they go out behind what is queued
}

// cancels wait until everything has gone out that was queued before them. Parts of the very call that was given up may be among that, and who takes
// a part after the end of its call holds the sender for broken.
type cancels struct {
	old, young []uint64
	frames     int // have gone out since there are old ones
}

func (c *cancels) add(ids []uint64) {
	if c.young = append(c.young, ids...); len(c.old) == 0 {
		c.old, c.young, c.frames = c.young, nil, 0
	}
}

// sent is told that a frame has gone out, of a queue that has room for some, and returns those whose turn is after it.
func (c *cancels) sent(room int) (due []uint64) {
	if c.frames++; c.frames <= room+1 { // one was taken from the queue before
		return nil
	}
	due = c.old
	c.old, c.young, c.frames = c.young, nil, 0
	return due
}

// all returns those that wait, once the queue is empty.
func (c *cancels) all() (due []uint64) {
	due = slices.Concat(c.old, c.young)
	*c = cancels{}
	return due
}

func newConn(c net.Conn, a *arrivals, o Options, quiet int) *conn {
	k := &conn{
		Conn: c, arrived: a, frames: newFrameReader(c), ping: o.Ping, now: o.Now, quiet: quiet,
		out: make(chan []byte, queuedFrames), used: make(chan []byte, queuedFrames), done: make(chan struct{}),
	}
	k.soon.wake = make(chan struct{}, 1)
	return k
}

// silence is how long nothing may arrive.
func (c *conn) silence() time.Duration { return time.Duration(c.quiet) * c.ping }

// close ends a connection. The first reason counts.
func (c *conn) close(why error) {
	c.once.Do(func() {
		c.err = why
		close(c.done)
		// TLS would say good-bye first, and wait for the peer to take it.
		_ = c.arrived.Close()
	})
}

// send queues a frame. It waits while the peer does not take what is before it.
func (c *conn) send(ctx context.Context, f frame) error {
	select {
	case <-c.done:
		return c.err
	default:
	}
	select {
	case c.out <- c.encode(f):
		return nil
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// encode returns a frame as it is sent, in memory that was used before if there is some.
func (c *conn) encode(f frame) []byte {
	if len(f.body) >= partBytes {
		select {
		case b := <-c.used:
			return f.appendTo(b)
		default:
			return f.appendTo(make([]byte, 0, maxFrame+4))
		}
	}
	return f.encode()
}

// keep keeps the memory of a frame that went out.
func (c *conn) keep(b []byte) {
	if cap(b) < maxFrame {
		return
	}
	select {
	case c.used <- b:
	default:
	}
}

// sendBody sends a first frame and as many parts as its body needs. It says whether all was queued.
func (c *conn) sendBody(ctx context.Context, first frame, body []byte) error {
	first.total = uint32(len(body))
	first.body = body[:min(len(body), partBytes)]
	if err := c.send(ctx, first); err != nil {
		return err
	}
	for at := partBytes; at < len(body); at += partBytes {
		if err := c.send(ctx, frame{kind: part, id: first.id, body: body[at:min(len(body), at+partBytes)]}); err != nil {
			return err
		}
	}
	return nil
}

// urgently has something sent before the queue.
func (c *conn) urgently(what func(*soon)) {
	c.soon.Lock()
	what(&c.soon)
	c.soon.Unlock()
	select {
	case c.soon.wake <- struct{}{}:
	default:
	}
}

// write sends what is queued, until the connection ends. Frames that wait together go together.
func (c *conn) write() {
	w := bufio.NewWriterSize(c.Conn, maxFrame+4)
	for {
		var b []byte
		select {
		case b = <-c.out:
		case <-c.soon.wake:
		case <-c.done:
			return
		}
		if err := c.writeAll(w, b); err != nil {
			c.close(err)
			return
		}
	}
}

// writeAll writes a frame and all that wait after it.
func (c *conn) writeAll(w *bufio.Writer, b []byte) error {
	for {
		// A peer that sends and does not read is not silent: it is given ten times as long.
		limit := time.Now().Add(10 * c.silence()) //nolint:forbidigo // a deadline of the kernel's
		if err := c.SetWriteDeadline(limit); err != nil {
			return err
		}
		if _, err := w.Write(c.takeSoon()); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		c.keep(b)
		due, empty := c.cancels.sent(cap(c.out)), false
		if b = c.another(); b == nil {
			due, empty = append(due, c.cancels.all()...), true
		}
		for _, id := range due {
			if _, err := w.Write(frame{kind: cancel, id: id}.encode()); err != nil {
				return err
			}
		}
		if empty {
			return w.Flush()
		}
	}
}

// another returns the next frame of the queue, nil if there is none. Whoever is about to queue one may do so before: frames that go
// together cost one call of the kernel and one record of TLS at either end.
func (c *conn) another() []byte {
	for tries := 0; ; tries++ {
		select {
		case b := <-c.out:
			return b
		default:
		}
		if tries > 0 {
			return nil
		}
		runtime.Gosched()
	}
}

func (c *conn) takeSoon() (b []byte) {
	c.soon.Lock()
	defer c.soon.Unlock()
	if c.soon.ping {
		c.sent.Lock()
		c.sent.number++
		c.sent.at = c.now()
		b = append(b, frame{kind: ping, id: c.sent.number}.encode()...)
		c.sent.Unlock()
		c.soon.ping = false
	}
	if c.soon.pong != nil {
		c.soon.pong.clock = c.now().UnixNano()
		b = append(b, c.soon.pong.encode()...)
		c.soon.pong = nil
	}
	c.cancels.add(c.soon.cancels)
	c.soon.cancels = nil
	return b
}

// watch sends pings, and closes the connection if nothing arrives.
func (c *conn) watch() {
	begin := time.NewTimer(untilTick(time.Since(processStart), c.ping))
	defer begin.Stop()
	if c.asks {
		c.urgently(func(s *soon) { s.ping = true })
	}
	select {
	case <-begin.C:
	case <-c.done:
		return
	}
	tick := time.NewTicker(c.ping)
	defer tick.Stop()
	quiet, last, late := 0, c.arrived.count.Load(), false
	for {
		if c.asks || late {
			c.urgently(func(s *soon) { s.ping = true })
		}
		select {
		case <-tick.C:
		case <-c.done:
			return
		}
		now := c.arrived.count.Load()
		// Pings that do not come while something else does are held up by it: a slow network has much on its way. The other end would hear nothing until then.
		late = now != last && !c.asked.Swap(false)
		if quiet++; now != last || c.held.Load() {
			quiet, last = 0, now
		}
		if quiet >= c.quiet {
			c.close(fmt.Errorf("%w: %v", errSilent, time.Duration(quiet)*c.ping))
			return
		}
	}
}

// processStart is what the ticks of all connections are counted from: they come together, so that a node with nothing to do wakes up for all of them at once. Waking up is most of
// what such a node costs.
var processStart = time.Now() //nolint:forbidigo // for how long it is ago

// untilTick returns how long it is until the next of the ticks that come with every step.
func untilTick(since, step time.Duration) time.Duration { return step - since%step }

// read hands frames to take until the connection ends. Pings and pongs are its own.
func (c *conn) read(take func(frame) error) {
	for {
		f, err := c.frames.next()
		switch {
		case err != nil:
		case f.kind == ping:
			c.asked.Store(true)
			c.urgently(func(s *soon) { s.pong = &frame{kind: pong, id: f.id} })
		case f.kind == pong:
			c.hear(f)
		default:
			err = take(f)
		}
		if err != nil {
			c.close(err)
			return
		}
	}
}

// hear takes the answer to a ping.
func (c *conn) hear(f frame) {
	c.sent.Lock()
	sent, current := c.sent.at, f.id == c.sent.number
	c.sent.Unlock()
	if current && c.heard != nil {
		c.heard(sent, c.now(), f.clock)
	}
}

// run reads, writes and watches until the connection ends, and returns why.
func (c *conn) run(take func(frame) error) error {
	var all sync.WaitGroup
	all.Go(c.write)
	all.Go(c.watch)
	c.read(take)
	all.Wait()
	return c.err
}
