package restore_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/restore"
)

// TestAdvance takes one database forward from moment to moment of random histories, and
// compares it with what it was.
func TestAdvance(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	o, r := newArchive(t, seed, 150)
	first := firstBase(t, r)
	times := make([]int64, 12)
	for i := range times {
		times[i] = first + o.random.Int64N(o.millis-first+1)
	}
	slices.Sort(times)
	name := ""
	for name = range o.wantAt(times[0]) {
		break // any
	}
	advanced := 0
	data := filepath.Join(t.TempDir(), "data")
	for i, at := range times {
		opts := restore.Options{At: restore.Moment{Time: time.UnixMilli(at)}, Only: name, MaxBytes: 1 << 30}
		err := restore.ErrTooFar
		if i > 0 {
			err = restore.Advance(t.Context(), r, data, time.UnixMilli(times[i-1]), opts)
		}
		if errors.Is(err, restore.ErrTooFar) {
			data = filepath.Join(t.TempDir(), "data")
			_, err = restore.Run(t.Context(), r, data, opts)
		} else {
			advanced++
		}
		if err != nil {
			t.Fatal(err)
		}
		h := openRestored(t, data)
		got, want := h.contents()[name], o.wantAt(at)[name]
		if !reflect.DeepEqual(got.Tree, want.Tree) || got.Position != want.Position {
			t.Errorf("at %d %s is\n%+v, want\n%+v", at, name, shown(got), shown(want))
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d moments were reached from an earlier one", advanced, len(times))
	if err := func() error {
		_, err := restore.Run(t.Context(), r, filepath.Join(t.TempDir(), "data"), restore.Options{Only: name, MaxBytes: 2})
		return err
	}(); !errors.Is(err, restore.ErrTooLarge) {
		t.Errorf("with room for 2 bytes it ends with %v", err)
	}
}

// TestOneDatabaseOfMany restores one database after the other: each time, the parts of the base in which only others have something are
// not read. So all of them together read each part once, but for the few that two databases share.
func TestOneDatabaseOfMany(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	o, _ := newArchive(t, seed, 150)
	o.base()
	counting := &countingPlace{Place: o.place}
	r := archive.NewReader(counting, archive.ReaderOptions{})
	base, err := r.Find(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	databases, read := o.wantAt(o.millis), 0
	for name, want := range databases {
		counting.parts = 0
		data := filepath.Join(t.TempDir(), "data")
		if _, err := restore.Run(t.Context(), r, data, restore.Options{Only: name, MaxBytes: 1 << 30}); err != nil {
			t.Fatal(err)
		}
		if got := openRestored(t, data).contents(); len(got) != 1 || !reflect.DeepEqual(got[name].Tree, want.Tree) || got[name].Position != want.Position {
			t.Errorf("%s is\n%+v, want\n%+v", name, got, shown(want))
		}
		if counting.parts == 0 || counting.parts > len(base.Parts) {
			t.Errorf("of %d parts %d are read for %s", len(base.Parts), counting.parts, name)
		}
		read += counting.parts
	}
	const kinds = 5 // of rows; in each a database may share a part with the next one
	if shared := kinds * len(databases); read > len(base.Parts)+shared {
		t.Errorf("of %d parts %d are read for %d databases, want at most %d more than once", len(base.Parts), read, len(databases), shared)
	}
}

// A countingPlace counts the parts of bases that are read.
type countingPlace struct {
	place.Place
	parts int
}

func (p *countingPlace) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if strings.Contains(name, "/part-") {
		p.parts++
	}
	return p.Place.Get(ctx, name)
}
