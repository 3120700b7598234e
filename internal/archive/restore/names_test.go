package restore_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/bases"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// TestBaseNeedsKey: without a key that hides secrets there is no base.
func TestBaseNeedsKey(t *testing.T) {
	t.Parallel()
	p, err := place.OpenFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := newOriginal(t, rand.New(rand.NewPCG(1, 1)), p)
	if _, err := bases.Take(t.Context(), o.Store, o.writer, bases.Options{Now: o.now}); err == nil {
		t.Error("a base was made that shows secrets")
	}
}

// TestNames refuses an archive with a database whose name is none: it would become that of a
// file, anywhere. The name is in a base, or in a record after it.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, inBase := range []bool{true, false} {
		p, err := place.OpenFile(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		o := newOriginal(t, rand.New(rand.NewPCG(1, 1)), p)
		if !inBase {
			o.base()
		}
		name := "../../../outside"
		id, err := o.Create(name)
		o.check(err)
		d := &source{id: id, name: name}
		d.settings, err = state.NewSettings(store.Settings{})
		o.check(err)
		o.set(d, store.Settings{state.SettingSecrets: []byte("a-secret")}, nil)
		if inBase {
			o.base()
		}
		o.send()
		dir := t.TempDir()
		_, err = restore.Run(t.Context(), archive.NewReader(p, archive.ReaderOptions{}), filepath.Join(dir, "a", "target"), restore.Options{})
		if _, damaged := errors.AsType[*archive.Damage](err); !damaged && !errors.Is(err, restore.ErrRecords) {
			t.Errorf("in a base %t: %v", inBase, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "outside")); err == nil {
			t.Errorf("in a base %t: a file was written outside", inBase)
		}
	}
}

// TestVerifyOfACluster: a database that is made again in a cluster may get a smaller number, as that begins with its shard.
// Its records come after the base that shows the one before it, wherever they are in their segment.
func TestVerifyOfACluster(t *testing.T) {
	t.Parallel()
	p, err := place.OpenFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := newOriginal(t, rand.New(rand.NewPCG(1, 1)), p)
	o.base()
	found := func(name string, id store.ID, value int64) *source {
		o.check(store.CreateAs(o.Store, name, id))
		return o.begin(id, name, value)
	}
	first, other := found("a", 1<<24|1, 1), found("b", 2, 1)
	o.send()
	o.put(other, 2)
	o.base()
	o.drop(first)
	found("a", 3, 2)
	o.send()
	r := archive.NewReader(p, archive.ReaderOptions{})
	if _, err := restore.Verify(t.Context(), r, onlyLine(t, r), t.TempDir(), restore.Options{}); err != nil {
		t.Error(err)
	}
}
