package watch_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

// TestLaterEachTime: a watch whose first event cannot be sent tries less and less often, until
// something was sent.
func TestLaterEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t, store.Options{})
		woken := make(chan struct{}, 10)
		req := whole(t, "/a")
		req.Wake = func() { woken <- struct{}{} }
		w := f.Begin(req)
		w.Expect(`first {"path":"/","data":null}`)
		wait := func() time.Duration {
			began := time.Now()
			w.Later()
			for {
				<-woken
				if e, ok := w.Next(); ok {
					_ = e.Content.Close()
					return time.Since(began)
				}
			}
		}
		for _, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
			if got := wait(); got != want*time.Second {
				t.Errorf("it was told again after %v, want %ds", got, want)
			}
		}
		w.Expect() // the last one was sent
		if got := wait(); got != watch.RetryWait {
			t.Errorf("after something was sent it waits for %v", got)
		}
	})
}

// TestCancelWhileStuck: a watch that waits because something could not be sent is told at once that it is over.
func TestCancelWhileStuck(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	f.Rule(`{"rules":{".read":true}}`)
	w := f.Watch(as(auth.Identity{}, whole(t, "/a")))
	w.Later()
	f.Do(`PUT /a 1`)
	w.Expect()
	f.Rule(`{"rules":{}}`)
	w.Expect("cancel")
}

// TestHashesOfTheGone: a client that is gone does not wait until the hashes of its place are
// worked out for another one.
func TestHashesOfTheGone(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	f.Do(`PUT /a {"b":1}`)
	w := f.Watch(whole(t, "/a"))
	release := w.HoldHashes()
	done := make(chan struct{})
	req := whole(t, "/a")
	req.Known, req.Wake, req.Done = &watch.Known{Hash: "x"}, func() {}, done
	ended := make(chan error)
	go func() {
		_, _, err := f.Watches().Open(req)
		ended <- err
	}()
	close(done)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a client that is gone watches")
		}
	case <-time.After(10 * time.Second):
		t.Error("a client that is gone waits for hashes")
	}
	release()
}

// TestBacklogCounts: what a watch that goes on by the change log holds counts. If there is no memory
// for it, what is there is told, which is printed as it is sent.
func TestBacklogCounts(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		f := open(t, store.Options{})
		behind := f.Do(`PUT /a {"x":1}`).Position
		for i := range 10 {
			f.Do(fmt.Sprintf(`PUT /a/%d "%s"`, i, strings.Repeat("x", 30<<10)))
		}
		memory := budget.New(budget.Options{Limit: 4 << 20})
		client := budget.Client{Network: netip.MustParseAddr("192.0.2.1"), Database: "d"}
		other := memory.Claim(client, true)
		if full {
			other.Grow(250 << 10)
			memory.Claim(budget.Client{Admin: true}, false).Grow(4<<20 - 250<<10)
		}
		req := as(auth.Identity{Admin: true}, whole(t, "/a"))
		req.Resume, req.Behind, req.Client, req.Memory = true, behind, client, memory
		before := memory.Taken()
		w := f.Begin(req)
		if held := memory.Taken() - before; (held > 200<<10) == full || full && held != 0 {
			t.Errorf("full: %t: %d bytes are held", full, held)
		}
		got := w.Events()
		if first := strings.HasPrefix(got[0], "first"); first != full || !full && len(got) != 10 {
			t.Errorf("full: %t: %d events, of which the first is %.30s", full, len(got), got[0])
		}
		if held := memory.Taken() - before; held != 0 {
			t.Errorf("full: %t: %d bytes are never given back", full, held)
		}
	}
}
