package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/layout"
)

// contents returns the files below a directory with what they hold, directories
// with a slash.
func contents(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	files, err := readAll(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readAll(fs vfs.FS, dir string) (map[string]string, error) {
	files := map[string]string{}
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		full := fs.PathJoin(dir, name)
		below, err := readAll(fs, full)
		if err == nil {
			files[full+"/"] = ""
			maps.Copy(files, below)
			continue
		}
		f, err := fs.Open(full)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		files[full] = string(text)
	}
	return files, nil
}

func writeFile(t testing.TB, fs vfs.FS, name, text string) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write([]byte(text))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func makeDirs(t testing.TB, fs vfs.FS, dir string) {
	t.Helper()
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// expectRefusal opens a directory that must be refused, and left as it was.
func expectRefusal(t *testing.T, fs vfs.FS, want error) {
	t.Helper()
	before := contents(t, fs, "data")
	s, err := Open("data", Options{FS: fs})
	if err == nil {
		s.Close()
		t.Fatalf("Open succeeded, want %v", want)
	}
	if !errors.Is(err, want) {
		t.Errorf("Open = %v, want %v", err, want)
	}
	if after := contents(t, fs, "data"); !maps.Equal(before, after) {
		t.Errorf("the directory held %q, and holds %q after it was refused",
			slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
}

func TestForeignDirectory(t *testing.T) {
	for _, name := range []string{"notes.txt", "store", "CURRENT", "durable", "ballast"} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			makeDirs(t, fs, "data")
			writeFile(t, fs, "data/"+name, "mine")
			expectRefusal(t, fs, ErrForeign)
		})
	}
}

// TestRootOfFileSystem: a data directory may be the root of a file system, which has a directory of its own there.
func TestRootOfFileSystem(t *testing.T) {
	fs := vfs.NewMem()
	makeDirs(t, fs, "data/lost+found")
	for range 2 {
		s, err := Open("data", Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForeignStore: somebody copied a Pebble of his own into the directory.
func TestForeignStore(t *testing.T) {
	fs := vfs.NewMem()
	s := openStand(t, Options{FS: fs})
	s.close()
	if err := fs.RemoveAll("data/store"); err != nil {
		t.Fatal(err)
	}
	db, err := pebble.Open("data/store", s.pebbleOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("k"), []byte("v"), pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("data", Options{FS: fs}); !errors.Is(err, ErrForeign) {
		t.Fatalf("Open = %v, want %v", err, ErrForeign)
	}
	if db, err = pebble.Open("data/store", s.pebbleOptions(fs)); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	value, closer, err := db.Get([]byte("k"))
	if err != nil || string(value) != "v" {
		t.Fatalf("the foreign row is %q, %v", value, err)
	}
	closer.Close()
}

func TestEmptyDirectoryIsTaken(t *testing.T) {
	for _, name := range []string{"", datadir.LockFile, datadir.MarkerFile + ".tmp"} {
		fs := vfs.NewMem()
		makeDirs(t, fs, "data")
		if name != "" {
			writeFile(t, fs, "data/"+name, "")
		}
		newStand(t, Options{FS: fs}).put("a", "1")
	}
}

// A refusing file system does not take some operations.
func refusing(fs vfs.FS, reason error, kinds ...errorfs.OpKind) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if slices.Contains(kinds, op.Kind) {
			return &os.PathError{Op: "open", Path: op.Path, Err: reason}
		}
		return nil
	}))
}

// TestUnwritableDirectory: the error says what is wrong, and not that somebody
// else uses the directory.
func TestUnwritableDirectory(t *testing.T) {
	tests := []struct {
		name   string
		reason error
		kinds  []errorfs.OpKind
	}{
		{"no lock", syscall.EACCES, []errorfs.OpKind{errorfs.OpLock}},
		{"read-only", syscall.EROFS, []errorfs.OpKind{errorfs.OpLock, errorfs.OpCreate}},
		{"no files", syscall.EACCES, []errorfs.OpKind{errorfs.OpCreate}},
		{"full", syscall.ENOSPC, []errorfs.OpKind{errorfs.OpCreate}},
		{"unreadable", syscall.EACCES, []errorfs.OpKind{errorfs.OpList}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fs := vfs.NewMem()
			makeDirs(t, fs, "data")
			_, err := Open("data", Options{FS: refusing(fs, test.reason, test.kinds...)})
			if !errors.Is(err, test.reason) || errors.Is(err, ErrInUse) || errors.Is(err, ErrDamaged) {
				t.Errorf("Open = %v, want %v alone", err, test.reason)
			}
			newStand(t, Options{FS: fs}).put("a", "1") // the next start may succeed
		})
	}
	t.Run("no parent", func(t *testing.T) {
		_, err := Open("data", Options{FS: refusing(vfs.NewMem(), syscall.EACCES, errorfs.OpMkdirAll)})
		if !errors.Is(err, os.ErrPermission) {
			t.Errorf("Open = %v, want %v", err, os.ErrPermission)
		}
	})
	t.Run("real", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(dir, 0o700) }() // so that it can be removed
		if f, err := os.Create(filepath.Join(dir, "x")); err == nil {
			f.Close()
			t.Skip("this user may write everywhere")
		}
		if _, err := Open(dir, Options{}); !errors.Is(err, os.ErrPermission) || errors.Is(err, ErrInUse) {
			t.Errorf("Open = %v, want %v", err, os.ErrPermission)
		}
	})
}

