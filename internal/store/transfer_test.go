package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/transfer"
	"github.com/livetree/livetree/internal/tree"
)

// exported returns the rows of a base, a line for each, and its databases.
func exported(t testing.TB, s *Store) (rows []string, databases []transfer.Database) {
	t.Helper()
	view := s.View()
	defer view.Release()
	source := view.Tree(0).Reader().Source
	err := errors.Join(
		transfer.Export(source, nil, func(key, value []byte) error {
			rows = append(rows, fmt.Sprintf("%x %x", key, value))
			return nil
		}),
		transfer.Databases(source, func(d transfer.Database) error {
			databases = append(databases, d)
			return nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return rows, databases
}

// load fills a new store with what another one holds.
func load(t testing.TB, from *Store, tableBytes uint64) *Store {
	t.Helper()
	into := openStand(t, Options{ChunkBytes: from.opts.ChunkBytes})
	if err := into.Drop("db"); err != nil {
		t.Fatal(err)
	}
	l, err := NewLoader(into.Store)
	if err != nil {
		t.Fatal(err)
	}
	l.TableBytes = tableBytes
	view := from.View()
	defer view.Release()
	source := view.Tree(0).Reader().Source
	err = errors.Join(
		transfer.Export(source, nil, l.Add),
		transfer.Databases(source, l.Name),
		l.Finish(0, 0),
	)
	if err != nil {
		t.Fatal(err)
	}
	fs := into.opts.FS
	into.close()
	s, err := Open("data", Options{FS: fs, ChunkBytes: from.opts.ChunkBytes, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fillForTransfer gives a store databases with all kinds of rows.
func fillForTransfer(t testing.TB, s *stand) {
	t.Helper()
	other := useDatabase(t, s.Store, "other")
	gone := useDatabase(t, s.Store, "gone")
	gone.put("a", `{"b":"c"}`)
	if err := s.Drop("gone"); err != nil {
		t.Fatal(err)
	}
	useDatabase(t, s.Store, "empty")
	s.indexes = layout.IndexesAt(parsePath(t, "a"), layout.Index{Number: 1, Order: query.ByValue()})
	for i := range 40 {
		s.put(fmt.Sprintf("a/k%03d", i), fmt.Sprintf("%q", strings.Repeat("x", i)))
		other.put(fmt.Sprintf("b/%d", i), fmt.Sprintf(`{".value":%d,".priority":%d}`, i, 40-i))
	}
	s.commit(priorityWrite(t, "a/k007", 3)) // leaves an index to be built
	b, err := s.BuildSettings(s.Live(s.id), tree.Change{Position: s.position + 1, Millis: s.opts.Now().UnixMilli()}, Settings{"rules": []byte("{}"), "secrets": []byte("one\ntwo")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(visible)
	if err := s.Commit(b, done); err != nil {
		t.Fatal(err)
	}
	s.position++
	<-done
	s.leave(LeftRow{Connection: "-NaPZTEST0000000000a", Number: 1, Value: []byte("left")})
}

// TestTransfer: a store that was loaded has the rows of the other one, and goes on
// from its positions.
func TestTransfer(t *testing.T) {
	t.Parallel()
	for _, tableBytes := range []uint64{1, 500, 64 << 20} {
		s := newStand(t, Options{ChunkBytes: 24, PriorityRows: 5})
		fillForTransfer(t, s)
		wantRows, wantDatabases := exported(t, s.Store)
		loaded := load(t, s.Store, tableBytes)
		rows, databases := exported(t, loaded)
		if got, want := strings.Join(rows, "\n"), strings.Join(wantRows, "\n"); got != want {
			t.Fatalf("tables of %d bytes: the rows are\n%s\nwant\n%s", tableBytes, got, want)
		}
		if got, want := fmt.Sprint(databases), fmt.Sprint(wantDatabases); got != want {
			t.Errorf("the databases are %s, want %s", got, want)
		}
		if loaded.Epoch() == s.Epoch() {
			t.Error("the epoch is that of the other store")
		}
		copied := useDatabase(t, loaded, "db")
		if copied.position != s.position || copied.id != s.id {
			t.Errorf("db has number %d and position %d, want %d and %d", copied.id, copied.position, s.id, s.position)
		}
		copied.expect("", s.export(""))
		copied.put("a/new", "1")
		if id, err := loaded.Create("another"); err != nil || id < 4 {
			t.Errorf("Create gives the number %d, %v", id, err)
		}
		view := loaded.View()
		err := inspect.CheckLog(view.Tree(copied.id).Reader(), loaded.opts.Now().UnixMilli(), func(f inspect.Flaw) bool {
			t.Errorf("the log: %v", f)
			return true
		})
		view.Release()
		if err != nil {
			t.Error(err)
		}
	}
}

// TestLoaderRefuses: rows that no base has are not loaded.
func TestLoaderRefuses(t *testing.T) {
	t.Parallel()
	s := newStand(t, Options{})
	data := layout.DataKey(nil, 1, parsePath(t, "a"))
	for name, keys := range map[string][][]byte{
		"twice":    {data, data},
		"backward": {data, layout.DataPrefix(1)},
		"short":    {{layout.SpaceData, 0}},
		"empty":    {{}},
		"metadata": {layout.FormatKey},
		"log":      {layout.LogKey(nil, 1, 1)},
		"left":     {layout.LeftKey(1, "-NaPZTEST0000000000a", 1)},
	} {
		l, err := NewLoader(s.Store)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			err = errors.Join(err, l.Add(key, []byte("00")))
		}
		if !errors.Is(err, transfer.ErrOrder) && !errors.Is(err, layout.ErrMalformedKey) {
			t.Errorf("%s: Add = %v, want a refusal", name, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCreateAs: databases keep their numbers, in whatever order they come.
func TestCreateAs(t *testing.T) {
	t.Parallel()
	s := newStand(t, Options{})
	for _, id := range []ID{7, 3, 5} {
		if err := CreateAs(s.Store, fmt.Sprint("db", id), id); err != nil {
			t.Fatal(err)
		}
		if got, found, err := s.Find(fmt.Sprint("db", id)); got != id || !found || err != nil {
			t.Errorf("Find(db%d) = %d, %v, %v", id, got, found, err)
		}
	}
	if id, err := s.Create("next"); id != 8 || err != nil {
		t.Errorf("Create gives %d, %v, want 8", id, err)
	}
}

func TestHideSecrets(t *testing.T) {
	t.Parallel()
	key := []byte("a key")
	hidden := transfer.HideSecrets(key, []byte("one\ntwo"))
	if bytes.Contains(hidden, []byte("one")) || !transfer.AreHidden(hidden) || transfer.AreHidden([]byte("one\ntwo")) {
		t.Errorf("hidden secrets are %q", hidden)
	}
	if again := transfer.HideSecrets(key, hidden); !bytes.Equal(again, hidden) {
		t.Errorf("hidden twice they are %q, want %q", again, hidden)
	}
	if other := transfer.HideSecrets(key, []byte("one\nthree")); bytes.Equal(other, hidden) || !bytes.Equal(other[:65], hidden[:65]) {
		t.Errorf("one secret of two changed: %q, before %q", other, hidden)
	}
	if none := transfer.HideSecrets(key, nil); none != nil {
		t.Errorf("no secrets are hidden as %q", none)
	}
}
