package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
)

// flatten returns the leaves of a tree in export form, with their priorities.
func flatten(t *testing.T, text string) map[string]string {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	leaves := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, child := range value {
				walk(path+"/"+key, child)
			}
		case []any:
			for i, child := range value {
				walk(fmt.Sprintf("%s/%d", path, i), child)
			}
		case nil:
		default:
			leaves[path] = fmt.Sprint(value)
		}
	}
	walk("", root)
	return leaves
}

// newLayers returns a patient of two tables, of which one holds newer versions of
// the rows of the other, and deletes some, and a log that does so with both.
func newLayers(t *testing.T) *patient {
	t.Helper()
	p := &patient{texts: map[string]string{}}
	disk := vfs.NewCrashableMem()
	var tables atomic.Int64 // that may still be made
	release := make(chan struct{})
	tables.Store(1000)
	held := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") && tables.Add(-1) < 0 {
			<-release
		}
		return nil
	}))
	s, err := Open("data", Options{FS: held, BallastBytes: -1, ChunkBytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	stands := []*stand{useDatabase(t, s, patientNames[0]), useDatabase(t, s, patientNames[1])}
	round := func(n, step int) {
		for _, db := range stands {
			for i := 0; i < 400; i += step {
				db.put(fmt.Sprintf("r/k%d", i), fmt.Sprintf(`{".priority":%d,"n":%d,"text":%q}`, n, n, strings.Repeat("abc", i%50)))
			}
			for i := n; i < 400; i += 37 {
				db.put(fmt.Sprintf("r/k%d", i), "null")
			}
			db.put(fmt.Sprintf("changed/%d", n), `"yes"`)
		}
	}
	round(1, 1)
	if err := errors.Join(s.db.Flush(), s.db.Compact(t.Context(), []byte{0}, []byte{0xFF}, false)); err != nil {
		t.Fatal(err)
	}
	tables.Store(1) // the flush, but not the compaction that follows it
	round(2, 3)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	round(3, 20)
	p.disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
	removeObsolete(t, s.db, p.disk)
	for i, db := range stands {
		p.texts[patientNames[i]+" /"] = db.export("/")
	}
	close(release)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

// isLost reports whether the row that held a leaf may be lost.
func isLost(t *testing.T, l *inspect.Losses, id layout.ID, leaf string) bool {
	t.Helper()
	leaf = strings.TrimSuffix(strings.TrimSuffix(leaf, "/.priority"), "/.value")
	p := parsePath(t, leaf)
	for d := p.Depth(); d >= 0; d-- {
		for _, key := range [][]byte{layout.DataKey(nil, id, p), append(layout.DataKey(nil, id, p), layout.PriorityMark)} {
			if l.Contains(key) {
				return true
			}
		}
		p = p.Parent()
	}
	return false
}

// TestRescue harms tables of a store that has overwritten and deleted much. Of each
// leaf what is rescued is the newest value, or nothing, and nothing only where it
// says so.
func TestRescue(t *testing.T) {
	t.Parallel()
	p := newLayers(t)
	flips := 20
	if testing.Short() || raceEnabled {
		flips = 4
	}
	if n := len(tableFiles(t, p.disk)); n < 2 {
		t.Fatalf("there are %d tables, want two", n)
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	refused, rescued, lostLeaves, kept := 0, 0, 0, 0
	for _, name := range tableFiles(t, p.disk) {
		// Some bits harm nothing: go on until something was lost.
		for i := 0; i < flips || lostLeaves == 0 && i < 20*flips; i++ {
			disk := p.copy()
			at := rng.IntN(len(readFile(t, disk, name)))
			flipBit(t, disk, name, at)
			if i%3 == 2 { // also far apart
				flipBit(t, disk, name, rng.IntN(len(readFile(t, disk, name))))
			}
			into, losses, err := rescueAll(t, disk)
			if errors.Is(err, ErrDamaged) {
				refused++ // the metadata is lost
				continue
			}
			if err != nil {
				t.Fatalf("seed %d, bit %d of %s: %v", seed, at, name, err)
			}
			rescued++
			for db, original := range map[string]layout.ID{patientNames[0]: 1, patientNames[1]: 2} {
				want, got := flatten(t, p.texts[db+" /"]), map[string]string{}
				if id, ok, err := into.Find(db); err != nil {
					t.Fatal(err)
				} else if ok {
					got = flatten(t, useDatabase(t, into, db).export("/"))
					tree := into.Live(id)
					if err := errors.Join(checkData(tree), checkIndexes(tree, nil)); err != nil {
						t.Errorf("seed %d, bit %d of %s: database %s: %v", seed, at, name, db, err)
					}
				} else if !losses.Names() {
					t.Errorf("seed %d, bit %d of %s: database %s is gone, and nothing says so", seed, at, name, db)
				}
				for leaf, value := range got {
					if want[leaf] != value {
						t.Errorf("seed %d, bit %d of %s: %s %s is %.40q, want %.40q or nothing", seed, at, name, db, leaf, value, want[leaf])
					}
				}
				for leaf := range want {
					if _, ok := got[leaf]; ok {
						kept++
					} else if lostLeaves++; !isLost(t, losses, original, leaf) && !losses.Names() {
						t.Errorf("seed %d, bit %d of %s: %s %s is lost, and nothing says so: %q", seed, at, name, db, leaf, losses.Data(original))
					}
				}
			}
			if err := into.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("%d stores were rescued and %d refused; %d leaves were kept and %d lost", rescued, refused, kept, lostLeaves)
	if rescued == 0 || kept == 0 || lostLeaves == 0 {
		t.Error("nothing was rescued, or nothing was lost")
	}
}

// rescueAll copies what can be read of a store into a new one.
func rescueAll(t *testing.T, disk vfs.FS) (into *Store, l *inspect.Losses, err error) {
	t.Helper()
	a, err := OpenArchive("data", Options{FS: disk})
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	if l, err = a.Losses(t.Context()); err != nil {
		return nil, nil, err
	}
	if len(l.Files) == 0 {
		t.Error("no file is damaged")
	}
	names, err := a.NamesBeside(l)
	if err != nil {
		return nil, nil, err
	}
	if into, err = Open("data", Options{FS: vfs.NewMem(), BallastBytes: -1, ChunkBytes: 200}); err != nil {
		return nil, nil, err
	}
	for _, name := range patientNames {
		id, ok := names[name]
		if !ok {
			continue
		}
		to, err := into.Create(name)
		if err != nil {
			return nil, nil, err
		}
		if _, err := a.Rescue(l, id, into, to, func(s Settings) (Settings, error) { return s, nil }); err != nil {
			return nil, nil, errors.Join(err, into.Close())
		}
	}
	return into, l, nil
}

// TestRescueOfGoodStore copies all of it.
func TestRescueOfGoodStore(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	a, err := OpenArchive("data", Options{FS: p.copy()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := newStand(t, Options{ChunkBytes: 200, PriorityRows: 2})
	id, _, err := a.store.Find(patientNames[0])
	if err != nil {
		t.Fatal(err)
	}
	settings := Settings{"rules": []byte("x")}
	if _, err := a.Rescue(&inspect.Losses{}, id, s.Store, s.id, func(Settings) (Settings, error) { return settings, nil }); err != nil {
		t.Fatal(err)
	}
	if got, want := s.export("/"), p.texts[patientNames[0]+" /"]; got != want {
		t.Errorf("rescued %.300s, want %.300s", got, want)
	}
	if got, err := s.Live(s.id).Settings(); err != nil || string(got["rules"]) != "x" {
		t.Errorf("the settings are %q, %v", got, err)
	}
	if err := inspect.CheckLog(s.Live(s.id).reader, s.opts.Now().UnixMilli(), func(f inspect.Flaw) bool { t.Error(f.Err); return true }); err != nil {
		t.Error(err)
	}
	s.checkIndexes() // with what the first priorities left to be built
	s = useDatabase(t, s.Store, "db")
	s.buildAll()
	s.checkIndexes()
}

// TestRescueIntoFullDisk fails, and does not wait for space.
func TestRescueIntoFullDisk(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	a, err := OpenArchive("data", Options{FS: p.copy()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, disk := range []int32{diskLow, diskFull} {
		s := newStand(t, Options{})
		s.health.disk.Store(disk)
		_, err = a.Rescue(&inspect.Losses{}, 1, s.Store, s.id, func(Settings) (Settings, error) { return Settings{"rules": []byte("x")}, nil })
		if !errors.Is(err, ErrNoSpace) {
			t.Errorf("Rescue = %v, want %v", err, ErrNoSpace)
		}
		settings, err := s.Live(s.id).Settings()
		if full := disk == diskFull; err != nil || (len(settings) == 0) != full {
			t.Errorf("the settings are %q, %v; the disk is full: %t", settings, err, full)
		}
	}
}
