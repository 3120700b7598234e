package engine_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A fixture is a database in a store in memory.
type fixture struct {
	t     testing.TB
	store *store.Store
	clock *engine.Clock
	*engine.Database
}

func open(t testing.TB, opts store.Options) *fixture {
	t.Helper()
	if opts.FS == nil {
		opts.FS = vfs.NewMem()
	}
	s, err := store.Open("data", opts)
	if err != nil {
		t.Fatal(err)
	}
	id, found, err := s.Find("db")
	if !found && err == nil {
		id, err = s.Create("db")
	}
	if err != nil {
		t.Fatal(err)
	}
	now := opts.Now
	if now == nil {
		now = time.Now
	}
	f := &fixture{t: t, store: s, clock: engine.NewClock(now, rand.Reader, s.LastMillis())}
	if f.Database, err = engine.Open(s, id, engine.Options{Clock: f.clock}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f
}

// admin is whom rules do not concern.
var admin = auth.Identity{Admin: true}

func (f *fixture) close() {
	f.Database.Close()
	if err := f.store.Close(); err != nil {
		f.t.Errorf("close the store: %v", err)
	}
}

func path(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (f *fixture) put(at, body string) engine.Commit {
	f.t.Helper()
	w, err := put(path(f.t, at), body)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.write(engine.Request{Write: w})
}

func (f *fixture) patch(at, body string) engine.Commit {
	f.t.Helper()
	w, err := tree.DecodePatch(strings.NewReader(body), path(f.t, at), tree.DecodeOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return f.write(engine.Request{Write: w})
}

func (f *fixture) write(req engine.Request) engine.Commit {
	f.t.Helper()
	req.Who = admin
	commit, err := f.Write(context.Background(), req)
	if err != nil {
		f.t.Fatalf("Write(%s) = %v", req.At, err)
	}
	return commit
}

// export returns a node as format=export shows it.
func (f *fixture) export(at string) string {
	f.t.Helper()
	s := f.Snapshot()
	printer, err := s.Printer(path(f.t, at), tree.Export)
	s.Close() // a printer needs no view
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = printer.Close() }()
	var text bytes.Buffer
	if err := printer.PrintTo(&text); err != nil {
		f.t.Fatal(err)
	}
	return text.String()
}

// everyLimit runs a test with rows of single leaves, small chunks and large ones.
func everyLimit(t *testing.T, test func(t *testing.T, f *fixture)) {
	for name, limit := range map[string]int{"leaves": -1, "small": 24, "large": 4096} {
		t.Run(name, func(t *testing.T) { test(t, open(t, store.Options{ChunkBytes: limit})) })
	}
}

func TestPatchThatReplacesTheOnlyChildKeepsThePriority(t *testing.T) {
	everyLimit(t, func(t *testing.T, f *fixture) {
		f.put("a", `{".priority":5,"b":1}`)
		f.patch("a", `{"b":null,"c":3}`)
		if got, want := f.export("a"), `{".priority":5,"c":3}`; got != want {
			t.Errorf("after the PATCH /a is %s, want %s", got, want)
		}
	})
}
