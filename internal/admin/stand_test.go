package admin_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/session"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

const credential = "the-credential-of-the-operator-in-tests!"

// A stand is a handler over a store in memory, whose clock the test holds.
type stand struct {
	t        *testing.T
	store    *store.Store
	catalog  *catalog.Catalog
	requests *admin.Requests
	handler  *admin.Handler
	front    *rest.Handler
	nanos    atomic.Int64 // of the clock
	disk     disk
	// observers are told what happens in databases.
	observers state.Observers
	// holdSync, if set, is called before a sync.
	holdSync atomic.Pointer[func()]
}

// now is the clock.
func (s *stand) now() time.Time { return time.Unix(1_700_000_000, s.nanos.Load()) }

func (s *stand) advance(d time.Duration) { s.nanos.Add(int64(d)) }

func newStand(t *testing.T, change func(*admin.Options)) *stand {
	t.Helper()
	s := &stand{t: t, requests: admin.NewRequests()}
	s.disk.FS = vfs.NewMem()
	s.disk.free.Store(1 << 40)
	var err error
	s.store, err = store.Open("data", store.Options{FS: &s.disk, Now: s.now, SlowSync: func() {
		if hold := s.holdSync.Load(); hold != nil {
			(*hold)()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	metrics := &state.Metrics{}
	verifier, err := auth.New(auth.Options{Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	s.catalog = catalog.New(s.store, engine.Options{
		Clock: state.NewClock(s.now, rand.Reader, 0), Metrics: metrics, Verifier: verifier, Observers: &s.observers, Deadline: patience,
	})
	t.Cleanup(func() {
		s.catalog.Close()
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	opts := admin.Options{
		Credential: credential,
		Store:      s.store,
		Catalog:    s.catalog,
		Requests:   s.requests,
		Engine:     metrics,
		Now:        s.now,
		Logger:     slog.New(slog.DiscardHandler),
		Version:    "v1.2.3",
	}
	if opts.Sessions, err = session.Open(session.Options{
		Credential: credential, File: filepath.Join(t.TempDir(), "ended.json"), Now: s.now}); err != nil {
		t.Fatal(err)
	}
	streams := outbox.New(outbox.Options{MaxStreams: 100})
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		streams.Close(ended)
	})
	opts.Front = rest.New(rest.Options{
		Catalog: s.catalog, Logger: opts.Logger, Now: s.now, Streams: streams, MaxBody: 1 << 20, MaxBodies: 1 << 24,
		Operations: rest.NewOperations(),
	})
	if change != nil {
		change(&opts)
	}
	s.front = opts.Front
	s.handler = admin.New(opts)
	return s
}

// A disk is one of which the test says how much is free.
type disk struct {
	vfs.FS
	free atomic.Uint64
}

func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load(), TotalBytes: 1 << 41, UsedBytes: 1<<41 - d.free.Load()}, nil
}

// database makes one with a commit.
func (s *stand) database(name string) *engine.Database {
	s.t.Helper()
	d, err := s.catalog.Create(name)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.write(d); err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *stand) write(d *engine.Database) error {
	node, err := tree.Decode(strings.NewReader(`{"a":1}`), tree.DecodeOptions{})
	if err != nil {
		return err
	}
	_, err = d.Write(context.Background(), engine.Request{Write: tree.Put(tree.Path{}, node), Who: auth.Identity{Admin: true}})
	return err
}

// get asks with the credential.
func (s *stand) get(path string) (int, string) {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	r.Header.Set("Authorization", "Bearer "+credential)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	text, err := io.ReadAll(w.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return w.Code, string(text)
}
