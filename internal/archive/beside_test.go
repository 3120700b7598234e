package archive_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
)

// sentAt makes an archive with a base and some segments, and a place at which its server sends more of them at a
// moment: when a call is made for an object or a list of a name.
func sentAt(t *testing.T, segments int, call, name string) (*placetest.Faulty, archive.Manifest) {
	t.Helper()
	memory := placetest.NewMemory()
	w := openLine(t, memory)
	base, err := putBase(t.Context(), t, w, "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	mark, position := archive.Mark{}, uint64(0)
	send := func() {
		position++
		s := segmentOf(t, position, position, "row", mark)
		if err := w.Append(t.Context(), s); err != nil {
			t.Error(err)
		}
		for _, mark = range s.Marks() {
		}
	}
	for range segments {
		send()
	}
	p := placetest.NewFaulty(memory)
	var once sync.Once
	p.Set(placetest.Faults{Fail: func(is, of string) error {
		if is == call && strings.HasSuffix(of, name) {
			once.Do(func() { send(); send() })
		}
		return nil
	}})
	return p, base
}

// TestReadBesideWrite: a segment that is sent after it was looked for is not missing because later ones are there, or
// because the index names it.
func TestReadBesideWrite(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		segments   int
		call, name string
	}{{5, "list", "/segments/"}, {31, "get", "/index/000000000256"}} {
		want := uint64(at.segments) + 2
		read := uint64(0)
		p, base := sentAt(t, at.segments, at.call, at.name)
		err := archive.NewReader(p, archive.ReaderOptions{}).Replay(t.Context(), base, time.Time{}, func(e archive.Entry) error {
			read = e.Position
			return nil
		})
		if err != nil || read != want {
			t.Errorf("Replay read up to %d of %d: %v", read, want, err)
		}
	}
}

func TestRecordsBesideWrite(t *testing.T) {
	t.Parallel()
	p, _ := sentAt(t, 5, "list", "/segments/")
	read := uint64(0)
	_, _, err := archive.NewReader(p, archive.ReaderOptions{}).Records(t.Context(),
		archive.RecordsRequest{Epoch: 7, Database: 1, Segment: 1, Until: time.Now(), MaxBytes: 1 << 30},
		func(_ uint64, e archive.Entry) error {
			read = e.Position
			return nil
		})
	if err != nil || read != 7 {
		t.Errorf("Records read up to %d of 7: %v", read, err)
	}
}

// TestLinesBesideWrite: what is sent while the end of a line is looked for is the end, and leaves no hole.
func TestLinesBesideWrite(t *testing.T) {
	t.Parallel()
	p, _ := sentAt(t, 5, "list", "/segments/")
	lines, err := archive.NewReader(p, archive.ReaderOptions{}).Lines(t.Context())
	if err != nil || len(lines) != 1 {
		t.Fatalf("Lines = %v, %v", lines, err)
	}
	if l := lines[0]; l.Segment != 7 || l.Last.UnixMilli() != 7000 {
		t.Errorf("the line ends with segment %d of %v, want 7 of %v", l.Segment, l.Last.UTC(), time.UnixMilli(7000).UTC())
	}
}

// A holedPlace has lists that lack one object, which is there.
type holedPlace struct {
	place.Place
	lacks string
}

func (p holedPlace) List(ctx context.Context, prefix, after string) iter.Seq2[place.Object, error] {
	return func(yield func(place.Object, error) bool) {
		for o, err := range p.Place.List(ctx, prefix, after) {
			if !strings.HasSuffix(o.Name, p.lacks) && !yield(o, err) {
				return
			}
		}
	}
}

// TestCheckWithOldLists: what a list lacks and what is there is not missing.
func TestCheckWithOldLists(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"/segments/000000000003", "/bases/000000000001/part-000001"} {
		p, _ := sentAt(t, 33, "", "")
		holed := holedPlace{p, name}
		if err := archive.NewReader(holed, archive.ReaderOptions{}).CheckAll(t.Context()); err != nil {
			t.Errorf("with lists that lack %s, Check finds %v", name, err)
		}
		if err := p.Delete(t.Context(), "lines/0000000000000007"+name); err != nil {
			t.Fatal(err)
		}
		_, damaged := errors.AsType[*archive.Damage](archive.NewReader(p, archive.ReaderOptions{}).CheckAll(t.Context()))
		if !damaged {
			t.Errorf("without %s, Check finds nothing", name)
		}
	}
}
