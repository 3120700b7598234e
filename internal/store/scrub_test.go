package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/inspect"
)

// fastScrub reads all that there is at once, and again after an hour.
var fastScrub = Scrub{Every: time.Hour, BytesPerSecond: 1 << 40}

// A movedClock is the real one, moved on.
type movedClock struct{ ahead atomic.Int64 }

func (c *movedClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// waitScrub waits for the end of a round that is later than one before.
func waitScrub(t *testing.T, s *Store, before time.Time) time.Time {
	t.Helper()
	deadline, tick := time.After(60*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if _, ended := s.scrub.stats(); ended.After(before) {
			return ended
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited 60 s for a round of the scrub")
		}
	}
}

// newLibrary returns a disk with a store of several tables that nothing is left to
// do with.
func newLibrary(t *testing.T) *vfs.MemFS {
	t.Helper()
	disk := vfs.NewCrashableMem()
	s := openStand(t, Options{FS: disk})
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 3<<10) // that does not shrink
	for shelf := range 30 {
		books := make([]string, 60)
		for i := range books {
			for k := range text {
				text[k] = byte('a' + rng.IntN(26))
			}
			books[i] = fmt.Sprintf(`"b%d":%q`, i, text)
		}
		s.put(fmt.Sprintf("books/%d", shelf), "{"+strings.Join(books, ",")+"}")
	}
	if err := errors.Join(s.db.Flush(), s.db.Compact(t.Context(), []byte{0}, []byte{0xFF}, false)); err != nil {
		t.Fatal(err)
	}
	s.close()
	syncDir(t, disk, "data/store") // or tables that were deleted are in a clone again, and damage there is nobody's
	return disk
}

// syncDir makes what was deleted in a directory gone for good.
func syncDir(t *testing.T, disk vfs.FS, name string) {
	t.Helper()
	dir, err := disk.OpenDir(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		t.Fatal(err)
	}
}

// cloneDisk returns a copy for a test to damage.
func cloneDisk(disk *vfs.MemFS) *vfs.MemFS {
	return disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
}

func tableFiles(t *testing.T, disk vfs.FS) (names []string) {
	t.Helper()
	for name := range contents(t, disk, "data/store") {
		if strings.HasSuffix(name, ".sst") {
			names = append(names, name)
		}
	}
	return names
}

// flipBit damages one bit of a file.
func flipBit(t *testing.T, disk vfs.FS, name string, at int) {
	t.Helper()
	data := readFile(t, disk, name)
	data[at%len(data)] ^= 1 << (at % 8)
	writeFile(t, disk, name, string(data))
}

