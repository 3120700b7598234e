package rest

import (
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/tree"
)

// A desk hands out claims of one budget.
type desk struct {
	*testing.T
	budget *budget
}

func newDesk(t *testing.T, limit, copies int64) *desk {
	return &desk{t, newBudget(limit, copies, &atomic.Int64{})}
}

// claim returns a claim of the client at an address, over HTTP/1.1.
func (d *desk) claim(address string) *claim { return d.claimOf(address, auth.Identity{}, 1) }

// claimOf returns that of an identity, over either protocol.
func (d *desk) claimOf(address string, who auth.Identity, major int) *claim {
	r := httptest.NewRequest("PUT", "/a.json", nil)
	r.RemoteAddr, r.ProtoMajor = address, major
	u := usage{r: r, database: "default", who: &who}
	return u.newClaim(d.budget, false)
}

// grows expects claims to grow, or not to.
func (d *desk) grows(c *claim, size int64, want bool) {
	d.Helper()
	if got := c.grow(size); got != want {
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

func (d *desk) signedIn(uid string) auth.Identity {
	d.Helper()
	claims, err := tree.DecodeClaims([]byte(`{"uid":"` + uid + `"}`))
	if err != nil {
		d.Fatal(err)
	}
	return auth.Identity{Auth: claims}
}

func TestBudgetSharesOfClients(t *testing.T) {
	d := newDesk(t, 800, 1)
	var held []*claim
	for i := range 4 { // a quarter is 200
		c := d.claim(fmt.Sprintf("192.0.2.1:%d", 1000+i))
		d.grows(c, 50, true)
		held = append(held, c)
	}
	d.grows(d.claim("192.0.2.1:2000"), 1, false)
	d.grows(d.claim("192.0.2.2:2000"), 200, true)
	d.grows(held[0], 51, false) // it is not alone
	for _, c := range held[1:] {
		c.release()
	}
	d.grows(held[0], 400, true) // it is now, and the room is free
	d.grows(d.claim("192.0.2.1:2000"), 1, false)
	d.grows(d.claim("192.0.2.3:2000"), 101, false)
	d.grows(d.claim("192.0.2.3:2000"), 100, true)
}

func TestBudgetClientHasNetworkOfIPv6(t *testing.T) {
	d := newDesk(t, 800, 1)
	d.grows(d.claim("[2001:db8::1]:1000"), 200, true)
	d.grows(d.claim("[2001:db8::ffff:2]:1000"), 1, false)
	d.grows(d.claim("[2001:db8:0:1::2]:1000"), 200, true)
	d.grows(d.claim("[::ffff:192.0.2.1]:1000"), 200, true)
	d.grows(d.claim("192.0.2.1:1001"), 1, false)
}

func TestBudgetShareOfIdentity(t *testing.T) {
	d := newDesk(t, 800, 1)
	d.grows(d.claimOf("192.0.2.1:1000", d.signedIn("ann"), 1), 150, true)
	d.grows(d.claimOf("192.0.2.2:1000", d.signedIn("ann"), 1), 51, false)
	d.grows(d.claimOf("192.0.2.2:1000", d.signedIn("ben"), 1), 51, true)
	d.grows(d.claimOf("192.0.2.1:1001", d.signedIn("cyd"), 1), 51, false)
}

func TestBudgetShareOfConnection(t *testing.T) {
	d := newDesk(t, 800, 1)
	d.grows(d.claimOf("192.0.2.1:1000", auth.Identity{}, 2), 60, true)
	d.grows(d.claimOf("192.0.2.1:1000", auth.Identity{}, 2), 41, false)
	d.grows(d.claimOf("192.0.2.1:1000", auth.Identity{}, 2), 40, true)
	d.grows(d.claimOf("192.0.2.1:1001", auth.Identity{}, 2), 100, true)
	d.grows(d.claimOf("192.0.2.1:1002", auth.Identity{}, 2), 1, false)
}

func TestBudgetOfAdministrators(t *testing.T) {
	d := newDesk(t, 800, 1)
	for i := range 3 {
		d.grows(d.claim(fmt.Sprintf("192.0.2.%d:1000", i)), 200, true)
	}
	d.grows(d.claim("192.0.2.4:1000"), 101, false) // the last 100 are not for it
	d.grows(d.claim("192.0.2.4:1000"), 100, true)
	admin := auth.Identity{Admin: true}
	for range 2 {
		d.grows(d.claimOf("192.0.2.4:1001", admin, 1), 50, true)
	}
	d.grows(d.claimOf("192.0.2.4:1001", admin, 1), 1, false)
}

// TestBudgetAlwaysHasRoomForOne: a body as large as any may be is taken beside what
// others hold, if there is room: it is not counted as often as smaller ones.
func TestBudgetAlwaysHasRoomForOne(t *testing.T) {
	d := newDesk(t, 512, writeCopies)
	one := d.claim("192.0.2.1:1000")
	d.grows(d.claim("192.0.2.2:1000"), 64, true)
	d.grows(d.claim("192.0.2.2:1001"), 1, false)
	for _, size := range []int64{1, 63, 64, 65, 128, 129, 256} {
		d.grows(one, size, true)
	}
	d.grows(d.claim("192.0.2.3:1000"), 33, false)
	d.grows(d.claim("192.0.2.3:1000"), 32, true)
	one.release()
	d.grows(d.claim("192.0.2.1:1000"), 449, false)
	if most := one.most(); most != 448 {
		t.Errorf("the largest body is %d, want 448 of 512", most)
	}
}

// TestBudgetDoesNotShutOutTheModest: small bodies of a client that holds little are
// taken whatever others hold.
func TestBudgetDoesNotShutOutTheModest(t *testing.T) {
	d := newDesk(t, 8<<20, 1)
	for i := range 4 {
		c := d.claim(fmt.Sprintf("192.0.2.%d:1000", i))
		d.grows(c, min(2<<20, c.most()-d.budget.taken), true)
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
	var held []*claim
	for range 4 { // a sixteenth
		c := d.claim("192.0.2.1:1001")
		c.small = true
		d.grows(c, 1<<20, true)
		held = append(held, c)
	}
	more := d.claim("192.0.2.1:1001")
	more.small = true
	d.grows(more, 1, false)
	held[0].release()
	d.grows(more, 1<<20, true)
}

func TestBudgetToSpare(t *testing.T) {
	d := newDesk(t, 800, 1)
	c := d.claim("192.0.2.1:1000")
	d.grows(d.claim("192.0.2.1:1001"), 60, true)
	if c.growIfSpare(41) || !c.growIfSpare(40) {
		t.Error("more than half of a client's share is taken for what is not needed")
	}
	d.grows(d.claim("192.0.2.1:1001"), 100, true)
}

func TestBudgetIsGivenBack(t *testing.T) {
	d := newDesk(t, 512, writeCopies)
	c := d.claimOf("192.0.2.1:1000", d.signedIn("ann"), 2)
	for _, size := range []int64{1, 100, 300, 1000} {
		d.grows(c, size, size < 448)
	}
	c.release()
	d.empty()
	c.release()
	d.empty()
	d.grows(c, 10, true)
	c.release()
	d.empty()
}

// TestBudgetsAreApart: large answers leave the room for bodies as it is.
func TestBudgetsAreApart(t *testing.T) {
	h := New(Options{MaxBodies: 4 << 20})
	read := func(address string) *call {
		r := httptest.NewRequest("GET", "/a.json", nil)
		r.RemoteAddr = address
		return h.newCall(httptest.NewRecorder(), r)
	}
	if err := read("192.0.2.1:1000").usage.chargeAnswer(1<<20, false); err != nil {
		t.Fatal(err)
	}
	if err := read("192.0.2.1:1001").usage.chargeAnswer(1<<20, false); err == nil {
		t.Error("a client holds the whole budget for answers")
	}
	if err := read("192.0.2.1:1002").body.charge(3 << 20); err != nil {
		t.Errorf("with large answers under way, a body is answered %v", err)
	}
}

// TestBudgetForOneAnswerIsAlwaysEnough: what was written can be read.
func TestBudgetForOneAnswerIsAlwaysEnough(t *testing.T) {
	h := New(Options{MaxBodies: 1 << 20})
	r := httptest.NewRequest("GET", "/a.json", nil)
	if err := h.newCall(httptest.NewRecorder(), r).usage.chargeAnswer(8<<20, false); err != nil {
		t.Errorf("an answer that is larger than the budget is answered %v", err)
	}
	if err := h.newCall(httptest.NewRecorder(), r).usage.chargeAnswer(8<<20, false); err == nil {
		t.Error("so is a second one")
	}
}
