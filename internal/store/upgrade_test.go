package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestUpgradeIsCutShort cuts the power at every operation while a directory of each
// version is opened, is raised to later versions by commits that need them, and is
// closed. The next start must find a whole store with all that was acknowledged, and
// the marker must keep out every version that cannot read the rows.
func TestUpgradeIsCutShort(t *testing.T) {
	t.Parallel()
	versions, err := filepath.Glob(filepath.Join(goldenDir, "v*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		t.Run(filepath.Base(version), func(t *testing.T) {
			t.Parallel()
			step := 3
			if testing.Short() || raceEnabled {
				step = 17
			}
			cuts := 0
			for n := 1 + rand.IntN(step); cutUpgrade(t, version, n, rand.Uint64()); n += step {
				cuts++
			}
			t.Logf("%d cuts", cuts)
			if cuts < 50/step {
				t.Errorf("there were only %d operations to cut at", cuts)
			}
		})
	}
}

// upgradeSteps are commits, some of which need a later version than those before.
var upgradeSteps = []func(s *Store, t testing.TB){
	func(s *Store, t testing.TB) {
		main := useDatabase(t, s, "main")
		main.indexes, main.author = goldenIndexes["main"], tree.Author{By: tree.ByUID, UID: "ann"}
		main.put("upgraded", `"by ann"`)
	},
	func(s *Store, t testing.TB) { useDatabase(t, s, "due") }, // versions before have none: it is made
	func(s *Store, t testing.TB) {
		due := useDatabase(t, s, "due")
		due.indexes = goldenIndexes["due"]
		due.put("sessions/upgraded", `{"t":1700000000000}`)
	},
	func(s *Store, t testing.TB) {
		last, err := AppliedOf(s, 3)
		if err == nil {
			err = CommitRecord(s, nil, Applied{Shard: 3, Number: last.Number + 1, Revision: last.Revision + 1, Tenure: 1, Digest: [16]byte{4}})
		}
		if err != nil {
			t.Fatal(err)
		}
		done := make(shown)
		if err := s.Barrier(done); err != nil {
			t.Fatal(err)
		}
		<-done
	},
}

// cutUpgrade cuts the power before the n-th operation; it reports whether there is one.
func cutUpgrade(t *testing.T, version string, n int, seed uint64) bool {
	rng := rand.New(rand.NewPCG(seed, 0))
	disk := vfs.NewCrashableMem()
	copyIntoMemory(t, disk, filepath.Join(version, "data"))
	syncAll(t, disk, "data")
	stop := &stopAt{disk: disk, config: vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * rng.IntN(3), RNG: rng}}
	stop.left.Store(int64(n))
	opts := Options{FS: errorfs.Wrap(disk, stop), Now: newClock().now, BallastBytes: -1}
	s, err := Open("data", opts)
	if err != nil {
		t.Fatal(err)
	}
	states, promised := []string{exports(dump(t, s))}, 0
	for _, commit := range upgradeSteps {
		commit(s, t)
		if !stop.isCut() {
			promised = len(states)
		}
		states = append(states, exports(dump(t, s)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kept := stop.kept.Load()
	if kept == nil {
		return false
	}
	where := fmt.Sprintf("after a cut at operation %d, seed %d", n, seed)
	opts.FS = kept
	s = openGolden(t, opts)
	if found := exports(dump(t, s)); !slices.Contains(states[promised:min(promised+2, len(states))], found) {
		t.Errorf("%s: the store is none of those after %d steps and the next", where, promised)
	}
	checkMarker(t, s, kept, where)
	for _, commit := range upgradeSteps {
		commit(s, t)
	}
	if found := exports(dump(t, s)); found != states[len(states)-1] {
		t.Errorf("%s: upgraded again, the store is another", where)
	}
	checkMarker(t, s, kept, where)
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", where, err)
	}
	return !t.Failed()
}

// checkMarker wants the marker to name a version that reads all rows.
func checkMarker(t *testing.T, s *Store, fs vfs.FS, where string) {
	t.Helper()
	row, err := metaRow(s.db, layout.FormatKey, 4)
	if err != nil {
		t.Fatal(err)
	}
	text := string(readFile(t, fs, "data/"+datadir.MarkerFile))
	if marked, err := datadir.ParseNumber(text, datadir.MarkerText); err != nil || marked < uint64(binary.BigEndian.Uint32(row)) {
		t.Errorf("%s: the marker says %q, the rows need version %x: %v", where, text, row, err)
	}
}

// syncAll makes all files below a directory durable.
func syncAll(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			syncAll(t, fs, path)
			continue
		}
		f, err := fs.Open(path)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for ; ; dir = fs.PathDir(dir) {
		d, err := fs.OpenDir(dir)
		if err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if dir == fs.PathDir(dir) || dir == "." {
			return
		}
	}
}

// TestOlderVersionTouchesNothing: a directory that a commit has raised is refused by
// versions that cannot read it, by its marker alone.
func TestOlderVersionTouchesNothing(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := openStand(t, Options{FS: fs})
	s.put("a", "1")
	if err := s.Store.apply(s.db.NewBatch(), 0, layout.FormatVersion+1); err != nil { // as a later version would
		t.Fatal(err)
	}
	s.close()
	expectRefusal(t, fs, ErrNewer)
	if _, err := OpenArchive("data", Options{FS: fs}); !errors.Is(err, ErrNewer) {
		t.Errorf("OpenArchive = %v, want %v", err, ErrNewer)
	}
}

// TestNewerPebble: a later version of Pebble has raised its own format, and nothing else says so. That is refused
// and left alone, too; by itself it cannot be told from damage.
func TestNewerPebble(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := openStand(t, Options{FS: fs})
	s.put("a", "1")
	s.close()
	names, err := fs.List("data/store")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "marker.format-version.") {
			if err := fs.Rename("data/store/"+name, "data/store/marker.format-version.000099.999"); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := contents(t, fs, "data")
	if _, err := Open("data", Options{FS: fs}); err == nil || !strings.Contains(err.Error(), "unknown format major version") {
		t.Errorf("Open = %v, want it to name the format of Pebble", err)
	}
	if after := contents(t, fs, "data"); !maps.Equal(before, after) {
		t.Errorf("the directory held %d files, and holds %d or others after it was refused", len(before), len(after))
	}
}

// TestGoldenOnDisk opens a directory of every version in place, on the disk of this machine.
func TestGoldenOnDisk(t *testing.T) {
	t.Parallel()
	versions, err := filepath.Glob(filepath.Join(goldenDir, "v*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(version, "data"))); err != nil {
			t.Fatal(err)
		}
		var states []string
		for range 2 {
			s, err := Open(dir, Options{Now: newClock().now, BallastBytes: -1})
			if err != nil {
				t.Fatalf("%s: %v", version, err)
			}
			states = append(states, exports(dump(t, s)))
			upgradeSteps[0](s, t)
			if err := s.Close(); err != nil {
				t.Errorf("%s: %v", version, err)
			}
		}
		if !strings.Contains(states[1], `"upgraded":"by ann"`) || strings.Contains(states[0], "upgraded") {
			t.Errorf("%s: what was written is not there when it is opened again", version)
		}
	}
}