func TestDirectoryInUse(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "real": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			first := openStand(t, Options{FS: fs})
			first.put("a", "1")
			if _, err := Open(first.dir.Path, Options{FS: fs}); !errors.Is(err, ErrInUse) {
				t.Errorf("the second Open = %v, want %v", err, ErrInUse)
			}
			first.put("b", "2")
			first.expect("/", `{"a":1,"b":2}`)
			dir := first.dir.Path
			first.close()
			again, err := Open(dir, Options{FS: fs, BallastBytes: -1})
			if err != nil {
				t.Fatalf("Open after Close = %v", err)
			}
			defer again.Close()
			useDatabase(t, again, "db").expect("/", `{"a":1,"b":2}`)
		})
	}
}

func TestNewerDirectory(t *testing.T) {
	fs := vfs.NewMem()
	s := openStand(t, Options{FS: fs})
	s.put("a", "1")
	s.close()
	for text, want := range map[string]error{
		"livetree data directory, format 6\n":                      ErrNewer,
		"livetree data directory, format 18446744073709551615\n":   ErrNewer,
		"livetree data directory, format 18446744073709551616\n":   ErrDamaged,
		"livetree data directory, format 1":                        ErrDamaged,
		"livetree data directory, format 1\nand more\n":            ErrDamaged,
		"livetree data directory, format -1\n":                     ErrDamaged,
		"":                                                         ErrDamaged,
		strings.Repeat("livetree data directory, format 1\n", 200): ErrDamaged,
	} {
		writeFile(t, fs, "data/"+datadir.MarkerFile, text)
		expectRefusal(t, fs, want)
	}
	writeFile(t, fs, "data/"+datadir.MarkerFile, "livetree data directory, format 1\n")
	newStand(t, Options{FS: fs}).expect("/", `{"a":1}`)
}

