package restore_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// found makes a database with a value, a second later.
func (o *original) found(name string, value int64) *source {
	o.Helper()
	o.millis += 1000
	o.clock.Store(o.millis)
	id, err := o.Create(name)
	o.check(err)
	return o.begin(id, name, value)
}

// begin has a database, which was made, with a value.
func (o *original) begin(id store.ID, name string, value int64) *source {
	o.Helper()
	d := &source{id: id, name: name}
	var err error
	d.settings, err = state.NewSettings(store.Settings{})
	o.check(err)
	o.databases[name] = d
	o.put(d, value)
	return d
}

// put writes a value at the root of a database.
func (o *original) put(d *source, value int64) {
	o.Helper()
	c := tree.Change{Write: tree.Put(tree.Path{}, tree.LeafNode(tree.IntegerLeaf(value))), Position: d.position + 1, Millis: o.millis}
	b, err := o.Build(o.Live(d.id), c, d.settings.Indexes, nil, nil)
	o.check(err)
	c.Assignments = b.Assignments()
	o.commit(d, b, layout.Record{Change: c})
}

// TestNumber: of databases that had a name one after the other, the one with the number that was
// asked for is restored, and no other.
func TestNumber(t *testing.T) {
	t.Parallel()
	for _, baseBetween := range []bool{false, true} {
		p, err := place.OpenFile(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		o := newOriginal(t, rand.New(rand.NewPCG(1, 1)), p)
		o.base()
		first := o.found("a", 1)
		early := o.millis
		if baseBetween {
			o.send()
			o.base()
		}
		o.millis += 1000
		o.drop(first)
		second := o.found("a", 2)
		o.send()
		for _, test := range []struct {
			number store.ID
			at     int64
			want   string
		}{{first.id, early, "1"}, {first.id, o.millis, ""}, {second.id, early, ""}, {second.id, o.millis, "2"}} {
			data := filepath.Join(t.TempDir(), "data")
			opts := restore.Options{
				At: restore.Moment{Time: time.UnixMilli(test.at)}, Only: "a", Number: test.number, Lines: []restore.Origin{{Epoch: o.Epoch()}},
			}
			if _, err := restore.Run(t.Context(), archive.NewReader(p, archive.ReaderOptions{}), data, opts); err != nil {
				t.Fatalf("base between %t, %+v: %v", baseBetween, test, err)
			}
			if got := openRestored(t, data).contents()["a"].Tree; got != test.want {
				t.Errorf("base between %t, number %d at %d: %q, want %q", baseBetween, test.number, test.at, got, test.want)
			}
		}
	}
}

// TestLines: a time is looked for only in the lines that are named, and in one that was restored
// from only up to what was restored.
func TestLines(t *testing.T) {
	t.Parallel()
	p, err := place.OpenFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := newOriginal(t, rand.New(rand.NewPCG(1, 1)), p)
	o.base()
	d := o.found("a", 1)
	middle := o.millis
	o.send()
	r := archive.NewReader(p, archive.ReaderOptions{})
	whole := filepath.Join(t.TempDir(), "data")
	if _, err := restore.Run(t.Context(), r, whole, restore.Options{}); err != nil {
		t.Fatal(err)
	}
	origin, ok, err := restore.ReadOrigin(whole)
	if want := (restore.Origin{Epoch: o.Epoch(), Until: middle, Below: uint32(d.id) + 1}); err != nil || !ok || origin != want {
		t.Fatalf("it was restored from %+v, %t, %v; want %+v", origin, ok, err, want)
	}
	o.millis += 1000
	o.put(d, 2)
	o.send()
	own := restore.Origin{Epoch: o.Epoch() + 1} // which has no base yet
	run := func(number store.ID, lines ...restore.Origin) (string, error) {
		data := filepath.Join(t.TempDir(), "data")
		opts := restore.Options{At: restore.Moment{Time: time.UnixMilli(o.millis)}, Only: "a", Number: number, Lines: lines}
		if _, err := restore.Run(t.Context(), r, data, opts); err != nil {
			return "", err
		}
		return openRestored(t, data).contents()["a"].Tree, nil
	}
	if got, err := run(d.id, own, origin); got != "1" || err != nil {
		t.Errorf("the line that it was restored from gives %q, %v", got, err)
	}
	if _, err := run(d.id, own); !errors.Is(err, archive.ErrNoBase) {
		t.Errorf("the line of another server was read: %v", err)
	}
	if _, err := run(d.id+1, own, origin); !errors.Is(err, archive.ErrNoBase) {
		t.Errorf("a database that was made after the restore: %v", err)
	}
}

// TestBeforeTheFirstBase: a server that was restored is without an archive at first. What is written until its first base is in no line: a
// moment of that time is refused, and not shown as what was restored. Of a database that was not written to it is known.
func TestBeforeTheFirstBase(t *testing.T) {
	t.Parallel()
	p, err := place.OpenFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := newOriginal(t, rand.New(rand.NewPCG(1, 1)), p)
	o.base()
	o.found("a", 1)
	o.found("b", 1)
	o.send()
	r := archive.NewReader(p, archive.ReaderOptions{})
	data := filepath.Join(t.TempDir(), "data")
	_, err = restore.Run(t.Context(), r, data, restore.Options{})
	o.check(err)
	origin, _, err := restore.ReadOrigin(data)
	o.check(errors.Join(err, o.writer.Close(t.Context())))
	n := o.goOn(data, p)
	written := n.millis + 1000
	n.millis = written
	n.put(n.databases["a"], 2)
	n.millis += 1000
	n.clock.Store(n.millis)
	n.base()
	for _, test := range []struct {
		name string
		at   int64
		want string
	}{{"a", origin.Until, "1"}, {"a", written, ""}, {"a", n.millis, "2"}, {"b", written, "1"}} {
		data := filepath.Join(t.TempDir(), "data")
		opts := restore.Options{
			At: restore.Moment{Time: time.UnixMilli(test.at)}, Only: test.name, Number: n.databases[test.name].id,
			Lines: []restore.Origin{{Epoch: n.Epoch()}, origin},
		}
		_, err := restore.Run(t.Context(), r, data, opts)
		if test.want == "" {
			if !errors.Is(err, archive.ErrNoBase) {
				t.Errorf("%s at %d: %v; want it refused", test.name, test.at, err)
			}
			continue
		}
		o.check(err)
		if got := openRestored(t, data).contents()[test.name].Tree; got != test.want {
			t.Errorf("%s at %d: %q, want %q", test.name, test.at, got, test.want)
		}
	}
}
