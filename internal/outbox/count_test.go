package outbox

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/fault"
)

// TestShareOfANetwork: the clients of one network take half of the places, or their share if that is
// more. The rest is for others.
func TestShareOfANetwork(t *testing.T) {
	for _, kind := range []Kind{Stream, Socket} {
		const most = 400
		c := New(Options{MaxStreams: most, MaxSockets: most, KeepAlive: quiet.KeepAlive})
		join := func(network string) (*fakeTeller, error) {
			f := newFake(t)
			if network != "" {
				f.client.Network = netip.MustParseAddr(network)
			}
			err := c.Admit(&f.client, kind, f)
			if err == nil && kind == Socket {
				f.client.Meet()
			}
			return f, err
		}
		joinAll := func(network string) (all []*fakeTeller) {
			for {
				f, err := join(network)
				if err != nil {
					if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), plural[kind]) {
						t.Fatalf("one more is refused with %v", err)
					}
					return all
				}
				all = append(all, f)
			}
		}
		first := joinAll("192.0.2.1")
		second, third := len(joinAll("192.0.2.2")), len(joinAll("2001:db8::"))
		if want := most/2 + 1; len(first) != want || second != most/8 || third != most/8 {
			t.Errorf("three networks get %d, %d and %d %s of %d, want %d, %d and %d",
				len(first), second, third, plural[kind], most, want, most/8, most/8)
		}
		if rest := len(joinAll("")); rest != most-len(first)-second-third {
			t.Errorf("%d %s of no network get the rest", rest, plural[kind])
		}
		for _, f := range first {
			f.client.Abandon()
		}
		if _, err := join("192.0.2.1"); err != nil {
			t.Errorf("one that has left cannot come back: %v", err)
		}
		c.mu.Lock()
		if n := len(c.counts[kind].networks); n != 3 {
			t.Errorf("%d networks are kept in mind, want 3", n)
		}
		c.mu.Unlock()
	}
}
