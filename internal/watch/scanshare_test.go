package watch_test

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// from makes a request that of a client at an address.
func from(last byte, req watch.Request) watch.Request {
	req.Client = budget.Client{Network: netip.AddrFrom4([4]byte{192, 0, 2, last}), Database: "db"}
	return req
}

// TestScansHaveShares: one client cannot take all memory for windows without an index.
func TestScansHaveShares(t *testing.T) {
	t.Parallel()
	bounds := scan.DefaultBounds()
	bounds.All = 4 << 20 // a client gets 1 MiB
	f, pool := withScans(t, store.Options{}, bounds)
	f.Do(`PUT /l {"a":{"n":1},"b":{"n":2}}`)
	begin := func(last byte, limit int) error {
		req := from(last, scanned(t, "/l", fmt.Sprintf(`orderBy="n"&limitToFirst=%d`, limit)))
		req.Wake = func() {}
		w, _, err := f.Watches().Open(req)
		if err == nil {
			t.Cleanup(w.Close)
		}
		return err
	}
	windows := 0
	for begin(1, windows+1) == nil {
		if windows++; windows > 2000 {
			t.Fatal("a client can have any number of windows")
		}
	}
	if used := pool.Used(); used > 1<<20 {
		t.Errorf("a client takes %d bytes, want at most a quarter of %d", used, bounds.All)
	}
	if err := begin(1, 5000); !errors.Is(err, scan.ErrFull) {
		t.Errorf("another window of a client with many: %v", err)
	}
	if err := begin(2, 5000); err != nil {
		t.Errorf("a window of another client: %v", err)
	}
	if err := begin(2, 1); err != nil {
		t.Errorf("a window of another client that is known: %v", err)
	}
}

// TestScanRetries: a watch whose window cannot be found for lack of memory goes on when
// there is some, and is told nothing wrong meanwhile.
func TestScanRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bounds := scan.DefaultBounds()
		bounds.Bytes, bounds.All = 1<<20, 1<<20 // a client gets 256 KiB
		f, pool := withScans(t, store.Options{}, bounds)
		f.Watches().BoundWindows(1000, 10) // so that watches look for their windows
		long := func(n int) string {
			var all strings.Builder
			for i := range n {
				fmt.Fprintf(&all, `,"%s%03d":{"n":1}`, strings.Repeat("k", 700), i)
			}
			return "{" + all.String()[1:] + "}"
		}
		f.Do(`PUT /l ` + long(10))
		w := f.Watch(from(1, scanned(t, "/l", `orderBy="n"&limitToFirst=2000`)))
		f.Do(`PUT /l ` + long(400)) // more than the share
		f.WaitForWatches()
		w.Expect()
		if used := pool.Used(); used > 256<<10 {
			t.Errorf("a window that has grown takes %d bytes of 256 KiB", used)
		}
		f.Do(`PATCH /l {"x":{"n":1}}`)
		f.WaitForWatches()
		w.Expect()
		time.Sleep(2 * watch.RetryWait) //nolint:forbidigo // fake time
		synctest.Wait()
		w.Expect() // as before
		f.Do(`PUT /l {"a":{"n":1}}`)
		time.Sleep(2 * watch.RetryWait) //nolint:forbidigo // fake time
		synctest.Wait()
		w.Expect(`first {"path":"/","data":{"a":{"n":1}}}`)
		f.Do(`PATCH /l {"b":{"n":2}}`)
		f.WaitForWatches()
		w.Expect(`patch {"path":"/","data":{"b":{"n":2}}}`)
		w.Close()
		if used := pool.Used(); used != 0 {
			t.Errorf("%d bytes are claimed when nobody watches", used)
		}
	})
}

// TestRefreshWithoutRoom: what a scan had found was given up, and there is no room for another one. The watch ends: as long as
// it is not told what is there, its client must not be told that all is well.
func TestRefreshWithoutRoom(t *testing.T) {
	t.Parallel()
	bounds := scan.DefaultBounds()
	bounds.Bytes, bounds.All = 1<<20, 1<<20 // a client gets 256 KiB
	f, pool := withScans(t, store.Options{}, bounds)
	f.Do(`PUT /l {"a":{"n":1}}`)
	req := from(1, scanned(t, "/l", `orderBy="n"&limitToFirst=2000`))
	refreshed, ended := f.Begin(req), f.Begin(req)
	refreshed.Refresh(false)
	refreshed.Expect(`first {"path":"/","data":{"a":{"n":1}}}`)
	ended.Refresh(false)
	var all strings.Builder
	for i := range 400 { // more than the share
		fmt.Fprintf(&all, `,"%s%03d":{"n":1}`, strings.Repeat("k", 700), i)
	}
	f.Do("PUT /l {" + all.String()[1:] + "}")
	ended.Expect("end")
	refreshed.Close()
	ended.Close()
	if used := pool.Used(); used != 0 {
		t.Errorf("%d bytes are claimed when nobody watches", used)
	}
}

