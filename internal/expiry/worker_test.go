package expiry_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/expiry"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

const sessionRules = `{"rules":{"sessions":{".expireOn":"t"}}}`

// A server is a store with a worker, whose clock stands still.
type server struct {
	t       *testing.T
	fs      vfs.FS
	millis  *atomic.Int64
	store   *store.Store
	catalog *catalog.Catalog
	worker  *expiry.Worker
	fails   atomic.Int64
}

func start(t *testing.T, fs vfs.FS, millis *atomic.Int64) *server {
	t.Helper()
	now := func() time.Time { return time.UnixMilli(millis.Load()) }
	opened, err := store.Open("data", store.Options{FS: fs, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, fs: fs, millis: millis, store: opened}
	clock := state.NewClock(now, rand.Reader, opened.LastMillis())
	s.worker = expiry.New(clock, slog.New(slog.DiscardHandler), func() { s.fails.Add(1) })
	s.catalog = catalog.New(opened, engine.Options{Clock: clock, Observers: &state.Observers{Due: s.worker.Note}, Deadline: enginetest.Unhurried})
	return s
}

func (s *server) run() { s.worker.Start(s.catalog, s.catalog.Due) }

func (s *server) stop() {
	s.t.Helper()
	s.worker.Close()
	s.catalog.Close()
	if err := s.store.Close(); err != nil {
		s.t.Error(err)
	}
}

func (s *server) create(name string) {
	s.t.Helper()
	d, err := s.catalog.Create(name)
	if err == nil {
		_, err = d.SetRules(context.Background(), sessionRules)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) exists(name, at string) bool {
	s.t.Helper()
	d, err := s.catalog.Database(name)
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := tree.ParsePath(at)
	if err != nil {
		s.t.Fatal(err)
	}
	v := d.View()
	defer v.Close()
	exists, err := v.Tree().Exists(p)
	if err != nil {
		s.t.Fatal(err)
	}
	return exists
}

// gone waits until there is nothing at a path.
func (s *server) gone(name, at string) {
	s.t.Helper()
	if !soon(func() bool { return !s.exists(name, at) }) {
		s.t.Fatalf("%s of %s is still there", at, name)
	}
}

// soon waits until something is so, and says whether it is.
func soon(isSo func() bool) bool {
	for range 6000 {
		if isSo() {
			return true
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the worker has goroutines of its own
	}
	return false
}

func TestWorkerDeletesWhatIsDue(t *testing.T) {
	t.Parallel()
	var millis atomic.Int64
	millis.Store(1_000_000)
	fs := vfs.NewMem()
	s := start(t, fs, &millis)
	for i := range 5 {
		s.create(fmt.Sprint("db", i))
	}
	s.run()
	admin(t, s, "db0", "sessions/a", `{"t":1000500}`)
	admin(t, s, "db0", "sessions/b", `{"t":1000600}`)
	admin(t, s, "db1", "sessions/a", `{"t":999999}`)
	s.gone("db1", "sessions/a")
	if !s.exists("db0", "sessions/a") {
		t.Fatal("a child went before its time")
	}
	millis.Store(1_000_500) // nobody tells the worker that the clock was set
	s.gone("db0", "sessions/a")
	if !s.exists("db0", "sessions/b") {
		t.Fatal("another child went before its time")
	}
	admin(t, s, "db2", "sessions/a", `{"t":1002000}`)
	millis.Store(1_000_100) // back
	s.stop()

	millis.Store(1_003_000)
	s = start(t, fs, &millis) // what came due while it was down
	s.run()
	defer s.stop()
	s.gone("db0", "sessions/b")
	s.gone("db2", "sessions/a")
	// A database is late until its worker has seen that nothing more is due.
	isCalm := func() bool { databases, by := s.worker.Late(); return databases == 0 && by == 0 }
	if !soon(isCalm) || s.fails.Load() != 0 {
		databases, by := s.worker.Late()
		t.Errorf("%d databases are late by %v, and %d steps failed", databases, by, s.fails.Load())
	}
}

// admin writes as one whom rules do not concern.
func admin(t *testing.T, s *server, name, at, body string) {
	t.Helper()
	d, err := s.catalog.Database(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := tree.ParsePath(at)
	if err != nil {
		t.Fatal(err)
	}
	n, err := tree.Decode(strings.NewReader(body), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(context.Background(), engine.Request{Write: tree.Put(p, n), Who: auth.Identity{Admin: true}}); err != nil {
		t.Fatal(err)
	}
}

// failing opens databases that cannot be opened, until it is mended.
type failing struct {
	expiry.Databases
	broken atomic.Bool
}

func (f *failing) Database(name string) (*engine.Database, error) {
	if f.broken.Load() {
		return nil, errors.New("the disk is full")
	}
	return f.Databases.Database(name)
}

func TestWorkerTriesAgain(t *testing.T) {
	t.Parallel()
	var millis atomic.Int64
	millis.Store(1_000_000)
	s := start(t, vfs.NewMem(), &millis)
	defer s.stop()
	s.create("db")
	databases := &failing{Databases: s.catalog}
	databases.broken.Store(true)
	s.worker.Start(databases, s.catalog.Due)
	admin(t, s, "db", "sessions/a", `{"t":1}`)
	if !soon(func() bool { return s.fails.Load() > 0 }) {
		t.Fatal("no step failed")
	}
	millis.Add(5000)
	if n, by := s.worker.Late(); n != 1 || by < 4*time.Second || by > 5*time.Second {
		t.Errorf("%d databases are late by %v, want 1, since it was written", n, by)
	}
	millis.Add(-3600_000) // waits go on while the clock that rules see stands still
	databases.broken.Store(false)
	s.gone("db", "sessions/a")
}

// TestWorkerForgets drops databases in which something was to expire later.
func TestWorkerForgets(t *testing.T) {
	t.Parallel()
	var millis atomic.Int64
	millis.Store(1_000_000)
	s := start(t, vfs.NewMem(), &millis)
	defer s.stop()
	s.run()
	for i := range 5 {
		name := fmt.Sprint("db", i)
		s.create(name)
		admin(t, s, name, "sessions/a", `{"t":1e15}`)
	}
	if n := s.worker.Known(); n != 5 {
		t.Fatalf("%d databases are known in which something expires", n)
	}
	for i := range 4 {
		if err := s.catalog.Drop(fmt.Sprint("db", i)); err != nil {
			t.Fatal(err)
		}
	}
	for tries := 0; s.worker.Known() != 1; tries++ {
		if tries == 1000 {
			t.Fatalf("%d databases are known after 4 of 5 were dropped", s.worker.Known())
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the worker has goroutines of its own
	}
}
