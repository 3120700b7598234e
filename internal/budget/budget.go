// Package budget bounds the memory that all clients of a server take together, so that
// no client takes all of it.
//
// A [Budget] is a number of bytes. A [Claim] is what one request, one message or one
// place takes of it, for a [Client]. It grows as more comes to be known, and is given back
// as a whole. All fronts use the same budgets: what is written counts against one, what is
// read against another.
//
// A client gets a quarter: an address, which for IPv6 is a network, and an identity, each
// by itself. A connection that carries many requests gets an eighth. A client with nothing
// else in flight gets one claim that is larger, if there is room. The last eighth of the
// budget is for administrators, who have no shares of their own; those of a database together leave a quarter to others, so
// that whoever holds one secret does not take everything. Small claims have a part of their own, so that large ones
// do not shut them out.
//
// Nothing here waits but [Claim.Await], which takes nothing while it does.
package budget

import (
	"net/netip"
	"sync"
	"sync/atomic"
)

const (
	clientShare     = 4 // a client gets 1/4
	connectionShare = 8
	adminShare      = 8
	databaseShare   = 2
	leftShare       = 4 // what the administrators of a database leave
	// smallShare is what an address gets for small claims when large ones take all of its
	// share, modest what it gets when others have used up the budget.
	smallShare = 16
	modest     = 256 << 10
)

// A Budget is memory that clients share. That of nil has no bounds.
type Budget struct {
	limit  int64
	copies int64         // how often what is claimed is in memory
	total  *atomic.Int64 // for the operator

	mu      sync.Mutex
	taken   int64 // the costs of all claims
	holders map[holder]held
	freed   chan struct{} // closed when something was given back, if somebody waits
}

// Options configure a Budget.
type Options struct {
	Limit int64
	// Copies is how often what is claimed is in memory; once by default.
	Copies int64
	// Total, if not nil, is where the sizes of all claims are added up.
	Total *atomic.Int64
}

// New returns a budget of which nothing is taken.
func New(opts Options) *Budget {
	if opts.Total == nil {
		opts.Total = &atomic.Int64{}
	}
	return &Budget{limit: opts.Limit, copies: max(opts.Copies, 1), total: opts.Total, holders: map[holder]held{}}
}

// Limit returns how much there is in all.
func (b *Budget) Limit() int64 { return b.limit }

// Taken returns how much all claims together cost.
func (b *Budget) Taken() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken
}

// Share returns how much a client may claim beside others.
func (b *Budget) Share() int64 { return b.limit / clientShare }

// A Client is who claims memory. What is not known of it is left out.
type Client struct {
	// Network is the address, or the network of it, that the client counts by.
	Network netip.Addr
	// Connection is that of the client if it carries many requests.
	Connection netip.AddrPort
	// Database is where the client asks, UID who it is there.
	Database, UID string
	// Admin says that the client holds the secret of the database. All of them count together.
	Admin bool
	// Keeps says that claims last: even a client with nothing else in flight gets no more
	// than its share, and those of a database count together. It gets a half. Those of no database count together as well, and get
	// a quarter.
	Keeps bool
}

// A holder is what claims count against: an address, a connection, an identity, or a
// database.
type holder struct {
	addr          netip.Addr
	port          uint16 // of a connection
	database, uid string // of an identity
}

// held is what the claims of a holder cost, and the small ones of them.
type held struct{ all, small int64 }

// holders returns what the claims of a client count against, the address first.
func (c *Client) holders() []holder {
	list := append(make([]holder, 0, 3), holder{addr: c.Network})
	if c.Connection.Port() != 0 {
		list = append(list, holder{addr: c.Connection.Addr(), port: c.Connection.Port()})
	}
	if c.UID != "" {
		list = append(list, holder{database: c.Database, uid: c.UID})
	}
	if c.Keeps || c.Admin && c.Database != "" {
		list = append(list, holder{database: c.Database})
	}
	return list
}

func (h *holder) isDatabase() bool { return h.database != "" && h.uid == "" }

func (h *holder) share(limit int64) int64 {
	switch {
	case h.port != 0:
		return limit / connectionShare
	case h.isDatabase():
		return limit / databaseShare
	}
	return limit / clientShare
}

// Memory is the budgets of a server, which all its fronts share.
type Memory struct {
	// Writes is for what is being written, until that is answered.
	Writes *Budget
	// Reads is for what is being read: answers, and what they are made of.
	Reads *Budget
	// Kept is for what stays while a client is connected, such as what it has left to be
	// written when it goes.
	Kept *Budget

	total atomic.Int64 // of what is written and read
}

// WriteCopies is how often data is in memory while it is written: as nodes, and as rows
// on their way to the disk.
const WriteCopies = 2

// NewMemory returns budgets of which nothing is taken. Reads have half as much as writes,
// what is kept a quarter.
func NewMemory(writes int64) *Memory {
	m := &Memory{}
	m.Writes = New(Options{Limit: writes, Copies: WriteCopies, Total: &m.total})
	m.Reads = New(Options{Limit: writes / 2, Total: &m.total})
	m.Kept = New(Options{Limit: writes / 4})
	return m
}

// Bytes returns how much is claimed for what is being written and read.
func (m *Memory) Bytes() int64 { return m.total.Load() }
