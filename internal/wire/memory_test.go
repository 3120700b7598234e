package wire

import (
	"net/netip"
	"testing"

	"github.com/livetree/livetree/internal/wire/frame"
)

// TestMemory: one address cannot take what others need, and all that was taken is given
// back.
func TestMemory(t *testing.T) {
	t.Parallel()
	m := newMemory(0)
	a, b := m.of(netip.MustParseAddr("192.0.2.1")), m.of(netip.MustParseAddr("192.0.2.2"))
	for range 2 { // it is copied while it grows
		if !a.Charge(frame.MaxMessage) {
			t.Fatal("an address cannot send a message of the largest size")
		}
	}
	if a.Charge(1) {
		t.Error("an address gets more than its share")
	}
	if !b.Charge(frame.MaxMessage) {
		t.Error("others get nothing")
	}
	for i := byte(3); m.of(netip.AddrFrom4([4]byte{192, 0, 2, i})).Charge(leastShare); i++ {
		if m.taken > m.limit {
			t.Fatalf("%d bytes were given out of %d", m.taken, m.limit)
		}
	}
	for b.Charge(64 << 10) { // the rest
	}
	modest := m.of(netip.MustParseAddr("198.51.100.1"))
	if !modest.Charge(modestShare) || modest.Charge(1) {
		t.Error("when others hold all, a network cannot send ordinary messages, or more than these")
	}
	a.Release(frame.MaxMessage)
	a.Release(frame.MaxMessage)
	b.Release(frame.MaxMessage)
	for addr, taken := range m.shares {
		m.of(addr).Release(int(taken))
	}
	if m.taken != 0 || len(m.shares) != 0 {
		t.Errorf("%d bytes of %d addresses are never given back", m.taken, len(m.shares))
	}
}
