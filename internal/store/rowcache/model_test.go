package rowcache

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

const live = math.MaxUint64

// A world is what a store does with a cache, and the obvious model of its rows: all versions of them.
type world struct {
	t     testing.TB
	rng   *rand.Rand
	cache *Cache
	paths []tree.Path
	// versions are those of each key, in the order of commits.
	versions map[string][]version
	group    uint64 // that is open
	shown    uint64 // the newest view
	late     []fill // what readers have found and not kept yet
	found    [3]int // by what Row said
}

type version struct {
	group uint64
	row   []byte // nil if there is none
}

type fill struct {
	key, row []byte
	view     uint64
}

func newWorld(t testing.TB, seed uint64, size int64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), cache: New(size, nil), versions: map[string][]version{}, group: 1}
	for _, text := range []string{"/", "a", "a/b", "a/b/c", "a/b/7", "a/b/007", "a/x", "d", "d/1", "d/1/e", "d/1/f", "d/7"} {
		p, err := tree.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		w.paths = append(w.paths, p)
	}
	return w
}

// key returns that of a node of one of two databases, now and then that of its priority.
func (w *world) key() []byte {
	key := layout.DataKey(nil, layout.ID(1+w.rng.IntN(2)), w.paths[w.rng.IntN(len(w.paths))])
	if w.rng.IntN(6) == 0 {
		return append(key, layout.PriorityMark)
	}
	return key
}

// in returns the row at a key in a view.
func (w *world) in(key []byte, view uint64) (row []byte) {
	for _, v := range w.versions[string(key)] {
		if v.group <= view {
			row = v.row
		}
	}
	return row
}

func (w *world) note(key, row []byte) {
	w.versions[string(key)] = append(w.versions[string(key)], version{w.group, bytes.Clone(row)})
}

// commit changes some rows, in the cache and, unless it fails, in the model.
func (w *world) commit(b *pebble.Batch) {
	var whole [][]byte
	if w.rng.IntN(30) == 0 {
		whole = append(whole, layout.DataKey(nil, 1, w.paths[w.rng.IntN(len(w.paths))]))
	}
	changes := map[string][]byte{}
	for range 1 + w.rng.IntN(4) {
		key := w.key()
		switch w.rng.IntN(40) {
		case 0:
			from, to := key, layout.SubtreeEnd(nil, key)
			if w.rng.IntN(4) == 0 { // a drop
				from, to = key[:layout.RootBytes], layout.AppendSpace(nil, layout.SpaceData, layout.ID(key[4])+1)
			}
			_ = b.DeleteRange(from, to, nil)
			for _, keys := range []map[string]bool{w.keys(), of(changes)} {
				for k := range keys {
					if bytes.Compare([]byte(k), from) >= 0 && bytes.Compare([]byte(k), to) < 0 {
						changes[k] = nil
					}
				}
			}
		case 1, 2, 3, 4, 5, 6, 7, 8:
			_ = b.Delete(key, nil)
			changes[string(key)] = nil
		default:
			row := []byte(strings.Repeat(fmt.Sprint(w.rng.IntN(10)), w.rng.IntN(70)))
			_ = b.Set(key, row, nil)
			changes[string(key)] = row
		}
	}
	w.cache.Cut(b, w.group, whole)
	if w.rng.IntN(10) == 0 {
		w.cache.Undo(b)
		return
	}
	for key, row := range changes {
		w.note([]byte(key), row)
	}
}

func (w *world) keys() map[string]bool {
	keys := map[string]bool{}
	for key := range w.versions {
		keys[key] = true
	}
	return keys
}

func of(changes map[string][]byte) map[string]bool {
	keys := map[string]bool{}
	for key := range changes {
		keys[key] = true
	}
	return keys
}

// read looks a row up as readers do, in some view or live. What the cache does not know it may keep late.
func (w *world) read() error {
	key, view := w.key(), uint64(live)
	if w.rng.IntN(3) > 0 {
		view = w.shown - min(w.shown, uint64(w.rng.IntN(4)))
	}
	want := w.in(key, view)
	got, found := w.cache.Row([]byte("dst"), key, view)
	w.found[found]++
	switch {
	case found == Absent && want != nil:
		return fmt.Errorf("%x in view %d is absent, want %q", key, view, want)
	case found == Present && (want == nil || string(got) != "dst"+string(want)):
		return fmt.Errorf("%x in view %d is %q, want %q (absent: %t)", key, view, got, want, want == nil)
	case found == Unknown:
		if view == live {
			view = w.shown
		}
		w.late = append(w.late, fill{key, want, view})
	}
	for len(w.late) > w.rng.IntN(4) {
		w.keep()
	}
	return nil
}

// keep has one of the late readers keep what it has found.
func (w *world) keep() {
	i := w.rng.IntN(len(w.late))
	f := w.late[i]
	w.late = append(w.late[:i], w.late[i+1:]...)
	if f.row == nil {
		w.cache.KeepAbsent(f.key, f.view)
	} else {
		w.cache.Keep(f.key, f.row, f.view)
	}
}

// run makes random steps. After each commit it calls after.
func (w *world) run(steps int, after func()) error {
	db, err := pebble.Open("", memory())
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for range steps {
		switch n := w.rng.IntN(20); {
		case n < 3:
			b := db.NewBatch()
			w.commit(b)
			_ = b.Close()
			after()
		case n < 5:
			w.shown = w.group
			w.group++
		default:
			if err := w.read(); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestModel: whatever is written, and whenever readers keep what they have found in whatever view, the cache tells
// what the rows are.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		size := []int64{0, 4 << 10, 5 << 10, 8 << 10, 64 << 10, 1 << 20}[seed%6]
		w := newWorld(t, seed, size)
		if err := w.run(4000, func() {}); err != nil {
			t.Fatalf("seed %d, %d bytes: %v", seed, size, err)
		}
		if size > 0 && (w.found[Present] < 100 || w.found[Absent] < 100) {
			t.Errorf("seed %d, %d bytes: rows were present and absent %v times only", seed, size, w.found)
		}
		if got := w.cache.Stats().Bytes; got > size {
			t.Errorf("seed %d: it takes %d bytes, want at most %d", seed, got, size)
		}
	}
}

// TestModelFindsErrors: the test above would notice if stamps were missing, of rows or of ranges.
func TestModelFindsErrors(t *testing.T) {
	for name, plant := range map[string]func(*Cache){
		"a fill after the commit": func(c *Cache) {
			for i := range c.shards {
				clear(c.shards[i].stamps)
			}
		},
		"a fill after a range delete": func(c *Cache) {
			for i := range c.ranges.places {
				c.ranges.places[i].group.Store(0)
			}
		},
		"an entry after a range delete": func(c *Cache) {
			for i := range c.ranges.places {
				c.ranges.places[i].number.Store(0)
			}
		},
	} {
		found := false
		for seed := uint64(0); seed < 60 && !found; seed++ {
			w := newWorld(t, seed, 64<<10)
			found = w.run(4000, func() { plant(w.cache) }) != nil
		}
		if !found {
			t.Errorf("%s was not noticed", name)
		}
	}
}
