package outbox

import (
	"net/netip"
	"sync/atomic"
)

// A Client is one that is told what happens, for as long as it stays. It has a
// goroutine only while there is something to tell, unless its protocol demands one.
//
// The zero value may be woken already, which does nothing. Clients.Admit makes room
// for it, Begin or Serve have it told things, and Abandon gives the room back if
// neither can be called.
type Client struct {
	// Network is where the client comes from, by which clients share their places. It is set
	// before Admit; one that is not valid shares nothing.
	Network netip.Addr

	clients *Clients
	teller  Teller
	way     Way
	// own wakes the goroutine of a client that has its own; nil if it has none.
	own chan struct{}

	kind     Kind
	begun    bool           // something was sent
	sent     int64          // bytes
	stranger *strangerPlace // nil if it is none; guarded by clients.mu
	slot     int            // of the keep-alive
	state    atomic.Int32
	beat     atomic.Bool // a keep-alive is due
	// ending is set when the client is to end, to the reason.
	ending atomic.Pointer[Reason]
}

// A Teller knows what to tell a client. Its methods are called by one goroutine at
// a time.
type Teller interface {
	// Tell sends what is ready, and returns why the client has ended; GoesOn if it
	// has not. It looks at Client.Ending and at Client.TakeBeat before each thing
	// that it tells, since both may change while it is at work: a client that takes its time
	// always has something to be told. It waits for its client to take something, and for
	// nothing that may last longer.
	Tell() Reason
	// Release lets go of what the client was told of. It is called once, when the
	// client has ended: before its room is free, and before the way to it is closed.
	Release()
}

// A Way is the way to a client. It must not be used concurrently, except for Cut.
type Way interface {
	// Send sends bytes. It fails when the client takes none of them for too long.
	Send(p []byte) error
	// Gone reports whether the client has left, as far as that can be known without
	// sending anything.
	Gone() bool
	// Close ends the way when all was said, Cut at once: a Send that is under way
	// fails, and so do later ones.
	Close()
	Cut()
}

// The states of a client.
const (
	opening int32 = iota // there is no way to it yet
	idle
	running
	again // it is running, and there is more
	ended
)

// Wake has the client's Teller look for something to tell. It does not block, and may
// be called at any time by anybody.
func (c *Client) Wake() {
	for {
		switch state := c.state.Load(); state {
		case idle:
			if c.state.CompareAndSwap(state, running) {
				c.start()
				return
			}
		case running:
			if c.state.CompareAndSwap(state, again) {
				return
			}
		default:
			return
		}
	}
}

// start has a goroutine run the client, whose state is running.
func (c *Client) start() {
	if c.own != nil {
		c.own <- struct{}{}
		return
	}
	c.clients.runners.run(c)
}

// End has the client end for a reason, as soon as its Teller has seen it. It does not
// block. The first reason counts.
func (c *Client) End(reason Reason) {
	c.ending.CompareAndSwap(nil, &reason)
	c.Wake()
}

// Ending returns why the client is to end; GoesOn if it is not.
func (c *Client) Ending() Reason {
	if reason := c.ending.Load(); reason != nil {
		return *reason
	}
	return GoesOn
}

// TakeBeat reports whether a keep-alive is due, once for each.
func (c *Client) TakeBeat() bool { return c.beat.CompareAndSwap(true, false) }

// Gone reports whether the client has left, as far as its Way knows. Only its Teller
// may ask, within Tell.
func (c *Client) Gone() bool { return c.way.Gone() }

// Send sends bytes to the client. Only its Teller may do so, within Tell.
func (c *Client) Send(p []byte) error {
	c.begun = true
	c.sent += int64(len(p))
	return c.way.Send(p)
}

// Sent returns how many bytes the client was sent. Only its Teller may ask, within Tell or
// Release.
func (c *Client) Sent() int64 { return c.sent }

// Greet lets a client that was sent nothing yet know that it is heard: it is sent what
// its Way puts in front of everything. Only its Teller may do so, within Tell.
func (c *Client) Greet() error {
	if c.begun {
		return nil
	}
	return c.Send(nil)
}

// Begin has the client told things by this way from now on, by goroutines that it
// shares with others.
func (c *Client) Begin(way Way) {
	c.way = way
	c.state.Store(running)
	c.clients.runners.runFirst(c)
}

// Serve has the client told things by this way on the caller's goroutine, and returns
// when it has ended. When gone is closed, the client has left.
func (c *Client) Serve(way Way, gone <-chan struct{}) {
	own := make(chan struct{}, 1)
	c.way, c.own = way, own
	c.state.Store(idle)
	c.Wake()
	for {
		select {
		case <-own:
			if !c.run() {
				return
			}
		case <-gone:
			gone = nil
			c.End(ByClient)
		}
	}
}

// Abandon gives the room of a client back that neither began nor will.
func (c *Client) Abandon() { c.clients.remove(c, GoesOn) }

// Go runs a function beside the client, such as one that reads what it sends.
// Clients.Close waits for it. It must be called between Admit and Begin, or by such a
// function, and the function must return soon when the way to the client is closed.
func (c *Client) Go(f func()) { c.clients.runners.all.Go(f) }

// Cut ends the way to the client at once, so that a Send under way fails: nobody is
// there to take it. The client then ends by itself if it is told something, so that
// End is to be called first.
func (c *Client) Cut() {
	if c.state.Load() == opening {
		return // whoever opens it will find out
	}
	c.way.Cut()
}

// run tells the client what there is. It reports whether the client goes on.
func (c *Client) run() bool {
	for {
		if reason := c.teller.Tell(); reason != GoesOn {
			c.state.Store(ended)
			c.teller.Release()
			c.clients.remove(c, reason) // before the client can know: it may come back at once
			c.way.Close()
			return false
		}
		if c.state.CompareAndSwap(running, idle) {
			return true
		}
		c.state.Store(running)
	}
}

// lookAfter ends an idle client that has left.
func (c *Client) lookAfter() {
	if !c.state.CompareAndSwap(idle, running) {
		return
	}
	if c.way.Gone() {
		c.End(ByClient)
	}
	if !c.state.CompareAndSwap(running, idle) {
		c.state.Store(running)
		c.start()
	}
}
