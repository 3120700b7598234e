package budget

import (
	"fmt"
	mathrand "math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// A desk hands out claims of one budget.
type desk struct {
	*testing.T
	budget *Budget
}

func newDesk(t *testing.T, limit, copies int64) *desk {
	return &desk{t, New(Options{Limit: limit, Copies: copies})}
}

// claim returns a claim of the client at an address.
func (d *desk) claim(address string) *Claim { return d.claimOf(address, "", false) }

// claimOf returns that of a user, on a connection with many requests or not.
func (d *desk) claimOf(address, uid string, many bool) *Claim {
	remote := netip.MustParseAddrPort(address)
	c := Client{Network: remote.Addr(), Database: "default", UID: uid}
	if many {
		c.Connection = remote
	}
	return d.budget.Claim(c, false)
}

// grows expects claims to grow, or not to.
func (d *desk) grows(c *Claim, size int64, want bool) {
	d.Helper()
	if got := c.Grow(size); got != want {
		d.Errorf("grow(%d) of %v = %v, want %v, with %d of %d taken", size, c.holders, got, want, d.budget.taken, d.budget.limit)
	}
}

// empty expects nothing to be taken.
func (d *desk) empty() {
	d.Helper()
	if d.budget.taken != 0 || d.budget.total.Load() != 0 || len(d.budget.holders) != 0 {
		d.Errorf("%d bytes are taken, %d counted, by %v, want none", d.budget.taken, d.budget.total.Load(), d.budget.holders)
	}
}

func TestBudgetSharesOfClients(t *testing.T) {
	d := newDesk(t, 800, 1)
	var held []*Claim
	for i := range 4 { // a quarter is 200
		c := d.claim(fmt.Sprintf("192.0.2.1:%d", 1000+i))
		d.grows(c, 50, true)
		held = append(held, c)
	}
	d.grows(d.claim("192.0.2.1:2000"), 1, false)
	d.grows(d.claim("192.0.2.2:2000"), 200, true)
	d.grows(held[0], 51, false) // it is not alone
	for _, c := range held[1:] {
		c.Release()
	}
	d.grows(held[0], 400, true) // it is now, and the room is free
	d.grows(d.claim("192.0.2.1:2000"), 1, false)
	d.grows(d.claim("192.0.2.3:2000"), 101, false)
	d.grows(d.claim("192.0.2.3:2000"), 100, true)
}

func TestBudgetShareOfIdentity(t *testing.T) {
	d := newDesk(t, 800, 1)
	d.grows(d.claimOf("192.0.2.1:1000", "ann", false), 150, true)
	d.grows(d.claimOf("192.0.2.2:1000", "ann", false), 51, false)
	d.grows(d.claimOf("192.0.2.2:1000", "ben", false), 51, true)
	d.grows(d.claimOf("192.0.2.1:1001", "cyd", false), 51, false)
}

func TestBudgetShareOfConnection(t *testing.T) {
	d := newDesk(t, 800, 1)
	d.grows(d.claimOf("192.0.2.1:1000", "", true), 60, true)
	d.grows(d.claimOf("192.0.2.1:1000", "", true), 41, false)
	d.grows(d.claimOf("192.0.2.1:1000", "", true), 40, true)
	d.grows(d.claimOf("192.0.2.1:1001", "", true), 100, true)
	d.grows(d.claimOf("192.0.2.1:1002", "", true), 1, false)
}

func TestBudgetOfAdministrators(t *testing.T) {
	d := newDesk(t, 800, 1)
	for i := range 3 {
		d.grows(d.claim(fmt.Sprintf("192.0.2.%d:1000", i)), 200, true)
	}
	d.grows(d.claim("192.0.2.4:1000"), 101, false) // the last 100 are not for it
	d.grows(d.claim("192.0.2.4:1000"), 100, true)
	admin := Client{Network: netip.MustParseAddr("192.0.2.4"), Admin: true}
	for range 2 {
		d.grows(d.budget.Claim(admin, false), 50, true)
	}
	d.grows(d.budget.Claim(admin, false), 1, false)
}

// TestBudgetOfAdministratorsOfOneDatabase: whoever holds the secret of a database leaves a quarter to others, but may send
// one body that is larger.
func TestBudgetOfAdministratorsOfOneDatabase(t *testing.T) {
	d := newDesk(t, 512, WriteCopies)
	claim := func(host, database string) *Claim {
		return d.budget.Claim(Client{Network: netip.MustParseAddr(host), Database: database, Admin: true}, false)
	}
	var held []*Claim
	for i := range 12 { // of 16, which count twice
		held = append(held, claim(fmt.Sprintf("192.0.2.%d", i%2), "a"))
		d.grows(held[i], 16, true)
	}
	d.grows(claim("192.0.2.9", "a"), 1, false)
	d.grows(claim("192.0.2.9", "b"), 16, true)
	d.grows(d.claim("192.0.2.10:1000"), 16, true) // a user, of any database
	for _, c := range held[1:] {
		c.Release()
	}
	d.grows(held[0], 256, true)                 // it is alone now
	d.grows(claim("192.0.2.9", "a"), 100, true) // which is three quarters
	d.grows(claim("192.0.2.9", "a"), 1, false)
}

// TestBudgetAlwaysHasRoomForOne: a body as large as any may be is taken beside what
// others hold, if there is room: it is not counted as often as smaller ones.
func TestBudgetAlwaysHasRoomForOne(t *testing.T) {
	d := newDesk(t, 512, WriteCopies)
	one := d.claim("192.0.2.1:1000")
	d.grows(d.claim("192.0.2.2:1000"), 64, true)
	d.grows(d.claim("192.0.2.2:1001"), 1, false)
	for _, size := range []int64{1, 63, 64, 65, 128, 129, 256} {
		d.grows(one, size, true)
	}
	d.grows(d.claim("192.0.2.3:1000"), 33, false)
	d.grows(d.claim("192.0.2.3:1000"), 32, true)
	one.Release()
	d.grows(d.claim("192.0.2.1:1000"), 449, false)
	if most := one.Most(); most != 448 {
		t.Errorf("the largest body is %d, want 448 of 512", most)
	}
}

// TestBudgetDoesNotShutOutTheModest: small bodies of a client that holds little are
// taken whatever others hold.
func TestBudgetDoesNotShutOutTheModest(t *testing.T) {
	d := newDesk(t, 8<<20, 1)
	for i := range 4 {
		c := d.claim(fmt.Sprintf("192.0.2.%d:1000", i))
		d.grows(c, min(2<<20, c.Most()-d.budget.taken), true)
	}
	small := d.claim("192.0.2.4:1000")
	d.grows(small, 1, false)
	small.small = true
	d.grows(small, 200<<10, true)
	other := d.claim("192.0.2.4:1001")
	other.small = true
	d.grows(other, 57<<10, false)
	d.grows(other, 56<<10, true)
}

// TestBudgetForSmallBesideLarge: an address whose large bodies take all of its share
// may still have small ones.
func TestBudgetForSmallBesideLarge(t *testing.T) {
	d := newDesk(t, 64<<20, 1)
	d.grows(d.claim("192.0.2.1:1000"), 20<<20, true)
	var held []*Claim
	for range 4 { // a sixteenth
		c := d.claim("192.0.2.1:1001")
		c.small = true
		d.grows(c, 1<<20, true)
		held = append(held, c)
	}
	more := d.claim("192.0.2.1:1001")
	more.small = true
	d.grows(more, 1, false)
	held[0].Release()
	d.grows(more, 1<<20, true)
}

func TestBudgetToSpare(t *testing.T) {
	d := newDesk(t, 800, 1)
	c := d.claim("192.0.2.1:1000")
	d.grows(d.claim("192.0.2.1:1001"), 60, true)
	if c.GrowIfSpare(41) || !c.GrowIfSpare(40) {
		t.Error("more than half of a client's share is taken for what is not needed")
	}
	d.grows(d.claim("192.0.2.1:1001"), 100, true)
}

func TestBudgetIsGivenBack(t *testing.T) {
	d := newDesk(t, 512, WriteCopies)
	c := d.claimOf("192.0.2.1:1000", "ann", true)
	for _, size := range []int64{1, 100, 300, 1000} {
		d.grows(c, size, size < 448)
	}
	c.Release()
	d.empty()
	c.Release()
	d.empty()
	d.grows(c, 10, true)
	c.Release()
	d.empty()
}

// TestBudgetShareOfDatabase: claims that last leave half for other databases.
func TestBudgetShareOfDatabase(t *testing.T) {
	d := newDesk(t, 800, 1)
	kept := func(address, database string) *Claim {
		return d.budget.Claim(Client{Network: netip.MustParseAddr(address), Database: database, Keeps: true}, false)
	}
	d.grows(kept("192.0.2.1", "a"), 201, false) // though it is alone
	d.grows(kept("192.0.2.1", "a"), 200, true)
	d.grows(kept("192.0.2.2", "a"), 200, true)
	d.grows(kept("192.0.2.3", "a"), 1, false)
	d.grows(kept("192.0.2.3", "b"), 200, true)
}

func TestBudgetWithoutBounds(t *testing.T) {
	var none *Budget
	c := none.Claim(Client{}, false)
	if !c.Grow(1 << 40) {
		t.Error("a budget without bounds refuses something")
	}
	c.Release()
	(*Claim)(nil).Release()
}

// TestAwait: who waits holds nothing, gets what is given back, and gives up in the end.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 800, 1)
		first, second := d.claim("192.0.2.1:1000"), d.claim("192.0.2.1:1001")
		d.grows(first, 150, true)
		d.grows(second, 50, true)
		got := make(chan bool)
		go func() { got <- second.Await(100, time.Second, nil) }()
		synctest.Wait()
		if d.budget.Taken() != 150 {
			t.Errorf("who waits holds %d bytes", d.budget.Taken()-150)
		}
		first.Release()
		if !<-got || second.Size() != 100 {
			t.Error("what was given back is not taken")
		}
		go func() { got <- first.Await(150, time.Second, nil) }()
		if <-got {
			t.Error("there is room for both")
		}
		done := make(chan struct{})
		go func() { got <- first.Await(150, time.Hour, done) }()
		synctest.Wait()
		close(done)
		if <-got {
			t.Error("there is room for both when nobody waits")
		}
		second.Release()
		d.empty()
	})
}

