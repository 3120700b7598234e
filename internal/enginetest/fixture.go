// Package enginetest opens databases for the tests of packages engine and watch, and
// says in few words what is done to them.
package enginetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A Fixture is a database in a store in memory.
type Fixture struct {
	T     testing.TB
	Store *store.Store
	Clock *state.Clock
	*engine.Database
}

// Open opens the database of a store, which is made if it is not there. It is closed
// when the test ends.
func Open(t testing.TB, opts store.Options) *Fixture {
	t.Helper()
	if opts.FS == nil {
		opts.FS = vfs.NewMem()
	}
	s := openStore(t, opts)
	now := opts.Now
	if now == nil {
		now = time.Now //nolint:forbidigo // a test that needs another gives it
	}
	f := &Fixture{T: t, Store: s}
	f.open(engine.Options{Clock: state.NewClock(now, rand.Reader, s.LastMillis())})
	t.Cleanup(f.CloseAll)
	return f
}

// openStore opens a store with a database, which is made if it is not there.
func openStore(t testing.TB, opts store.Options) *store.Store {
	t.Helper()
	s, err := store.Open("data", opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := s.Find("db"); !found && err == nil {
		_, err = s.Create("db")
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// open opens the database. Its writes are unhurried if opts do not say otherwise.
func (f *Fixture) open(opts engine.Options) {
	f.T.Helper()
	opts.Deadline = cmp.Or(opts.Deadline, Unhurried)
	id, _, err := f.Store.Find("db")
	if err != nil {
		f.T.Fatal(err)
	}
	f.Clock = opts.Clock
	if f.Database, err = OpenDatabase(f.Store, id, opts); err != nil {
		f.T.Fatal(err)
	}
}

// Reopen closes the database, and opens it with other options.
func (f *Fixture) Reopen(opts engine.Options) {
	f.T.Helper()
	f.Database.Close()
	f.open(opts)
}

// CloseAll closes the database and its store.
func (f *Fixture) CloseAll() {
	f.Database.Close()
	if err := f.Store.Close(); err != nil {
		f.T.Errorf("close the store: %v", err)
	}
}

// Admin is whom rules do not concern.
var Admin = auth.Identity{Admin: true}

// User is somebody whom rules see as a variable.
func User(t testing.TB, variable string) auth.Identity {
	t.Helper()
	n, err := tree.Decode(strings.NewReader(variable), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return auth.Identity{Auth: n}
}

// Path parses a path.
func Path(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Put replaces what is at a path, as the administrator.
func (f *Fixture) Put(at, body string) engine.Commit {
	f.T.Helper()
	w, err := DecodePut(Path(f.T, at), body)
	if err != nil {
		f.T.Fatal(err)
	}
	return f.Commit(engine.Request{Write: w})
}

// Patch replaces children of what is at a path, as the administrator.
func (f *Fixture) Patch(at, body string) engine.Commit {
	f.T.Helper()
	w, err := tree.DecodePatch(strings.NewReader(body), Path(f.T, at), tree.DecodeOptions{})
	if err != nil {
		f.T.Fatal(err)
	}
	return f.Commit(engine.Request{Write: w})
}

// Do makes a request that is written like PATCH /a {"b":1}, as the administrator.
func (f *Fixture) Do(request string) engine.Commit {
	f.T.Helper()
	req, err := ParseRequest(request)
	if err != nil {
		f.T.Fatalf("%s: %v", request, err)
	}
	return f.Commit(req)
}

// Commit writes as the administrator.
func (f *Fixture) Commit(req engine.Request) engine.Commit {
	f.T.Helper()
	req.Who = Admin
	commit, err := f.Write(context.Background(), req)
	if err != nil {
		f.T.Fatalf("Write(%s) = %v", req.At, err)
	}
	return commit
}

// Rule sets the rules document.
func (f *Fixture) Rule(document string) {
	f.T.Helper()
	if _, err := f.SetRules(context.Background(), document); err != nil {
		f.T.Fatal(err)
	}
}

// Export returns a node as format=export shows it.
func (f *Fixture) Export(at string) string {
	f.T.Helper()
	v := f.View()
	printer, err := v.Printer(Path(f.T, at), tree.Export)
	v.Close() // a printer needs no view
	if err != nil {
		f.T.Fatal(err)
	}
	defer func() { _ = printer.Close() }()
	var text bytes.Buffer
	if err := printer.PrintTo(&text); err != nil {
		f.T.Fatal(err)
	}
	return text.String()
}

// EveryLimit runs a test with rows of single leaves, small chunks and large ones.
func EveryLimit(t *testing.T, test func(t *testing.T, f *Fixture)) {
	for name, limit := range map[string]int{"leaves": -1, "small": 24, "large": 4096} {
		t.Run(name, func(t *testing.T) { test(t, Open(t, store.Options{ChunkBytes: limit})) })
	}
}
