package outbox

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// A Kind is what a client talks.
type Kind uint8

// The kinds of clients.
const (
	Stream Kind = iota // an event stream over HTTP
	Socket             // a session of the SDKs
	kinds
)

// plural names the clients of a kind to whoever gets no room.
var plural = [kinds]string{Stream: "streams", Socket: "sockets"}

// Options configure Clients.
type Options struct {
	// MaxStreams and MaxSockets are how many clients of a kind there may be at a time.
	// A quarter of the sockets may be of strangers, an eighth of that of one network.
	MaxStreams int
	MaxSockets int
	// PerNetwork is how many of a kind one network gets when more than half of all are there: an
	// eighth of them by default.
	PerNetwork int
	// KeepAlive is how often every client is sent a keep-alive, or is looked after.
	KeepAlive time.Duration
	// Blocked is how long a client may take none of what it is sent.
	Blocked time.Duration
	// Spread is how long it takes to end all clients, so that they do not come back
	// all at once.
	Spread time.Duration
	Now    func() time.Time // time.Now by default
}

// Defaults of Options.
const (
	DefaultMaxStreams = 20_000
	DefaultMaxSockets = 20_000
	DefaultKeepAlive  = 30 * time.Second
	DefaultBlocked    = 10 * time.Second
	DefaultSpread     = 3 * time.Second
)

// setDefaults fills in what is not said.
func (o *Options) setDefaults() {
	if o.MaxStreams == 0 {
		o.MaxStreams = DefaultMaxStreams
	}
	if o.MaxSockets == 0 {
		o.MaxSockets = DefaultMaxSockets
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = DefaultKeepAlive
	}
	if o.Blocked == 0 {
		o.Blocked = DefaultBlocked
	}
	if o.Spread == 0 {
		o.Spread = DefaultSpread
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the injected clock
	}
}

// Clients are those of a server, of all kinds. They live outside of net/http, which
// knows nothing of connections that were taken over.
type Clients struct {
	opts    Options
	tick    time.Duration
	runners *runners

	mu sync.Mutex
	// slots are the clients by the time of their keep-alives, one slot at each
	// tick, so that they are spread.
	slots  []map[*Client]struct{}
	now    int // the slot of the next tick
	count  int // of all kinds
	counts [kinds]count
	// strangers are among the sockets.
	strangers strangers
	shut      bool
	empty     chan struct{} // closed when shut and the last one is gone

	stop chan struct{}
	loop sync.WaitGroup

	told [kinds]told
}

// told counts what the clients of one kind were told.
type told struct {
	events atomic.Uint64
	lag    store.Durations
}

// maxSlots bounds the slots, of which there is one for each second.
const maxSlots = 3600

// New returns the clients of a server. They must be closed.
func New(opts Options) *Clients {
	opts.setDefaults()
	slots := min(max(1, int(opts.KeepAlive/time.Second)), maxSlots)
	c := &Clients{
		opts: opts, runners: newRunners(), tick: opts.KeepAlive / time.Duration(slots), slots: make([]map[*Client]struct{}, slots),
		empty: make(chan struct{}), stop: make(chan struct{}),
	}
	for i := range c.slots {
		c.slots[i] = make(map[*Client]struct{})
	}
	c.counts[Stream] = newCount(opts.MaxStreams, opts.PerNetwork)
	c.counts[Socket] = newCount(opts.MaxSockets, opts.PerNetwork)
	c.strangers = newStrangers(opts.MaxSockets)
	c.loop.Go(c.beat)
	return c
}

// Stats are figures about the clients of a kind.
type Stats struct {
	Open   int
	Closed map[string]int64 // by reason
	Events uint64           // that were sent
	// Lag is how long after its commit an event was sent.
	Lag store.DurationCounts
}

// Stats returns the figures as they are now.
func (c *Clients) Stats(kind Kind) Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, told := &c.counts[kind], &c.told[kind]
	stats := Stats{
		Open: n.open, Closed: make(map[string]int64, len(n.closed)),
		Events: told.events.Load(), Lag: told.lag.Counts(),
	}
	for reason, n := range n.closed {
		stats.Closed[string(reason)] = n
	}
	return stats
}

