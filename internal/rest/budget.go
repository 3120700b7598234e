package rest

import (
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/livetree/livetree/internal/clientaddr"
)

// A budget bounds the memory that all bodies of writes take together, or all
// answers to reads.
//
// A client, which is an address and, if it has signed in, an identity, gets a
// quarter of it; a connection of HTTP/2, which carries many requests, gets an
// eighth. A client with nothing else in flight gets one that is larger, if there is
// room. The last eighth of the budget is for administrators. Small bodies and answers
// have a part of their own, so that large ones do not shut them out.
type budget struct {
	limit  int64
	copies int64         // how often what is claimed is in memory
	total  *atomic.Int64 // for the operator

	mu      sync.Mutex
	taken   int64 // the costs of all claims
	holders map[holder]held
}

// writeCopies is how often a body is in memory while it is written: as nodes, and as
// rows on their way to the disk.
const writeCopies = 2

const (
	clientShare     = 4 // a client gets 1/4
	connectionShare = 8
	adminShare      = 8
	// smallShare is what an address gets for small bodies and answers when large ones
	// take all of its share, modest what it gets when others have used up the budget.
	smallShare = 16
	modest     = 256 << 10
)

func newBudget(limit, copies int64, total *atomic.Int64) *budget {
	return &budget{limit: limit, copies: copies, total: total, holders: map[holder]held{}}
}

// A holder is what claims count against: an address, a connection, or an identity.
type holder struct {
	addr          netip.Addr
	port          uint16 // of a connection
	database, uid string // of an identity
}

// held is what the claims of a holder cost, and the small ones of them.
type held struct{ all, small int64 }

func (h *holder) share(limit int64) int64 {
	if h.port != 0 {
		return limit / connectionShare
	}
	return limit / clientShare
}

// A claim is what one request takes of a budget.
type claim struct {
	budget  *budget
	holders []holder // the address comes first
	admin   bool     // the holder of a secret
	small   bool     // a body or an answer that is known to be small
	size    int64
	cost    int64 // of the budget

	compresses bool // the size includes a compressor
}

// cost returns what a size takes of the budget. What is larger than a client's
// share, which only one with nothing else in flight may be, counts once.
func (b *budget) cost(size int64) int64 {
	return min(size*b.copies, max(size, b.limit/clientShare))
}

// most is the largest size that the claim can ever have.
func (c *claim) most() int64 {
	if c.admin {
		return c.budget.limit
	}
	return c.budget.limit - c.budget.limit/adminShare
}

// grow makes the claim larger, or refuses to.
func (c *claim) grow(size int64) bool { return c.growWithin(size, 1) }

// growIfSpare is grow for what is welcome but not needed: it leaves half of
// everything for what is.
func (c *claim) growIfSpare(size int64) bool { return c.growWithin(size, 2) }

// growWithin makes the claim larger if it then fits into one part of the budget, and of
// the shares of its holders.
func (c *claim) growWithin(size, parts int64) bool {
	b, cost := c.budget, c.budget.cost(size)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !c.fits(cost, parts) {
		return false
	}
	c.set(size, cost)
	return true
}

// fits reports whether there is room for the claim at a new cost.
func (c *claim) fits(cost, parts int64) bool {
	b, more := c.budget, cost-c.cost
	small := b.holders[c.holders[0]].small + more
	if c.small && small <= modest {
		return true
	}
	if b.taken+more > c.most()/parts {
		return false
	}
	if c.admin || c.small && small <= b.limit/smallShare/parts {
		return true
	}
	for i := range c.holders {
		others := b.holders[c.holders[i]].all - c.cost
		if others > 0 && others+cost > c.holders[i].share(b.limit)/parts {
			return false
		}
	}
	return true
}

// set counts the claim at its new size.
func (c *claim) set(size, cost int64) {
	b, more := c.budget, cost-c.cost
	b.total.Add(size - c.size)
	b.taken += more
	for _, h := range c.holders {
		now := b.holders[h]
		now.all += more
		if c.small {
			now.small += more
		}
		if now.all > 0 {
			b.holders[h] = now
		} else {
			delete(b.holders, h)
		}
	}
	c.size, c.cost = size, cost
}

// release gives back all that the claim takes.
func (c *claim) release() {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.set(0, 0)
}

// holdersOf returns the address and the connection of a request.
func holdersOf(r *http.Request) (address, connection holder) {
	remote := clientaddr.Of(r)
	if !remote.IsValid() {
		return holder{}, holder{port: 1}
	}
	return holder{addr: clientaddr.Network(remote.Addr())}, holder{addr: remote.Addr(), port: remote.Port()}
}
