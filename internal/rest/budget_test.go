package rest

import (
	"net/http/httptest"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
)

// TestBudgetsAreApart: large answers leave the room for bodies as it is.
func TestBudgetsAreApart(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	h := New(Options{MaxBodies: 1 << 20})
	r := httptest.NewRequest("GET", "/a.json", nil)
	if err := h.newCall(httptest.NewRecorder(), r).usage.chargeAnswer(8<<20, false); err != nil {
		t.Errorf("an answer that is larger than the budget is answered %v", err)
	}
	if err := h.newCall(httptest.NewRecorder(), r).usage.chargeAnswer(8<<20, false); err == nil {
		t.Error("so is a second one")
	}
}

// TestConnectionsOfHTTP2 counts what a connection with many requests holds together.
func TestConnectionsOfHTTP2(t *testing.T) {
	t.Parallel()
	b := budget.New(budget.Options{Limit: 800})
	claim := func(address string, major int) *budget.Claim {
		r := httptest.NewRequest("PUT", "/a.json", nil)
		r.RemoteAddr, r.ProtoMajor = address, major
		u := usage{r: r, database: "default", who: &auth.Identity{}}
		return u.newClaim(b, false)
	}
	for _, step := range []struct {
		address string
		major   int
		size    int64
		want    bool
	}{
		{"192.0.2.1:1000", 2, 60, true},
		{"192.0.2.1:1000", 2, 41, false},
		{"192.0.2.1:1001", 1, 41, true},
		{"[2001:db8::1]:1000", 1, 200, true},
		{"[2001:db8::ffff:2]:1000", 1, 1, false}, // one network
	} {
		if got := claim(step.address, step.major).Grow(step.size); got != step.want {
			t.Errorf("%d bytes of %s by HTTP/%d = %t, want %t", step.size, step.address, step.major, got, step.want)
		}
	}
}