// CountEvent counts an event that the client is about to be sent, of a commit at a
// time in milliseconds; 0 if it is of none.
func (c *Client) CountEvent(millis int64) {
	told := &c.clients.told[c.kind]
	told.events.Add(1)
	if millis > 0 {
		told.lag.Observe(time.Duration(c.clients.opts.Now().UnixMilli()-millis) * time.Millisecond)
	}
}

// Admit makes room for a client, or refuses it. A socket is a stranger's until Meet is
// called. For it another stranger may have to end.
func (c *Clients) Admit(one *Client, kind Kind, teller Teller) error {
	victim, err := c.admit(one, kind, teller)
	if victim != nil {
		victim.End(Crowded)
	}
	return err
}

// admit is Admit without ending the stranger that has to go, which it returns.
func (c *Clients) admit(one *Client, kind Kind, teller Teller) (victim *Client, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &c.counts[kind]
	switch {
	case c.shut:
		return nil, errStopping
	case n.open >= n.most:
		return nil, fault.New(fault.Unavailable, "there are %d %s, which is as many as the server is allowed to have: try again later",
			n.open, plural[kind])
	case n.isShared(one.Network):
		return nil, fault.New(fault.Unavailable, "there are %d %s of one address, which is as many as it is allowed to have while others need theirs: try again later",
			n.networks[one.Network], plural[kind])
	}
	one.clients, one.kind, one.teller = c, kind, teller
	if kind == Socket {
		if victim, err = c.meetStranger(one); err != nil {
			return nil, err
		}
	}
	one.slot = (c.now + len(c.slots) - 1) % len(c.slots)
	c.slots[one.slot][one] = struct{}{}
	c.count++
	n.add(one.Network)
	return victim, nil
}

// Standing returns why no client is let in: the server is stopping. It is nil before that.
func (c *Clients) Standing() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return errStopping
	}
	return nil
}

var errStopping = fault.New(fault.Unavailable, "the server is stopping")

// meetStranger makes a place for one more stranger, and returns the one whose place it was.
// That one ends soon, and counts as a socket until then. The lock is held.
func (c *Clients) meetStranger(one *Client) (victim *Client, err error) {
	now := c.opts.Now()
	victim, ok := c.strangers.giveWay(one.Network, now)
	if !ok {
		return nil, fault.New(fault.Unavailable, "there are too many sockets that have neither logged in nor were allowed anything: try again later")
	}
	if victim != nil {
		c.strangers.remove(victim)
	}
	c.strangers.add(one, now)
	return victim, nil
}

// Meet says that the client is no stranger: it has logged in, or was granted something by
// the rules.
func (c *Client) Meet() {
	c.clients.mu.Lock()
	defer c.clients.mu.Unlock()
	c.clients.strangers.remove(c)
}

// remove takes a client out that has ended for a reason; GoesOn if it never began.
func (c *Clients) remove(one *Client, reason Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.slots[one.slot], one)
	n := &c.counts[one.kind]
	c.strangers.remove(one)
	c.count--
	n.remove(one.Network)
	if reason != GoesOn {
		n.closed[reason]++
	}
	if c.shut && c.count == 0 {
		close(c.empty)
	}
}

// peerChecks is how often in the time between two keep-alives a client is looked
// after.
const peerChecks = 6

// beat sends keep-alives, and looks for clients that have left.
func (c *Clients) beat() {
	ticker := time.NewTicker(c.tick)
	defer ticker.Stop()
	var due, others []*Client
	for {
		select {
		case <-c.stop:
			return
		case <-ticker.C:
		}
		due, others = c.due(due[:0], others[:0])
		for _, one := range due {
			one.beat.Store(true)
			one.Wake()
		}
		for _, one := range others {
			one.lookAfter()
		}
		clear(due) // those that end are not to be held here
		clear(others)
	}
}

// due returns the clients whose keep-alive is due, and those to look after.
func (c *Clients) due(due, others []*Client) ([]*Client, []*Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.slots[c.now] {
		due = append(due, one)
	}
	step := max(1, len(c.slots)/peerChecks)
	for ahead := step; ahead < len(c.slots); ahead += step {
		for one := range c.slots[(c.now+ahead)%len(c.slots)] {
			others = append(others, one)
		}
	}
	c.now = (c.now + 1) % len(c.slots)
	return due, others
}
