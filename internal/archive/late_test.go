package archive_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
)

// openLine opens a line of one server, which may do so again and again.
func openLine(t *testing.T, p place.Place) *archive.Writer {
	t.Helper()
	w, err := archive.Open(t.Context(), p, archive.Options{Epoch: 7, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// putBase makes a base of one row at a time.
func putBase(ctx context.Context, t *testing.T, w *archive.Writer, row string, millis int64) (archive.Manifest, error) {
	t.Helper()
	b, err := w.NewBase(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Row(ctx, []byte("k"), []byte(row)); err != nil {
		t.Fatal(err)
	}
	if err := b.Database(ctx, archive.Database{Number: 1, Name: "a"}); err != nil {
		t.Fatal(err)
	}
	m, err := b.Commit(ctx, time.UnixMilli(millis))
	if err != nil {
		b.Abandon(ctx)
	}
	return m, err
}

// segmentOf returns records of one database from one position to another.
func segmentOf(t *testing.T, from, to uint64, row string, before archive.Mark) *archive.Segment {
	t.Helper()
	s := archive.NewSegment()
	s.Begin(1, "a", before)
	for ; from <= to; from++ {
		if err := s.Add(archive.Entry{Database: 1, Name: "a", Position: from, Millis: int64(from) * 1000, Row: []byte(row)}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestBaseIsNeverWrittenOver: a list that is old does not show the last base, so the next
// one must not get its number.
func TestBaseIsNeverWrittenOver(t *testing.T) {
	t.Parallel()
	for _, old := range []int{1, 2, 3} {
		inner := placetest.NewMemory()
		p := placetest.NewFaulty(inner)
		w := openLine(t, p)
		if _, err := putBase(t.Context(), t, w, "first", 1); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Set(placetest.Faults{OldLists: old})
		w = openLine(t, p)
		if w.Line().LastBase == nil {
			t.Errorf("with lists that lack %d objects the base was not found", old)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p.Set(placetest.Faults{Fail: func(call, name string) error {
			if call == "put" && strings.Contains(name, "list-") {
				cancel() // the power goes
				return placetest.ErrServer
			}
			return nil
		}})
		if _, err := putBase(ctx, t, w, "second", 2); err == nil {
			t.Fatal("the second base was committed")
		}
		r := archive.NewReader(inner, archive.ReaderOptions{})
		m, err := r.Find(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Rows(t.Context(), m, 0, func(_, value []byte) error {
			if string(value) != "first" {
				t.Errorf("the base holds %q", value)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A latePlace keeps segments back.
type latePlace struct {
	place.Place
	kept map[string][]byte
	late bool
}

func (l *latePlace) Put(ctx context.Context, name string, content []byte, onlyNew bool) error {
	if l.late && strings.Contains(name, "segments/") {
		l.kept[name] = content
		return io.ErrUnexpectedEOF
	}
	return l.Place.Put(ctx, name, content, onlyNew)
}

// TestLatePut: what a server has sent before it was started again arrives only now. It is no
// other server.
func TestLatePut(t *testing.T) {
	t.Parallel()
	p := &latePlace{Place: placetest.NewMemory(), kept: map[string][]byte{}, late: true}
	w := openLine(t, p)
	if w.Append(t.Context(), segmentOf(t, 1, 1, "row", archive.Mark{})) == nil {
		t.Fatal("the segment was sent")
	}
	p.late = false
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w = openLine(t, p)
	for name, content := range p.kept {
		if err := p.Place.Put(t.Context(), name, content, true); err != nil {
			t.Fatal(err)
		}
	}
	again := segmentOf(t, 1, 2, "row", archive.Mark{})
	if err := w.Append(t.Context(), again); !errors.Is(err, archive.ErrMoved) || errors.Is(err, archive.ErrTaken) {
		t.Fatalf("Append = %v, want ErrMoved", err)
	}
	w = openLine(t, p)
	if err := w.Append(t.Context(), segmentOf(t, 1, 2, "row", archive.Mark{})); err != nil || w.Line().Segment != 2 {
		t.Errorf("after it was opened again: %v, %d segments", err, w.Line().Segment)
	}
	p2 := openLine(t, p) // a copy of the data directory takes the claim
	if err := p2.Append(t.Context(), segmentOf(t, 3, 3, "row", archive.Mark{Position: 2})); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(t.Context(), segmentOf(t, 3, 4, "row", archive.Mark{Position: 2})); !errors.Is(err, archive.ErrTaken) {
		t.Errorf("with the claim of another: %v, want ErrTaken", err)
	}
}

// TestRecordsThatComeAgain must be the same, also where they end before what was read.
func TestRecordsThatComeAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		row  string
		ok   bool
	}{{"the same", "row", true}, {"another history", "other", false}} {
		p := placetest.NewMemory()
		w := openLine(t, p)
		m, err := putBase(t.Context(), t, w, "base", 1)
		if err != nil {
			t.Fatal(err)
		}
		first := segmentOf(t, 1, 2, "row", archive.Mark{})
		if err := w.Append(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		var mark archive.Mark
		for _, m := range first.Marks() {
			mark = m
		}
		for _, s := range []*archive.Segment{segmentOf(t, 3, 5, "row", mark), segmentOf(t, 1, 4, test.row, archive.Mark{})} {
			if err := w.Append(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		read := 0
		err = archive.NewReader(p, archive.ReaderOptions{}).Replay(t.Context(), m, time.Time{}, func(archive.Entry) error { read++; return nil })
		if _, damaged := errors.AsType[*archive.Damage](err); damaged == test.ok || test.ok && err != nil || read != 5 {
			t.Errorf("%s: %d records were read: %v", test.name, read, err)
		}
		failing, gets := placetest.NewFaulty(p), 0
		failing.Set(placetest.Faults{Fail: func(call, name string) error {
			if call == "get" && strings.HasSuffix(name, "/segments/000000000002") {
				if gets++; gets == 2 { // to compare what came again
					return placetest.ErrServer
				}
			}
			return nil
		}})
		err = archive.NewReader(failing, archive.ReaderOptions{}).Replay(t.Context(), m, time.Time{}, func(archive.Entry) error { return nil })
		if _, damaged := errors.AsType[*archive.Damage](err); damaged || !errors.Is(err, placetest.ErrServer) {
			t.Errorf("%s, and a place that fails: %v", test.name, err)
		}
	}
}

// TestGap refuses the moments that a later base says nothing is known of, and only those.
func TestGap(t *testing.T) {
	t.Parallel()
	p := placetest.NewMemory()
	w := openLine(t, p)
	if _, err := putBase(t.Context(), t, w, "first", 500); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(t.Context(), segmentOf(t, 1, 3, "row", archive.Mark{})); err != nil {
		t.Fatal(err)
	}
	w.Break()
	second, err := putBase(t.Context(), t, w, "second", 90_000)
	if err != nil || !second.Unknown.Equal(time.UnixMilli(3000)) {
		t.Fatalf("the second base knows nothing since %s: %v", second.Unknown, err)
	}
	if third, err := putBase(t.Context(), t, w, "third", 99_000); err != nil || !third.Unknown.IsZero() {
		t.Fatalf("the third base continues the second, %s: %v", third.Unknown, err)
	}
	r := archive.NewReader(p, archive.ReaderOptions{})
	for _, test := range []struct {
		at   int64
		base uint64
		ok   bool
	}{{500, 1, true}, {2000, 1, true}, {2999, 1, true}, {3001, 1, false}, {89_999, 1, false}, {90_000, 2, true}, {95_000, 2, true}, {200_000, 3, true}} {
		at := time.UnixMilli(test.at)
		m, err := r.Find(t.Context(), at)
		if err != nil || m.Number != test.base {
			t.Fatalf("at %d: base %d, %v, want %d", test.at, m.Number, err, test.base)
		}
		err = r.Replay(t.Context(), m, at, func(archive.Entry) error { return nil })
		gap, refused := errors.AsType[*archive.Gap](err)
		if refused == test.ok || test.ok && err != nil {
			t.Errorf("at %d: %v", test.at, err)
		}
		if refused && (gap.From.UnixMilli() != 2999 || gap.To.UnixMilli() != 90_000) {
			t.Errorf("at %d: the gap is %+v", test.at, gap)
		}
	}
}

// TestPruneFinishes what was interrupted, and removes bases that were given up.
func TestPruneFinishes(t *testing.T) {
	t.Parallel()
	p := placetest.NewMemory()
	w := openLine(t, p)
	for i := range 3 {
		if _, err := putBase(t.Context(), t, w, "base", int64(i+1)*1000); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"lines/0000000000000007/bases/000000000002/base.json"} {
		if err := p.Delete(t.Context(), name); err != nil { // it was given up
			t.Fatal(err)
		}
	}
	old := []string{"lines/0000000000000003/bases/000000000001/part-000001", "lines/0000000000000003/segments/000000000009"}
	for _, name := range old { // a line of which the manifests are gone already
		if err := p.Put(t.Context(), name, []byte("x"), true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Prune(t.Context(), time.UnixMilli(500)); err != nil {
		t.Fatal(err)
	}
	for o, err := range p.List(t.Context(), "", "") {
		if err != nil || strings.Contains(o.Name, "bases/000000000002/") || strings.Contains(o.Name, "0000000000000003/") {
			t.Errorf("%s is left, %v", o.Name, err)
		}
	}
}
