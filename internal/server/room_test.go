package server

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// seats takes seats for an address, all of which must be given, and returns them. Each
// has been idle for a second longer than the next.
func seats(t *testing.T, r *room, from string, n int, clock *time.Duration) (all []*seat) {
	t.Helper()
	for i := range n {
		*clock += time.Second
		s := &seat{}
		if v, shed := r.take(s, addr(from), *clock); v != admitted || shed != nil {
			t.Fatalf("connection %d of %s: verdict %d, shed %v, want that it is let in", i, from, v, shed)
		}
		all = append(all, s)
	}
	return all
}

// TestRoomShares goes through the rule as its comment tells it.
func TestRoomShares(t *testing.T) {
	t.Parallel()
	r, clock := newRoom(16, 0), time.Duration(0)
	heavy := seats(t, r, "192.0.2.1", 9, &clock)
	if v, _ := r.take(&seat{}, addr("192.0.2.1"), clock); v != refusedAddress {
		t.Errorf("an address with 9 of 16 gets another: verdict %d", v)
	}
	other := seats(t, r, "192.0.2.2", 2, &clock)
	if v, _ := r.take(&seat{}, addr("192.0.2.2"), clock); v != refusedAddress {
		t.Errorf("an address with its share, 2 of 16, gets another: verdict %d", v)
	}
	for i := range 5 {
		seats(t, r, fmt.Sprintf("192.0.2.%d", 10+i), 1, &clock)
	}
	heavy[0].idleSince.Store(busy)
	heavy[1].idleSince.Store(int64(clock)) // had a request just now
	other[0].idleSince.Store(0)            // idle for longest, but within its share
	for i, want := range []*seat{heavy[2], heavy[3], heavy[4], heavy[5], heavy[6], heavy[7], heavy[8]} {
		clock += time.Second
		v, shed := r.take(&seat{}, addr(fmt.Sprintf("198.51.100.%d", i)), clock)
		if v != admitted || shed != want {
			t.Fatalf("newcomer %d: verdict %d, sheds seat %d of the heavy address, want the longest idle one", i, v, slices.Index(heavy, shed))
		}
	}
	clock += time.Second
	if v, _ := r.take(&seat{}, addr("198.51.100.200"), clock); v != refusedFull {
		t.Errorf("a newcomer when no address is above its share: verdict %d, want that it is refused", v)
	}
}

// TestRoomExempt: connections without an address are not limited, and not closed for
// others.
func TestRoomExempt(t *testing.T) {
	t.Parallel()
	r, clock := newRoom(8, 2), time.Duration(0)
	for i := range 8 {
		if v, _ := r.take(&seat{}, netip.Addr{}, clock); v != admitted {
			t.Fatalf("exempt connection %d: verdict %d, want that it is let in", i, v)
		}
	}
	if v, shed := r.take(&seat{}, addr("192.0.2.1"), time.Hour); v != refusedFull || shed != nil {
		t.Errorf("a newcomer when exempt ones have all: verdict %d, sheds %v; want that it is refused", v, shed)
	}
	if len(r.addresses)+len(r.heavy) != 0 {
		t.Errorf("exempt connections have %d addresses", len(r.addresses))
	}
}

// A modelRoom is a room that looks at everything each time.
type modelRoom struct {
	most, share int
	open        []*modelSeat
}

type modelSeat struct {
	network netip.Addr
	since   int64 // or busy
	real    *seat
}

func (m *modelRoom) held(network netip.Addr) (n int) {
	for _, s := range m.open {
		if network.IsValid() && s.network == network {
			n++
		}
	}
	return n
}

// take returns what should become of a newcomer, and whether another goes for it.
func (m *modelRoom) take(network netip.Addr) (v verdict, sheds bool) {
	if len(m.open) > m.most/2 && m.held(network) >= m.share {
		return refusedAddress, false
	}
	if len(m.open) < m.most {
		return admitted, false
	}
	for _, s := range m.open {
		if s.since != busy && m.held(s.network) > m.share {
			return admitted, true
		}
	}
	return refusedFull, false
}

// TestRoomRandom compares a room with the model. Of addresses that hold equally many,
// either may lose a connection, but each only its longest idle one.
func TestRoomRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	verdicts := map[verdict]int{}
	shedding := 0
	for range 400 {
		most := 1 + random.IntN(12)
		share := 1 + random.IntN(max(1, most/3))
		if random.IntN(3) == 0 {
			most, share = 8, 1
		}
		v, n := compareRooms(t, random, most, share)
		for verdict, count := range v {
			verdicts[verdict] += count
		}
		if shedding += n; t.Failed() {
			t.Fatalf("seed %d, most %d, share %d", seed, most, share)
		}
	}
	if verdicts[admitted] == 0 || verdicts[refusedFull] == 0 || verdicts[refusedAddress] == 0 || shedding == 0 {
		t.Errorf("verdicts %v, %d shed: some case did not come, seed %d", verdicts, shedding, seed)
	}
}