// TestNewerStore: the marker is that of this version, but not the rows. (Pebble
// has to be opened to see that, which changes its files, but no row.)
func TestNewerStore(t *testing.T) {
	fs := vfs.NewMem()
	s := openStand(t, Options{FS: fs})
	s.put("a", "1")
	if err := s.db.Set(layout.FormatKey, binary.BigEndian.AppendUint32(nil, layout.FormatVersion+1), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	before := pebbleRows(t, s.db)
	s.close()
	if _, err := Open("data", Options{FS: fs}); !errors.Is(err, ErrNewer) {
		t.Fatalf("Open = %v, want %v", err, ErrNewer)
	}
	db, err := pebble.Open("data/store", s.pebbleOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if after := pebbleRows(t, db); !maps.Equal(before, after) {
		t.Errorf("%d rows became %d, or others", len(before), len(after))
	}
}

func pebbleRows(t testing.TB, db *pebble.DB) map[string]string {
	t.Helper()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		rows[string(it.Key())] = string(it.Value())
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestStoreIsMissing: what was committed is gone, and nobody may start anew in
// its place.
func TestStoreIsMissing(t *testing.T) {
	for name, remove := range map[string]func(fs vfs.FS) error{
		"directory": func(fs vfs.FS) error { return fs.RemoveAll("data/store") },
		"files": func(fs vfs.FS) error {
			return errors.Join(fs.RemoveAll("data/store"), fs.MkdirAll("data/store", 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := openStand(t, Options{FS: fs})
			s.put("a", "1")
			s.close()
			if err := remove(fs); err != nil {
				t.Fatal(err)
			}
			expectRefusal(t, fs, ErrDamaged)
		})
	}
}

// A stopAt is a disk that is copied as a power cut would leave it, right before
// one of its operations.
type stopAt struct {
	disk   *vfs.MemFS
	left   atomic.Int64
	config vfs.CrashCloneCfg
	kept   atomic.Pointer[vfs.MemFS]
}

func (s *stopAt) String() string { return "stop" }

// isCut reports whether the copy is made, or being made: what ends from then on need not be in it.
func (s *stopAt) isCut() bool { return s.left.Load() <= 0 }

func (s *stopAt) MaybeError(op errorfs.Op) error {
	if dir, name := path.Split(op.Path); op.Kind == errorfs.OpCreate && strings.HasPrefix(name, "marker.manifest.") {
		// Pebble relies on names that come in order in one place: see
		// TestPowerLoss of package engine.
		f, err := s.disk.OpenDir(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && s.left.Add(-1) == 0 {
		s.kept.Store(s.disk.CrashClone(s.config))
	}
	return nil
}

// TestMakingIsCutShort cuts the power at every operation while a directory is
// made and the first commits are stored. The next start must succeed, find what
// was promised, and serve a log in which damage is noticed.
func TestMakingIsCutShort(t *testing.T) {
	t.Parallel()
	step := 1
	if testing.Short() || raceEnabled {
		step = 7
	}
	cuts := 0
	for _, percent := range []int{0, 50, 100} {
		for n := 1 + rand.IntN(step); ; n += step {
			if !cutMaking(t, percent, n) {
				break
			}
			cuts++
		}
	}
	t.Logf("%d cuts", cuts)
	if cuts < 100/step {
		t.Errorf("there were only %d operations to cut at", cuts)
	}
}

// cutMaking cuts the power before the n-th operation; it reports whether there
// is one.
func cutMaking(t *testing.T, percent, n int) bool {
	seed := rand.Uint64()
	disk := vfs.NewCrashableMem()
	stop := &stopAt{disk: disk, config: vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 0))}}
	stop.left.Store(int64(n))
	promised, err := makeDirectoryWithData(errorfs.Wrap(disk, stop), stop.isCut)
	if err != nil {
		t.Fatal(err)
	}
	kept := stop.kept.Load()
	if kept == nil {
		return false
	}
	where := fmt.Sprintf("after a cut at operation %d, %d %% kept, seed %d", n, percent, seed)
	s, err := Open("some/where/data", Options{FS: kept, BallastBytes: -1})
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	defer s.Close()
	if _, found, err := s.Find("db"); err != nil || promised && !found {
		t.Fatalf("%s: the database is found: %t, %v", where, found, err)
	}
	useDatabase(t, s, "db").put("a", "1")
	for _, name := range pebbleLogs(t, kept, "some/where/data/store") {
		if _, err := kept.Stat(name); err != nil {
			continue // Pebble deletes logs that it no longer needs
		}
		for _, typ := range chunkTypes(readFile(t, kept, name)) {
			if typ < 9 {
				t.Fatalf("%s: %s is served and holds a chunk of type %d: damage in it would not be noticed", where, name, typ)
			}
		}
	}
	return true
}

// makeDirectoryWithData makes a directory with a database. It reports whether
// the database was made before the cut.
func makeDirectoryWithData(fs vfs.FS, isCut func() bool) (promised bool, err error) {
	s, err := Open("some/where/data", Options{FS: fs, BallastBytes: -1})
	if err != nil {
		return false, err
	}
	_, err = s.Create("db")
	promised = !isCut()
	return promised, errors.Join(err, s.Close())
}

// pebbleLogs returns the logs in a directory of Pebble that hold something.
func pebbleLogs(t testing.TB, fs vfs.FS, dir string) []string {
	t.Helper()
	var logs []string
	for name, text := range contents(t, fs, dir) {
		if strings.HasSuffix(name, ".log") && text != "" {
			logs = append(logs, name)
		}
	}
	return logs
}

// TestLastMillisIsTheLatest: the newest commit need not have the latest time.
func TestLastMillisIsTheLatest(t *testing.T) {
	now, fs := newClock(), vfs.NewMem()
	s := openStand(t, Options{FS: fs, Now: now.now})
	s.put("a", "1")
	now.advance(20 * time.Millisecond)
	latest := now.now().UnixMilli()
	s.put("b", "2")
	now.advance(-10 * time.Millisecond)
	s.put("c", "3")
	s.close()
	for range 2 {
		s = openStand(t, Options{FS: fs, Now: now.now})
		if got := s.LastMillis(); got != latest {
			t.Errorf("LastMillis = %d, want %d", got, latest)
		}
		s.put("d", "4") // still earlier
		s.close()
	}
}
