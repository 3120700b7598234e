package store

import (
	"bytes"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A stand is a store under test, in memory unless told otherwise, with one
// database that one goroutine writes to.
type stand struct {
	testing.TB
	*Store
	id       layout.ID
	position uint64
	indexes  *layout.Indexes // that writes keep
	author   tree.Author     // of commits
	frontier batch.Frontier
	records  bool // commits go by records
}

func newStand(t testing.TB, opts Options) *stand {
	t.Helper()
	s := openStand(t, opts)
	t.Cleanup(s.close)
	return s
}

// standRows is how many bytes of rows a stand remembers: so few that there are always some and never all.
const standRows = 8 << 10

// openStand leaves closing the store to the test.
func openStand(t testing.TB, opts Options) *stand {
	t.Helper()
	if opts.FS == nil {
		opts.FS = vfs.NewMem()
	}
	if opts.BallastBytes == 0 {
		opts.BallastBytes = -1
	}
	if _, isBenchmark := t.(*testing.B); opts.RowBytes == 0 && !isBenchmark {
		opts.RowBytes = standRows
	}
	if opts.Gather == 0 {
		opts.Gather = 10 * time.Millisecond // settle would wait for long
	}
	path := "data"
	if opts.FS == vfs.Default {
		path = t.TempDir()
	}
	s, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return useDatabase(t, s, "db")
}

// useDatabase makes a stand of one database of an open store.
func useDatabase(t testing.TB, s *Store, name string) *stand {
	t.Helper()
	id, found, err := s.Find(name)
	if !found && err == nil {
		id, err = s.Create(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	view := s.View()
	defer view.Release()
	position, err := view.Tree(id).Position()
	if err != nil {
		t.Fatal(err)
	}
	return &stand{TB: t, Store: s, id: id, position: position}
}

func (s *stand) close() {
	if err := s.Close(); err != nil {
		s.Errorf("close the store: %v", err)
	}
}

// A visible is a ticket that waits for the commit's view.
type visible chan struct{}

func (v visible) Durable(uint64) {}
func (v visible) Visible()       { close(v) }

// A forgotten ticket is not waited for.
type forgotten struct{}

func (forgotten) Durable(uint64) {}
func (forgotten) Visible()       {}

// Drop removes a database, as an engine does that has no writes of it left.
func (s *Store) Drop(name string) error {
	id, _, err := s.Find(name)
	if err != nil {
		return err
	}
	position, err := s.Live(id).Position()
	if err != nil {
		return err
	}
	batch, err := s.BuildDrop(name, id, tree.Change{Position: position + 1, Millis: s.opts.Now().UnixMilli()})
	if err != nil {
		return err
	}
	done := make(visible)
	if err := s.Commit(batch, done); err != nil {
		return err
	}
	<-done
	s.Forget(id)
	return nil
}

// build works out a write, which becomes the next commit if it is committed.
func (s *stand) build(w tree.Write) *batch.Batch {
	s.Helper()
	c := tree.Change{Write: w, Position: s.position + 1, Millis: s.opts.Now().UnixMilli(), Author: s.author}
	b, err := s.Build(s.Live(s.id), c, s.indexes, nil, &s.frontier)
	if err != nil {
		s.Fatalf("Build(%s): %v", w.At, err)
	}
	return b
}

// commit returns when views show the write.
func (s *stand) commit(w tree.Write) {
	s.Helper()
	done := make(visible)
	if err := s.Commit(s.build(w), done); err != nil {
		s.Fatalf("Commit(%s): %v", w.At, err)
	}
	s.position++
	<-done
}

// byRecords has every stand commit as a node of a cluster does that follows another.
var byRecords = flag.Bool("records", false, "commit what is built as records, from the bytes of its effect")

// Commit is that of the store, or goes by records.
func (s *stand) Commit(b *batch.Batch, t Ticket) error {
	if !*byRecords && !s.records {
		return s.Store.Commit(b, t)
	}
	effect := b.Effect()
	b.Close()
	e, err := BatchOf(s.Store, b.ID, effect)
	if err != nil {
		return err
	}
	shard := byte(b.ID) // one at a time commits to it
	last, err := AppliedOf(s.Store, shard)
	if err != nil {
		return err
	}
	last.Number++
	return CommitRecord(s.Store, []RecordPart{{e.Batch, t}}, last)
}

// leave commits rows of what connections have left to be written.
func (s *stand) leave(rows ...LeftRow) {
	s.Helper()
	b := s.Live(s.id).NewBatch()
	if err := b.Left(rows); err != nil {
		s.Fatal(err)
	}
	done := make(visible)
	if err := s.Commit(b, done); err != nil {
		s.Fatal(err)
	}
	<-done
}

// allLeft returns what connections have left, a line for each row.
func (s *stand) allLeft() (lines []string) {
	s.Helper()
	r := s.Live(s.id).Reader()
	err := r.Left("", func(connection string) bool {
		err := r.LeftRows(connection, func(number uint64, value []byte) error {
			lines = append(lines, fmt.Sprintf("%s %d %q", connection, number, value))
			return nil
		})
		if err != nil {
			s.Fatal(err)
		}
		return true
	})
	if err != nil {
		s.Fatal(err)
	}
	return lines
}

func (s *stand) put(at, body string) {
	s.Helper()
	s.commit(putWrite(s, at, body))
}

func (s *stand) patch(at, body string) {
	s.Helper()
	w, err := tree.DecodePatch(strings.NewReader(body), parsePath(s, at), tree.DecodeOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.commit(w)
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

// export returns a node as the newest view shows it.
func (s *stand) export(at string) string {
	s.Helper()
	view := s.View()
	defer view.Release()
	var text bytes.Buffer
	if err := view.Tree(s.id).Print(&text, parsePath(s, at), tree.Export); err != nil {
		s.Fatalf("print %s: %v", at, err)
	}
	return text.String()
}

// expect compares a node, and holds all rows against the format.
func (s *stand) expect(at, want string) {
	s.Helper()
	if got := s.export(at); got != want {
		s.Errorf("%s is %s, want %s", at, got, want)
	}
	view := s.View()
	defer view.Release()
	if err := checkData(view.Tree(s.id)); err != nil {
		s.Errorf("check: %v", err)
	}
}

// limits are the chunk limits that differ in kind: leaves apart, chunks of one
// key, small ones, the default, the largest.
var limits = []int{-1, 8, 24, 64, DefaultChunkBytes, layout.MaxChunkBytes}

// atEveryLimit runs a test on an empty store of each limit.
func atEveryLimit(t *testing.T, test func(s *stand)) {
	for _, limit := range limits {
		t.Run(strconv.Itoa(limit), func(t *testing.T) { test(newStand(t, Options{ChunkBytes: limit})) })
	}
}

func (s *stand) rows() int {
	s.Helper()
	view := s.View()
	defer view.Release()
	rows, err := countSpace(view.Tree(s.id), layout.SpaceData)
	if err != nil {
		s.Fatal(err)
	}
	return rows
}

func parsePath(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