func compareRooms(t *testing.T, random *rand.Rand, most, share int) (verdicts map[verdict]int, shedding int) {
	r, m := newRoom(most, share), &modelRoom{most: most, share: share}
	networks := []netip.Addr{{}, addr("192.0.2.1"), addr("192.0.2.2"), addr("192.0.2.3"), addr("192.0.2.4")}
	verdicts = map[verdict]int{}
	clock := time.Duration(0)
	for range 200 {
		clock += time.Duration(most) * lookPause // a look is allowed each time
		if len(m.open) == 0 || random.IntN(2) == 0 {
			network := networks[random.IntN(len(networks))]
			want, sheds := m.take(network)
			s := &seat{}
			got, shed := r.take(s, network, clock)
			verdicts[got]++
			if got != want || (shed != nil) != sheds {
				t.Errorf("a connection of %s: verdict %d, another goes: %v, want %d, %v", network, got, shed != nil, want, sheds)
				return verdicts, shedding
			}
			if shed != nil {
				shedding++
				m.checkShed(t, shed)
				m.remove(shed)
			}
			if got == admitted {
				m.open = append(m.open, &modelSeat{network, int64(clock), s})
			}
		} else {
			s := m.open[random.IntN(len(m.open))]
			switch random.IntN(4) {
			case 0:
				r.leave(s.real)
				r.leave(s.real) // as connections are closed twice
				m.remove(s.real)
			case 1:
				s.since = int64(clock)
			default:
				s.since = busy
			}
			s.real.idleSince.Store(s.since)
		}
		m.checkBooks(t, r)
	}
	return verdicts, shedding
}

// checkShed checks that a seat was the longest idle one of a heaviest address.
func (m *modelRoom) checkShed(t *testing.T, shed *seat) {
	t.Helper()
	var gone *modelSeat
	for _, s := range m.open {
		if s.real == shed {
			gone = s
		}
	}
	if gone == nil || gone.since == busy {
		t.Errorf("a connection was shed that is not idle: %+v", gone)
		return
	}
	for _, s := range m.open {
		isLonger := s.network == gone.network && s.since < gone.since
		isHeavier := m.held(s.network) > max(m.share, m.held(gone.network))
		if s.since != busy && (isLonger || isHeavier) {
			t.Errorf("%s with %d connections lost one that is idle since %d, and not %s with %d one since %d",
				gone.network, m.held(gone.network), gone.since, s.network, m.held(s.network), s.since)
		}
	}
}

func (m *modelRoom) remove(real *seat) {
	m.open = slices.DeleteFunc(m.open, func(s *modelSeat) bool { return s.real == real })
}

// checkBooks checks that a room has counted right, and keeps nothing of those that left.
func (m *modelRoom) checkBooks(t *testing.T, r *room) {
	t.Helper()
	counts := map[netip.Addr]int{}
	for _, s := range m.open {
		if s.network.IsValid() {
			counts[s.network]++
		}
	}
	heavy := 0
	for network, n := range counts {
		if n > m.share {
			heavy++
		}
		if a := r.addresses[network]; a == nil || len(a.seats) != n {
			t.Errorf("%s has another number of connections than %d", network, n)
		}
	}
	if r.open != len(m.open) || r.open > r.most || len(r.addresses) != len(counts) || len(r.heavy) != heavy {
		t.Errorf("%d connections of %d addresses, %d heavy, want %d of %d, %d", r.open, len(r.addresses), len(r.heavy), len(m.open), len(counts), heavy)
	}
}

// TestRoomLooksSeldom has clients come in a storm while one address has half of all
// connections. They do not make the room look at all of these each time, neither if
// all are idle, nor one, nor none.
func TestRoomLooksSeldom(t *testing.T) {
	t.Parallel()
	const most = 20_000
	for _, test := range []struct{ idle, admitted int }{{0, 0}, {1, 1}, {most, 2 * idleBatch}} {
		r := newRoom(most, 0)
		for i := range most/2 + 1 {
			s := &seat{}
			r.take(s, addr("192.0.2.1"), 0)
			if i >= test.idle {
				s.idleSince.Store(busy)
			}
		}
		for r.open < most {
			r.take(&seat{}, netip.Addr{}, 0)
		}
		looks, in := 0, 0
		for i := range 2000 {
			lookAgain := r.lookAgain
			clock := time.Duration(i+1) * 9 * time.Microsecond // 18 ms in all, and a look is good for 10
			if v, _ := r.take(&seat{}, addr(fmt.Sprintf("198.51.%d.%d", i/250, i%250)), clock); v == admitted {
				in++
			}
			if r.lookAgain != lookAgain {
				looks++
			}
		}
		if looks != 2 || in != test.admitted {
			t.Errorf("with %d idle, 2000 clients have the connections looked at %d times and %d get in, want 2 and %d", test.idle, looks, in, test.admitted)
		}
	}
}

// BenchmarkRoomStorm is a client that comes while all connections are in use, half of
// them by one address, and idle.
func BenchmarkRoomStorm(b *testing.B) {
	const most = 25_000
	for _, state := range []string{"idle", "busy"} {
		b.Run(state, func(b *testing.B) {
			r, start := newRoom(most, 0), time.Now()
			var heavy []*seat
			for range most/2 + 1 {
				heavy = append(heavy, &seat{})
				r.take(heavy[len(heavy)-1], addr("192.0.2.1"), 0)
			}
			for r.open < most {
				r.take(&seat{}, netip.Addr{}, 0)
			}
			if state == "busy" {
				for _, s := range heavy {
					s.idleSince.Store(busy)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				newcomer := &seat{}
				if v, shed := r.take(newcomer, addr("198.51.100.1"), time.Since(start)); v == admitted { // and leaves for the one that went
					r.leave(newcomer)
					if shed != nil {
						back := &seat{}
						r.sit(back, addr("192.0.2.1"), time.Since(start))
					}
				}
			}
		})
	}
}

func BenchmarkRoomLook(b *testing.B) {
	a := &address{}
	for i := range 12_500 {
		s := &seat{}
		s.idleSince.Store(int64(rand.IntN(1_000_000 + i)))
		a.seats = append(a.seats, s)
	}
	for b.Loop() {
		a.look()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(a.seats)), "ns/seat")
}
