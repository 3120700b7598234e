package batch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// testID is the number of the database that tests write to.
const testID layout.ID = 1

// A stand is a Pebble in memory with one database, whose batches are applied at
// once.
type stand struct {
	testing.TB
	Maker
	shared   seek.Shared
	position uint64
	indexes  *layout.Indexes // that writes keep
	frontier Frontier
}

func newStand(t testing.TB, chunkBytes int) *stand {
	t.Helper()
	db, err := pebble.Open("", &pebble.Options{
		FS: vfs.NewMem(), FormatMajorVersion: pebble.FormatTableFormatV6, MemTableSize: 64 << 20, Logger: quiet{},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &stand{TB: t, Maker: Maker{DB: db, ChunkBytes: chunkBytes, PriorityRows: 1000, StepChildren: 1000}}
}

// quiet is a logger that drops what Pebble says.
type quiet struct{}

func (quiet) Infof(string, ...any)                   {}
func (quiet) Errorf(string, ...any)                  {}
func (quiet) Fatalf(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }

func (s *stand) live() seek.Reader {
	return seek.Reader{Shared: &s.shared, Source: s.DB, ID: testID, View: seek.Live}
}

// apply builds a write and applies it.
func (s *stand) apply(w tree.Write, prepared *Prepared) {
	s.Helper()
	s.position++
	b, err := s.Build(s.live(), tree.Change{Write: w, Position: s.position, Millis: 1}, s.indexes, prepared, &s.frontier)
	if err != nil {
		s.Fatalf("Build(%s): %v", w.At, err)
	}
	defer b.Close()
	if err := s.DB.Apply(b.Rows, pebble.NoSync); err != nil {
		s.Fatal(err)
	}
}

func (s *stand) put(at, body string) {
	s.Helper()
	s.apply(putWrite(s, at, body), nil)
}

func (s *stand) patch(at, body string) {
	s.Helper()
	s.apply(patchWrite(s, at, body), nil)
}

// prepare prepares the nodes of a write that are larger than minBytes.
func (s *stand) prepare(w tree.Write, minBytes int) *Prepared {
	s.Helper()
	p, err := s.Prepare(s.live(), w, s.indexes, minBytes)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// dataRows returns all data rows, as key and value.
func (s *stand) dataRows() (rows []string) {
	s.Helper()
	it, err := s.live().Space(layout.SpaceData)
	if err != nil {
		s.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		rows = append(rows, fmt.Sprintf("%x %s", it.Key(), it.Value()))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		s.Fatal(err)
	}
	return rows
}

// check holds all rows against the format and against each other.
func (s *stand) check() {
	s.Helper()
	report := func(f inspect.Flaw) bool {
		s.Errorf("%s: %v", f.Path, f.Err)
		return true
	}
	none := func(uint32) bool { return false }
	if err := errors.Join(inspect.CheckData(s.live(), report), inspect.CheckIndexes(s.live(), s.indexes, none, report)); err != nil {
		s.Error(err)
	}
}

func parsePath(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func putWrite(t testing.TB, at, body string) tree.Write {
	t.Helper()
	p := parsePath(t, at)
	n, err := tree.Decode(strings.NewReader(body), tree.DecodeOptions{Depth: p.Depth()})
	if err != nil {
		t.Fatal(err)
	}
	return tree.Put(p, n)
}

func patchWrite(t testing.TB, at, body string) tree.Write {
	t.Helper()
	w, err := tree.DecodePatch(strings.NewReader(body), parsePath(t, at), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// children returns the body of an object of n children.
func children(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `,"k%06d":"v"`, i)
	}
	return "{" + text.String()[1:] + "}"
}
