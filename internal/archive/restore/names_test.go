package restore_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/bases"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
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

// TestDisplacedDatabase: a node of a cluster may hear that a name is another database's before it hears that the first was dropped. A
// base that is made meanwhile has no row of that one: nothing would tell whose they are.
func TestDisplacedDatabase(t *testing.T) {
	t.Parallel()
	s, err := store.Open("data", store.Options{FS: vfs.NewMem(), Replicated: true, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	o := &original{TB: t}
	named := func(number byte) layout.ID {
		n, err := store.DecodeNaming(append([]byte{0, 0, 0, number, 0, 0, 0, number + 1}, "a"...))
		o.check(err)
		o.check(store.CommitNaming(s, n, store.Applied{Number: uint64(number)}))
		return n.ID
	}
	id := named(1)
	b, err := s.Build(s.Live(id), tree.Change{Write: tree.Put(tree.Path{}, tree.LeafNode(tree.IntegerLeaf(1))), Position: 1, Millis: 1000}, nil, nil, nil)
	o.check(err)
	shown := make(visible)
	o.check(store.CommitRecord(s, []store.RecordPart{{Batch: b, Ticket: shown}}, store.Applied{Shard: 1, Number: 1}))
	<-shown
	named(2)
	shown = make(visible)
	o.check(s.Commit(s.Live(0).NewBatch(), shown))
	<-shown
	p := placetest.NewMemory()
	now := func() time.Time { return time.UnixMilli(2000) }
	w, err := archive.Open(t.Context(), p, archive.Options{Epoch: s.Epoch(), Now: now})
	o.check(err)
	_, err = bases.Take(t.Context(), s, w, bases.Options{Now: now, HideKey: hideKey})
	o.check(err)
	data := filepath.Join(t.TempDir(), "data")
	_, err = restore.Run(t.Context(), archive.NewReader(p, archive.ReaderOptions{}), data, restore.Options{})
	o.check(err)
	checkDirectory(t, data)
}
