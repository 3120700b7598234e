package deliver_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// secret is that of all hooks of tests.
const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// A site is a server's databases and its runner, on a file system in memory.
type site struct {
	t      testing.TB
	store  *store.Store
	bases  *bases
	runner *deliver.Runner
	stop   context.CancelFunc
	done   chan struct{}
}

// bases are a catalog that may be slow to forget a database.
type bases struct {
	*catalog.Catalog
	stale atomic.Pointer[engine.Database]
}

// Database implements deliver.Databases.
func (b *bases) Database(name string) (*engine.Database, error) {
	if d := b.stale.Load(); d != nil {
		return d, nil
	}
	return b.Catalog.Database(name)
}

// A receiver answers deliveries.
type receiver func(*http.Request, delivery) (status int, header http.Header)

// A delivery is the body of one.
type delivery struct {
	ID, Hook, Database, Path, Event string
	Params                          map[string]string
	Before, After                   json.RawMessage
	BeforeCut                       bool `json:"before_cut"`
	AfterCut                        bool `json:"after_cut"`
	Position, First, Last           uint64
	Time                            int64
	Who                             *struct{ By, UID string }
}

// RoundTrip implements http.RoundTripper.
func (f receiver) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var d delivery
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, err
	}
	status, header := f(r, d)
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("answer"))}, nil
}

// open opens a server's databases and begins to deliver to a receiver.
func open(t testing.TB, fs vfs.FS, limits deliver.Limits, engineLimits *engine.Limits, to receiver) *site {
	t.Helper()
	return openAt(t, fs, limits, engineLimits, to, time.Now)
}

// openAt is open with a clock that may be set.
func openAt(t testing.TB, fs vfs.FS, limits deliver.Limits, engineLimits *engine.Limits, to receiver, now func() time.Time) *site {
	t.Helper()
	s, err := store.Open("data", store.Options{FS: fs, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	x := &site{t: t, store: s, done: make(chan struct{})}
	var observers state.Observers
	x.bases = &bases{Catalog: catalog.New(s, engine.Options{
		Clock: state.NewClock(now, rand.Reader, s.LastMillis()), Observers: &observers, Limits: engineLimits,
	})}
	guard, err := deliver.NewGuard(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.runner = deliver.New(deliver.Options{
		Databases: x.bases, Guard: guard, Now: now, Elapsed: elapsed(), Logger: slog.New(slog.DiscardHandler), Limits: limits, Transport: to,
	})
	observers.Hooked = x.runner.Hooked
	ctx, stop := context.WithCancel(t.Context())
	x.stop = stop
	go func() {
		defer close(x.done)
		x.runner.Run(ctx)
	}()
	return x
}

// elapsed returns a clock that is never set.
func elapsed() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// close stops the server in order.
func (x *site) close() {
	x.stop()
	<-x.done
	x.bases.Close()
	if err := x.store.Close(); err != nil {
		x.t.Error(err)
	}
}

// database returns a database, which is made if there is none.
func (x *site) database(name string) *engine.Database {
	x.t.Helper()
	d, err := x.bases.Database(name)
	if err != nil {
		d, err = x.bases.Create(name)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return d
}

// add adds a hook.
func add(t testing.TB, d *engine.Database, name, path string, events ...string) *hook.Hook {
	t.Helper()
	pattern, err := hook.ParsePattern(path)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := hook.ParseEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	h, err := engine.AddHook(t.Context(), d, hook.Hook{Name: name, Pattern: pattern, URL: "https://example.com/in", Events: wanted, Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// put writes a node.
func put(t testing.TB, d *engine.Database, path, text string) {
	t.Helper()
	p, err := tree.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(t.Context(), engine.Request{Write: tree.Put(p, n), Who: auth.Identity{Admin: true}}); err != nil {
		t.Fatal(err)
	}
}

func TestDelivers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		x := open(t, vfs.NewMem(), deliver.DefaultLimits(), nil, func(r *http.Request, d delivery) (int, http.Header) {
			mu.Lock()
			defer mu.Unlock()
			if r.Header.Get("Webhook-Id") != d.ID || !strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1,") {
				t.Errorf("headers %v of %+v", r.Header, d)
			}
			got = append(got, strings.Join([]string{d.Hook, d.Path, d.Params["id"], d.Event, string(d.Before), string(d.After)}, " "))
			return http.StatusOK, nil
		})
		defer x.close()
		d := x.database("shop")
		add(t, d, "orders", "/orders/$id")
		for _, write := range []struct{ path, text, want string }{
			{"/orders/1", `{"n":1}`, `orders /orders/1 1 create null {"n":1}`},
			{"/orders/1/n", `2`, `orders /orders/1 1 update {"n":1} {"n":2}`},
			{"/orders/1/n", `2`, ``},
			{"/other", `2`, ``},
			{"/", `{"orders":{"1":{"n":2},"2":5}}`, `orders /orders/2 2 create null 5`},
			{"/orders", `null`, "orders /orders/1 1 delete {\"n\":2} null\norders /orders/2 2 delete 5 null"},
		} {
			put(t, d, write.path, write.text)
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			mu.Lock()
			list := strings.Join(got, "\n")
			got = nil
			mu.Unlock()
			if list != write.want && list != swapped(write.want) {
				t.Errorf("after PUT %s %s was delivered\n%s\nwant\n%s", write.path, write.text, list, write.want)
			}
		}
	})
}

// swapped returns two lines in the other order: what is of different locations has none.
func swapped(text string) string {
	first, second, _ := strings.Cut(text, "\n")
	return second + "\n" + first
}
