package exchange_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/exchange"
)

const (
	tailStreams = 10
	tailTime    = 30 * time.Second
	// tailLeast is what a tail takes at least.
	tailLeast = 32 << 10
)

// A tailDesk is a connection of HTTP/2 whose answers may have tails.
type tailDesk struct {
	*testing.T
	answers *budget.Budget
	tails   *exchange.Tails
}

func newTailDesk(t *testing.T, limit int64) *tailDesk {
	answers := budget.New(budget.Options{Limit: limit})
	return &tailDesk{t, answers, exchange.NewTails(answers, netip.MustParseAddrPort("192.0.2.1:1234"), tailStreams, tailTime)}
}

// leaves answers a request, and reports whether the end of the answer was left to net/http.
func (d *tailDesk) leaves(change func(r *http.Request) *http.Request) bool {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "https://localhost/a.json", nil)
	r.ProtoMajor = 2
	r = r.WithContext(exchange.WithTails(d.Context(), d.tails))
	if change != nil {
		r = change(r)
	}
	x := exchange.New(w, r)
	_, _ = x.Write([]byte("1"))
	exchange.Settle(x, r, nil, time.Minute)
	return !w.Flushed
}

// taken expects so many tails to be paid for, and no more than a few besides.
func (d *tailDesk) taken(tails int) {
	d.Helper()
	if got := d.answers.Taken(); got < int64(tails)*tailLeast || got > int64(tails+4)*2*tailLeast || tails == 0 && got > 0 {
		d.Errorf("%d bytes are taken, want those of %d tails", got, tails)
	}
}

// TestTailsCountUntilTheConnectionIsIdle: nobody is told when a client takes the end of an answer.
func TestTailsCountUntilTheConnectionIsIdle(t *testing.T) {
	d := newTailDesk(t, 64<<20)
	for i := range 3 {
		if !d.leaves(nil) {
			t.Fatal("the end of an answer is not left to net/http")
		}
		d.taken(i + 1)
	}
	d.tails.Idle()
	d.taken(0)
	for range 3 * tailStreams { // as many as the connection may have at a time
		if !d.leaves(nil) {
			t.Fatal("the end of an answer is not left to net/http")
		}
	}
	d.taken(tailStreams)
	d.tails.Close()
	d.taken(0)
	if d.leaves(nil) {
		t.Error("an answer over a connection that has ended has a tail")
	}
	d.taken(0)
}

// TestTailsAreGoneAfterTheirDeadline: on a connection that always has a request.
func TestTailsAreGoneAfterTheirDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTailDesk(t, 64<<20)
		for range 6 {
			d.leaves(nil)
		}
		time.Sleep(tailTime) //nolint:forbidigo // fake time
		d.taken(6)
		d.leaves(nil)
		time.Sleep(tailTime / 2) //nolint:forbidigo // fake time
		d.taken(7)
		d.leaves(nil)
		time.Sleep(tailTime) //nolint:forbidigo // fake time
		d.taken(1)
		time.Sleep(3 * tailTime) //nolint:forbidigo // fake time
		d.taken(0)
	})
}

// TestTailsAreRefused: then a handler waits for its client.
func TestTailsAreRefused(t *testing.T) {
	d := newTailDesk(t, 64<<20)
	for name, change := range map[string]func(r *http.Request) *http.Request{
		"with a head that is long": func(r *http.Request) *http.Request {
			r.Header.Set("X-Long", strings.Repeat("x", 8<<10))
			return r
		},
		"to a host whose name is long": func(r *http.Request) *http.Request {
			r.Host = strings.Repeat("x", 8<<10)
			return r
		},
		"with a path that was sent with escapes, and is short without": func(r *http.Request) *http.Request {
			sent := httptest.NewRequest("GET", "https://localhost/"+strings.Repeat("%61", 2<<10), nil)
			sent.ProtoMajor = 2
			return sent.WithContext(r.Context())
		},
		"that was taken back": func(r *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			return r.WithContext(ctx)
		},
		"on a connection that has no tails": func(r *http.Request) *http.Request { return r.WithContext(t.Context()) },
	} {
		if d.leaves(change) {
			t.Errorf("the answer to a request %s has a tail", name)
		}
	}
	d.taken(0)
	short := newTailDesk(t, 2<<20) // a sixteenth of which is less than a few tails
	if short.leaves(nil) {
		t.Error("there is a tail where there is no memory to spare")
	}
	short.taken(0)
}

// TestTailsTakeAnEighth: of the budget, however many connections and addresses there are.
func TestTailsTakeAnEighth(t *testing.T) {
	d := newTailDesk(t, 8<<20)
	left := 0
	for i := range 40 {
		d.tails = exchange.NewTails(d.answers, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 1234), tailStreams, tailTime)
		for range tailStreams {
			if d.leaves(nil) {
				left++
			}
		}
	}
	if taken := d.answers.Taken(); left == 0 || taken == 0 || taken > 1<<20 {
		t.Errorf("%d tails take %d bytes, want some, and at most %d", left, taken, 1<<20)
	}
}