// TestManyWindowsHoldUpNobody: many windows on one node, and writes that change many of
// its children, take the dispatcher a bounded time. Plain watches are told first, and the
// windows are right in the end.
func TestManyWindowsHoldUpNobody(t *testing.T) {
	t.Parallel()
	seed := mathrand.Uint64()
	t.Logf("seed %d", seed)
	rng := mathrand.New(mathrand.NewPCG(seed, 0))
	for _, most := range []int{0, 20, 300} {
		f, _ := withScans(t, store.Options{}, scan.DefaultBounds())
		f.Watches().BoundMoving(most)
		plain := f.Watch(whole(t, "/l"))
		m := scanModel{T: t, rng: rng, databases: []*fixture{f}}
		for range 20 {
			m.watch()
		}
		for range 20 {
			m.step()
			plain.Events()
			if moving := f.Watches().Moving(); moving > 20*2*1000 {
				t.Fatalf("seed %d: the dispatcher read %d children for a delivery", seed, moving)
			}
		}
		for _, w := range m.mirrors {
			w.Close()
		}
	}
}

// TestWindowsBeyondTheBound are found by their watches, and told whole.
func TestWindowsBeyondTheBound(t *testing.T) {
	t.Parallel()
	f, _ := withScans(t, store.Options{}, scan.DefaultBounds())
	f.Watches().BoundMoving(12)
	f.Do(`PUT /l {"a":{"n":1},"b":{"n":2}}`)
	var windows []*enginetest.Watcher
	for i := range 10 {
		windows = append(windows, f.Watch(scanned(t, "/l", fmt.Sprintf(`orderBy="n"&limitToFirst=%d`, i+5))))
	}
	plain := f.Watch(whole(t, "/l"))
	f.Do(`PUT /l/a/n 3`)
	f.WaitForWatches()
	plain.Expect(`put {"path":"/a/n","data":3}`)
	moved, again := 0, 0
	for _, w := range windows {
		switch events := strings.Join(w.Events(), " "); {
		case strings.HasPrefix(events, "first") && strings.Contains(events, `{"a":{"n":3},"b":{"n":2}}`):
			again++
		case strings.HasPrefix(events, "put") || strings.HasPrefix(events, "patch"):
			moved++
		default:
			t.Errorf("a window is told %s", events)
		}
	}
	if moved != 4 || again != 6 { // each takes 3
		t.Errorf("%d windows were moved and %d found again, want 4 and 6", moved, again)
	}
}

// TestKnownWithoutMemory: what a client has is not worked out if there is no memory for
// that. Everything is told.
func TestKnownWithoutMemory(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	long := strings.Repeat("x", 1000)
	f.Do(`PUT /l {"a":"` + long + `","b":2}`)
	same, other := sha1.Sum([]byte(`("a":(string:"`+long+`"))`)), sha1.Sum(nil)
	hash := base64.StdEncoding.EncodeToString
	c, ok := sdkhash.NewCompound([]string{hash(same[:]), hash(other[:]), ""}, []string{"a", "b"})
	if !ok {
		t.Fatal("the hash is malformed")
	}
	for _, full := range []bool{false, true} {
		memory := budget.New(budget.Options{Limit: 4 << 20})
		if full {
			memory = budget.New(budget.Options{Limit: 1})
			memory.Claim(budget.Client{}, true).Grow(256 << 10)
		}
		before := memory.Taken()
		req := whole(t, "/l")
		req.Known, req.Memory, req.Form = &watch.Known{Hash: "x", Compound: &c}, memory, tree.Export
		w := f.Begin(req)
		held := memory.Taken() - before
		e, ok := w.Next()
		if !ok || (e.Kind == watch.Ranges) == full || (held > 0) == full {
			t.Errorf("full: %t: the first event is %+v, and %d bytes are held", full, e, held)
		}
		if e.Content != nil {
			_ = e.Content.Close()
		}
		w.Next()
		if left := memory.Taken() - before; left != 0 {
			t.Errorf("full: %t: %d bytes are never given back", full, left)
		}
	}
}
