package wire

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/wire/message"
)

// A fakeRate notes whom requests count for, by name, and lets all wait that are more than
// left.
type fakeRate struct {
	names map[Asker]string
	good  map[Asker]bool
	took  []string
	left  int
	wait  func() time.Duration
}

func newFakeRate() *fakeRate {
	return &fakeRate{names: map[Asker]string{}, good: map[Asker]bool{}, left: 1 << 20}
}

func (r *fakeRate) named(a Asker, name string) Asker {
	a.Hash = uint64(len(name))
	r.names[a] = name
	return a
}

func (r *fakeRate) OfNetwork(netip.Addr) Asker { return r.named(Asker{}, "network") }
func (r *fakeRate) OfCredential(credential string) (Asker, bool) {
	a := r.named(Asker{ByCredential: true}, credential[:min(len(credential), 6)])
	return a, r.good[a]
}
func (r *fakeRate) Remember(a Asker) { r.good[a] = true }
func (r *fakeRate) Take(a Asker) time.Duration {
	if r.left--; r.left < 0 {
		return r.wait()
	}
	r.took = append(r.took, r.names[a])
	return 0
}

// TestWhomRequestsCountFor: for the network, until a login is good.
func TestWhomRequestsCountFor(t *testing.T) {
	t.Parallel()
	const secret = "secret-that-is-long-enough-for-everyone"
	db := enginetest.Open(t, store.Options{})
	if err := db.SetSecrets(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	f, rate := newFront(false), newFakeRate()
	f.opts.Rate = rate
	k := begin(t, f, db)
	for i, step := range []struct{ request, want string }{
		{`s {"c":{}}`, "network"},
		{`auth {"cred":"wrong"}`, "network"},
		{`auth {"cred":"wrong"}`, "network"},
		{`p {"p":"/a","d":1}`, "network"},
		{`auth {"cred":"` + secret + `"}`, "network"},
		{`p {"p":"/a","d":1}`, "secret"},
		{`auth {"cred":"wrong"}`, "network"},
		{`g {"p":"/a","q":{}}`, "secret"},
		{`auth {"cred":"` + secret + `"}`, "secret"},
		{`unauth {}`, "secret"},
		{`q {"p":"/a","h":""}`, "network"},
	} {
		k.send(fmt.Sprintf("%d %s", i, step.request))
		for !strings.HasPrefix(shorten(k.next()), fmt.Sprint(i)) { // or a push
		}
		if got := rate.took[i]; len(rate.took) != i+1 || got != step.want {
			t.Errorf("request %d, %s, counts for %s, want %s", i, step.request, got, step.want)
		}
	}
	k.sendText(`{"t":"c","d":{"t":"p","d":{}}}`)
	if len(rate.took) != 11 {
		t.Errorf("%d requests were counted, want 11: a ping is none", len(rate.took))
	}
}

// TestRequestsWait: what is beyond the rate is not refused, it waits, until the session ends.
func TestRequestsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rate := newFakeRate()
		began := time.Now()
		free := began // when there is the next request
		rate.left, rate.wait = 3, func() time.Duration {
			if wait := time.Until(free); wait > 0 {
				return wait
			}
			free = free.Add(time.Second)
			return 0
		}
		s := &session{pace: newPace(rate, netip.Addr{})}
		s.ctx, s.cancel = context.WithCancel(t.Context())
		for i, want := range []time.Duration{0, 0, 0, 0, time.Second, 2 * time.Second} {
			if s.awaitTurn(&message.Request{}); time.Since(began) != want {
				t.Errorf("request %d is served after %v, want %v", i, time.Since(began), want)
			}
		}
		free = free.Add(time.Hour)
		done := make(chan struct{})
		go func() { defer close(done); s.awaitTurn(&message.Request{}) }()
		synctest.Wait()
		if !s.waits.Load() || (&socket{session: s}).isSilent() {
			t.Error("a client that is not read from counts as silent")
		}
		s.cancel()
		<-done
		if s.waits.Load() {
			t.Error("a session that has ended waits")
		}
	})
}

// TestManyWait: clients that wait for the same room look less and less often, and not for ever:
// what they sent is in memory meanwhile.
func TestManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		rate := newFakeRate()
		rate.left, rate.wait = 0, func() time.Duration { looks++; return time.Millisecond }
		k := &talk{}
		s := &session{pace: newPace(rate, netip.Addr{}), transport: k}
		s.begun.Store(true)
		s.taken.L = &s.mu
		s.ctx, s.cancel = context.WithCancel(t.Context())
		defer s.cancel()
		began := time.Now()
		if s.awaitTurn(&message.Request{}) || k.closed == "" || time.Since(began) != turnWait {
			t.Errorf("a client has waited for %v, and was closed by %q", time.Since(began), k.closed)
		}
		if looks > 40 {
			t.Errorf("a client has looked %d times in half a minute", looks)
		}
	})
}

// TestLoginsCountForTheirListens: a login has all listens of the client judged again, and counts so.
func TestLoginsCountForTheirListens(t *testing.T) {
	t.Parallel()
	db := enginetest.Open(t, store.Options{})
	db.Rule(`{"rules":{".read":true}}`)
	f, rate := newFront(false), newFakeRate()
	f.opts.Rate = rate
	k := begin(t, f, db)
	number := 0
	send := func(request string, want int) {
		t.Helper()
		before := len(rate.took)
		k.send(fmt.Sprintf("%d %s", number, request))
		for !strings.HasPrefix(shorten(k.next()), fmt.Sprint(number, " ")) { // or a push
		}
		if took := len(rate.took) - before; took != want {
			t.Errorf("%s counts for %d requests, want %d", request, took, want)
		}
		number++
	}
	send("unauth {}", 1)
	for i := range 200 {
		send(fmt.Sprintf(`q {"p":"/a/%d","h":""}`, i), 1)
	}
	send(`auth {"cred":"wrong"}`, 4)
	send("unauth {}", 4)
	send(`g {"p":"/a","q":{}}`, 1)
	for i := range 150 {
		send(fmt.Sprintf(`n {"p":"/a/%d"}`, i), 1)
	}
	send("unauth {}", 1)
}
