package outbox

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// A crowd is strangers by name, such as a3 for the third one of network a.
type crowd struct {
	t       testing.TB
	now     time.Time
	step    time.Duration // between two that come
	clients *Clients
	byName  map[string]*fakeTeller
}

func newCrowd(t testing.TB, maxSockets int) *crowd {
	c := &crowd{t: t, now: time.Unix(1_800_000_000, 0), step: time.Second, byName: map[string]*fakeTeller{}}
	c.clients = New(Options{MaxSockets: maxSockets, KeepAlive: quiet.KeepAlive, Spread: time.Nanosecond, Now: func() time.Time { return c.now }})
	t.Cleanup(func() { c.clients.Close(t.Context()) })
	return c
}

func network(name byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, name}) }

// come has strangers of a network come, and returns how many got a place.
func (c *crowd) come(name byte, from, to int) (placed int) {
	for i := from; i <= to; i++ {
		c.now = c.now.Add(c.step)
		f := newFake(c.t)
		f.client.Network = network(name)
		if c.clients.Admit(&f.client, Socket, f) != nil {
			continue
		}
		f.client.Begin(f.way)
		c.byName[fmt.Sprintf("%c%d", name, i)] = f
		placed++
	}
	return placed
}

// gone reports whether a stranger had to go.
func (c *crowd) gone(name string) bool { return c.byName[name].client.Ending() == Crowded }

// TestStrangersOfANetwork: a network has its share of the places, and the oldest in it gives
// way to others of it.
func TestStrangersOfANetwork(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 4*8*20) // 160 strangers, 20 of a network
	if n := c.come('a', 1, 20); n != 20 {
		t.Fatalf("%d strangers of a network got a place, want 20", n)
	}
	c.byName["a1"].client.Meet()
	if n := c.come('a', 21, 21); n != 1 || c.gone("a2") {
		t.Error("one had to go although another is no stranger any more")
	}
	if n := c.come('a', 22, 22); n != 1 || c.gone("a1") || !c.gone("a2") || c.gone("a3") {
		t.Error("the oldest one has not made room, or others have")
	}
	if n := c.come('b', 1, 20); n != 20 {
		t.Errorf("%d strangers of another network got a place, want 20", n)
	}
	c.step = 0
	c.come('a', 30, 49) // all at once
	c.step = time.Second
	if n := c.come('a', 50, 58); n != 0 {
		t.Errorf("%d took the places of strangers that came a moment ago", n)
	}
	if n := c.come('a', 59, 59); n != 1 || !c.gone("a30") {
		t.Errorf("none got the place of one that came 10 seconds ago")
	}
	if n := c.clients.strangers.all.Len(); n != 40 {
		t.Errorf("there are %d strangers, want 40", n)
	}
}

// TestStrangersOfAllNetworks: when all places are taken, the oldest gives way, or one of the
// network that has the most to those that have few.
func TestStrangersOfAllNetworks(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 4*8*20)
	for name := byte('a'); name < 'i'; name++ {
		c.come(name, 1, 20)
	}
	if n := c.come('x', 1, 1); n != 1 || !c.gone("a1") {
		t.Errorf("%d got the place of the oldest stranger, want 1", n)
	}
	c.now, c.step = c.now.Add(time.Minute), 0
	for name := byte('a'); name < 'i'; name++ {
		c.come(name, 21, 40)
	}
	if n := c.come('x', 2, 8); n != 7 {
		t.Errorf("%d of 7 strangers of a small network got a place", n)
	}
	for name := byte('a'); name < 'i'; name++ {
		if n := c.clients.strangers.networks[network(name)].Len(); n < 19 {
			t.Errorf("network %c has %d strangers left, want 19 or 20", name, n)
		}
	}
	if n := c.clients.strangers.all.Len(); n != 160 {
		t.Errorf("there are %d strangers, want 160", n)
	}
}

// TestStrangersOfManyNetworks: where all networks have few, only the old give way.
func TestStrangersOfManyNetworks(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 4*8*2)
	c.step = 0
	for name := byte(1); name <= 16; name++ {
		c.come(name, 1, 1)
	}
	if n := c.come(100, 1, 1); n != 0 {
		t.Error("one took the place of a stranger that came a moment ago")
	}
	c.step = 10 * time.Second
	if n := c.come(100, 1, 1); n != 1 || !c.gone("\x011") {
		t.Errorf("%d got the place of the oldest one, want 1", n)
	}
}

// TestStrangersAreBounded: whatever strangers do, there are never too many of them, nor of
// a network, and all is forgotten in the end.
func TestStrangersAreBounded(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		s := newStrangers(1 + random.IntN(400))
		now := time.Unix(0, 0)
		var all []*Client
		for range 500 {
			now = now.Add(time.Duration(random.IntN(2000)) * time.Millisecond)
			if i := random.IntN(len(all) + 1); i < len(all) && random.IntN(3) == 0 {
				s.remove(all[i]) // which may be gone already
			} else {
				one := &Client{Network: network(byte(random.IntN(1 + random.IntN(50))))}
				victim, ok := s.giveWay(one.Network, now)
				if victim != nil {
					s.remove(victim)
				}
				if ok {
					s.add(one, now)
					all = append(all, one)
				}
			}
			checkStrangers(t, &s)
		}
		for _, one := range all {
			s.remove(one)
		}
		if s.all.Len() != 0 || len(s.networks) != 0 || s.largest != 0 {
			t.Fatalf("%d strangers of %d networks are left, one with %d", s.all.Len(), len(s.networks), s.largest)
		}
	}
}

func checkStrangers(t *testing.T, s *strangers) {
	t.Helper()
	count, largest := 0, 0
	for addr, of := range s.networks {
		count, largest = count+of.Len(), max(largest, of.Len())
		if _, listed := s.bySize[of.Len()][of]; !listed || of.Len() == 0 || of.Len() > s.share {
			t.Fatalf("network %v has %d strangers of at most %d, listed so: %v", addr, of.Len(), s.share, listed)
		}
	}
	if count != s.all.Len() || count > s.most || largest != s.largest {
		t.Fatalf("there are %d strangers, counted as %d, of at most %d; %d in a network, counted as %d",
			count, s.all.Len(), s.most, largest, s.largest)
	}
}

// BenchmarkStrangersAreFull is what a newcomer costs when 5,000 places are taken, each by
// another network.
func BenchmarkStrangersAreFull(b *testing.B) {
	now := time.Unix(0, 0)
	s := newStrangers(DefaultMaxSockets)
	for i := range s.most {
		s.add(&Client{Network: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}, now)
	}
	one := &Client{Network: network(1)}
	for b.Loop() {
		now = now.Add(time.Minute)
		victim, _ := s.giveWay(one.Network, now)
		s.remove(victim)
		s.add(one, now)
		one = victim
	}
}