// TestScrubFindsDamage flips bits that nobody reads. The scrub must find each, and
// what follows is what follows a read of it.
func TestScrubFindsDamage(t *testing.T) {
	t.Parallel()
	p := newLibrary(t)
	seed, flips := rand.Uint64(), 3
	if testing.Short() || raceEnabled {
		flips = 1
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, name := range tableFiles(t, p) {
		for range flips {
			at := rng.IntN(len(readFile(t, p, name)))
			disk := cloneDisk(p)
			flipBit(t, disk, name, at)
			told := &transcript{}
			s, err := Open("data", Options{FS: disk, BallastBytes: -1, Logger: told.logger(), Scrub: fastScrub})
			if errors.Is(err, ErrDamaged) {
				continue // the metadata was in that block
			}
			if err != nil {
				t.Fatal(err)
			}
			waitScrub(t, s, time.Time{})
			file := strings.TrimPrefix(name, "data/")
			if err := s.Damage(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), file) {
				t.Errorf("seed %d: bit %d of %s: Damage = %v, want that it is found", seed, at, name, err)
			}
			if err := s.Admit(putWrite(t, "x", "1")); !errors.Is(err, ErrDamaged) {
				t.Errorf("Admit after damage was found = %v, want %v", err, ErrDamaged)
			}
			if s.Stats().Damages == 0 {
				t.Error("damage was not counted")
			}
			for _, want := range []string{"level=ERROR", "code=damaged", "file=" + file, "from=", "to="} {
				if !strings.Contains(told.String(), want) {
					t.Errorf("seed %d: bit %d of %s: the log lacks %s:\n%s", seed, at, name, want, told)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestScrubOfGoodTables finds nothing, in round after round.
func TestScrubOfGoodTables(t *testing.T) {
	t.Parallel()
	p := newLibrary(t)
	clock := &movedClock{}
	s, err := Open("data", Options{FS: cloneDisk(p), BallastBytes: -1, Now: clock.now, Scrub: fastScrub})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ended := waitScrub(t, s, time.Time{})
	for range 2 {
		clock.ahead.Add(int64(fastScrub.Every))
		ended = waitScrub(t, s, ended)
	}
	stats := s.Stats()
	if s.Damage() != nil || stats.Damages != 0 || stats.ScrubProgress != 1 || stats.Scrubbed.IsZero() {
		t.Errorf("Damage = %v, stats = %d damages, progress %v, scrubbed %v", s.Damage(), stats.Damages, stats.ScrubProgress, stats.Scrubbed)
	}
	if text := string(readFile(t, s.opts.FS, "data/"+scrubFile)); !strings.HasPrefix(text, "scrub began ") {
		t.Errorf("the file of the scrub is %q", text)
	}
}

// TestScrubGoesOnAfterRestart: a round that was interrupted does not read again
// what it has read, and its time is that of its begin.
func TestScrubGoesOnAfterRestart(t *testing.T) {
	t.Parallel()
	p := newLibrary(t)
	disk := cloneDisk(p)
	clock := &movedClock{}
	open := func(rate int64) *Store {
		t.Helper()
		s, err := Open("data", Options{FS: disk, BallastBytes: -1, Now: clock.now, Scrub: Scrub{fastScrub.Every, rate}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// A scrub of a byte a second comes to its first block.
	s := open(1)
	for late := time.Now().Add(time.Minute); s.scrub.read.Load() == 0; {
		if time.Now().After(late) {
			t.Fatal("the scrub reads nothing for a minute")
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // another goroutine reads
	}
	all, err := inspect.Tables(s.db)
	if err != nil || len(all) < 2 {
		t.Fatalf("tables: %v, %v", all, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := parseScrubRound(string(readFile(t, disk, "data/"+scrubFile)))
	if err != nil || !r.running() || r.done != 0 || r.last < all[len(all)-1].Number {
		t.Fatalf("the round that was interrupted is %v, %v", r, err)
	}
	// Suppose it had read the first table.
	r.done, r.bytes = all[0].Number, uint64(all[0].Bytes)
	writeFile(t, disk, "data/"+scrubFile, r.String())
	flipBit(t, disk, fmt.Sprintf("data/store/%s", all[0].Name()), int(all[0].Bytes/3))
	clock.ahead.Add(int64(time.Minute))
	s = open(1 << 40)
	ended := waitScrub(t, s, time.Time{})
	if err := s.Damage(); err != nil {
		t.Errorf("the first table was read again: %v", err)
	}
	if got := s.scrub.round.began; got != r.began {
		t.Errorf("the round began at %d, want %d", got, r.began)
	}
	clock.ahead.Add(int64(fastScrub.Every))
	waitScrub(t, s, ended)
	if err := s.Damage(); err == nil {
		t.Error("the next round has not read the first table")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestScrubStateThatMakesNoSense is taken for none.
func TestScrubStateThatMakesNoSense(t *testing.T) {
	t.Parallel()
	p := newLibrary(t)
	for _, text := range []string{"", "scrub", "scrub began 1 last 2 done 3 bytes 4 ended", "scrub began -1 last 2 done 3 bytes 4 ended 5\n",
		"scrub began 99999999999999 last 2 done 2 bytes 4 ended 99999999999999\n"} {
		disk := cloneDisk(p)
		writeFile(t, disk, "data/"+scrubFile, text)
		flipBit(t, disk, tableFiles(t, disk)[0], 999)
		s, err := Open("data", Options{FS: disk, BallastBytes: -1, Scrub: fastScrub})
		if errors.Is(err, ErrDamaged) {
			continue
		}
		if err != nil {
			t.Fatalf("with %q: %v", text, err)
		}
		deadline := time.Now().Add(60 * time.Second)
		for s.Damage() == nil && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond) //nolint:forbidigo // another goroutine reads
		}
		if s.Damage() == nil {
			t.Errorf("with %q the scrub has not found the damage", text)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestScrubOfTablesThatVanish: one that a compaction has replaced is no damage,
// one that is missed is.
func TestScrubOfTablesThatVanish(t *testing.T) {
	t.Parallel()
	p := newLibrary(t)
	disk := cloneDisk(p)
	s, err := Open("data", Options{FS: disk, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before, err := inspect.Tables(s.db)
	if err != nil {
		t.Fatal(err)
	}
	// What nobody else reads is not in the cache afterwards, either.
	cached := s.db.Metrics().BlockCache
	for _, t := range before {
		s.scrub.check(t)
	}
	if now := s.db.Metrics().BlockCache; now.Size > cached.Size+before[0].Bytes/10 { // Pebble itself reads a bit
		t.Errorf("the block cache was %+v and is %+v, want no tables in it", cached, now)
	}
	useDatabase(t, s, "db").put("books/5", "1")
	if err := errors.Join(s.db.Flush(), s.db.Compact(t.Context(), []byte{0}, []byte{0xFF}, false)); err != nil {
		t.Fatal(err)
	}
	gone := 0
	for _, old := range before {
		if !s.scrub.inUse(old) {
			gone++
			_ = disk.Remove("data/" + old.File()) // Pebble may have done it
		}
		s.scrub.check(old)
	}
	if gone == 0 || s.Damage() != nil {
		t.Errorf("%d tables were replaced, Damage = %v, want some and none", gone, s.Damage())
	}
	after, err := inspect.Tables(s.db)
	if err != nil || len(after) == 0 {
		t.Fatalf("tables: %v, %v", after, err)
	}
	if err := disk.Remove("data/" + after[0].File()); err != nil {
		t.Fatal(err)
	}
	s.scrub.check(after[0])
	if err := s.Damage(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), after[0].File()) {
		t.Errorf("Damage after a table in use was removed = %v", err)
	}
}