// TestBudgetRandom: whatever clients do, no more than the limit is given out, but for
// what is modest, nobody has more than the share beside something else, and all is given
// back.
func TestBudgetRandom(t *testing.T) {
	seed := mathrand.Uint64()
	rng := mathrand.New(mathrand.NewPCG(seed, 0))
	const limit, clients = 1000, 6
	d := newDesk(t, limit, 1)
	var claims []*Claim
	by := map[*Claim]int{}
	for range 5000 {
		if len(claims) < 20 {
			client := rng.IntN(clients)
			c := d.claim(fmt.Sprintf("192.0.2.%d:1000", client))
			claims, by[c] = append(claims, c), client
		}
		i := rng.IntN(len(claims))
		switch c := claims[i]; rng.IntN(3) {
		case 0:
			c.Release()
			claims[i] = claims[len(claims)-1]
			claims = claims[:len(claims)-1]
			delete(by, c)
		default:
			c.Grow(rng.Int64N(limit))
		}
		held, most := map[int]int64{}, map[int]int64{}
		var all int64
		for c, client := range by {
			all += c.Size()
			held[client] += c.Size()
			most[client] = max(most[client], c.Size())
		}
		for client, size := range held {
			if size > limit/clientShare && size > most[client] && most[client] <= limit/clientShare {
				t.Fatalf("seed %d: a client has %d in several claims", seed, size)
			}
		}
		if all != d.budget.Taken() || all > limit-limit/adminShare {
			t.Fatalf("seed %d: %d are held, %d counted, of %d", seed, all, d.budget.Taken(), limit)
		}
	}
	for _, c := range claims {
		c.Release()
	}
	d.empty()
}
