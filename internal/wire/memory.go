package wire

import (
	"net/netip"
	"sync"

	"github.com/livetree/livetree/internal/wire/frame"
)

// A memory bounds what the messages of all clients take while they are being read. The
// network of an address gets a quarter of it, so that no client takes all. Some clients of a few
// networks may still hold all of it for a while, because their messages wait for their turn or
// for other memory. So each network has a modest part beside that. What is in them counts
// by account.go.
type memory struct {
	limit, share int64

	mu     sync.Mutex
	taken  int64
	shares map[netip.Addr]int64
}

const (
	// leastMemory lets one address send one message of any size that is allowed.
	leastMemory = 4 * leastShare
	// leastShare is that of a message of MaxMessage, and of what it grows from.
	leastShare = 2 * frame.MaxMessage
	// addressShare is what an address gets: 1/4.
	addressShare = 4
	// modestShare is what a network gets when others have used up all: enough for ordinary
	// messages, and for what they grow from.
	modestShare = 256 << 10
)

func newMemory(limit int64) *memory {
	limit = max(limit, leastMemory)
	return &memory{limit: limit, share: limit / addressShare, shares: map[netip.Addr]int64{}}
}

// of returns the part of an address.
func (m *memory) of(addr netip.Addr) memoryShare { return memoryShare{m, addr} }

// A memoryShare is what one address takes. It implements frame.Budget.
type memoryShare struct {
	memory *memory
	addr   netip.Addr
}

// Charge implements frame.Budget.
func (s memoryShare) Charge(n int) bool {
	if n == 0 {
		return true
	}
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	size, all := int64(n), m.shares[s.addr]+int64(n)
	if all > modestShare && (m.taken+size > m.limit || all > m.share) {
		return false
	}
	m.taken += size
	m.shares[s.addr] += size
	return true
}

// Release implements frame.Budget.
func (s memoryShare) Release(n int) {
	if n == 0 {
		return
	}
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= int64(n)
	if m.shares[s.addr] -= int64(n); m.shares[s.addr] == 0 {
		delete(m.shares, s.addr)
	}
}
