package restore_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

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
