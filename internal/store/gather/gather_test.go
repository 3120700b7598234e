package gather_test

import (
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/gather"
)

const patience = 5 * time.Second

// A fakeDB has compactions as a test says.
type fakeDB struct {
	*gather.Scheduler

	mu      sync.Mutex
	waiting bool // a compaction waits
	what    pebble.WaitingCompaction
	levels  pebble.Metrics
	begun   []time.Duration // when compactions were begun
	start   time.Time
	refuses bool // to begin, since there is nothing to merge after all
}

// open must be called within a bubble.
func open(t *testing.T) *fakeDB {
	db := &fakeDB{Scheduler: gather.NewScheduler(patience), start: time.Now()}
	db.Register(2, db)
	db.Start(func() *pebble.Metrics {
		db.mu.Lock()
		defer db.mu.Unlock()
		levels := db.levels
		return &levels
	})
	t.Cleanup(db.Unregister)
	synctest.Wait() // until it has seen that nothing waits yet
	return db
}

func (db *fakeDB) GetAllowedWithoutPermission() int { return 1 }

func (db *fakeDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.waiting, db.what
}

func (db *fakeDB) Schedule(pebble.CompactionGrantHandle) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.waiting = false
	if db.refuses {
		return false
	}
	db.begun = append(db.begun, time.Since(db.start))
	db.levels.Levels[0].Sublevels, db.levels.Levels[0].TablesSize = 0, 0
	return true
}

// flush adds a table of a size above the others, and asks for a compaction as Pebble does.
func (db *fakeDB) flush(t *testing.T, bytes int64) {
	db.mu.Lock()
	asks := !db.waiting
	db.waiting = true
	db.levels.Levels[0].Sublevels++
	db.levels.Levels[0].TablesSize += bytes
	db.mu.Unlock()
	db.UpdateGetAllowedWithoutPermission()
	if asks {
		if granted, _ := db.TrySchedule(); granted {
			t.Error("a compaction was begun while Pebble's locks are held")
		}
	}
	synctest.Wait()
}

func (db *fakeDB) expect(t *testing.T, begun ...time.Duration) {
	t.Helper()
	synctest.Wait()
	db.mu.Lock()
	defer db.mu.Unlock()
	if len(db.begun) != len(begun) {
		t.Fatalf("compactions were begun after %v, want after %v", db.begun, begun)
	}
	for i := range begun {
		if db.begun[i] != begun[i] {
			t.Errorf("compactions were begun after %v, want after %v", db.begun, begun)
		}
	}
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // fake time
	synctest.Wait()
}

// TestFlushWaitsForOthers: what is flushed in quick succession is merged at once, and what comes alone after a while.
func TestFlushWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		db.flush(t, 1)
		pass(time.Second)
		db.flush(t, 1)
		db.flush(t, 1)
		db.expect(t)
		db.flush(t, 1)
		db.expect(t, time.Second)
		// While one runs none is begun, and what came meanwhile waits its own time.
		db.flush(t, 1)
		pass(2 * patience)
		db.expect(t, time.Second)
		db.Done()
		pass(patience - 1)
		db.expect(t, time.Second)
		pass(1)
		db.expect(t, time.Second, time.Second+3*patience)
		db.Done()
		db.flush(t, 1)
		pass(patience)
		db.expect(t, time.Second, time.Second+3*patience, time.Second+4*patience)
	})
}

// TestWhatDoesNotWait: a wait is for what was flushed last, and bounded in bytes.
func TestWhatDoesNotWait(t *testing.T) {
	for name, prepare := range map[string]func(db *fakeDB){
		"much was flushed":           func(db *fakeDB) { db.levels.Levels[0].TablesSize = 64 << 20 },
		"a level below is too large": func(db *fakeDB) { db.levels.Levels[5].Score = 1 },
		"only what is deleted goes":  func(db *fakeDB) { db.what.Optional = true },
	} {
		synctest.Test(t, func(t *testing.T) {
			db := open(t)
			prepare(db)
			db.flush(t, 1)
			if len(db.begun) != 1 || db.begun[0] != 0 {
				t.Errorf("%s: compactions were begun after %v, want at once", name, db.begun)
			}
		})
	}
}

// TestTheLowestLevelIsNotTooLarge: Pebble says so of it when it has more than nine tenths of all, as it has mostly. It is merged
// into none.
func TestTheLowestLevelIsNotTooLarge(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	open := func(s pebble.CompactionScheduler) *pebble.DB {
		o := &pebble.Options{FS: fs, LBaseMaxBytes: 64 << 10, L0CompactionThreshold: 2}
		o.Experimental.CompactionScheduler = s
		db, err := pebble.Open("db", o)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	fill := func(db *pebble.DB, rows int) {
		random := mathrand.NewChaCha8([32]byte{}) // so that it is as long when it is compressed
		for i := range rows {
			value := make([]byte, 1000)
			_, _ = random.Read(value) // never fails
			if err := db.Set(fmt.Appendf(nil, "%05d", i), value, pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	db := open(nil)
	fill(db, 1000)
	if err := db.Compact(t.Context(), []byte("0"), []byte("9"), false); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := gather.NewScheduler(time.Hour)
	db = open(s)
	defer db.Close()
	s.Start(db.Metrics)
	for range 3 {
		fill(db, 1)
	}
	m := db.Metrics()
	if lowest := m.Levels[len(m.Levels)-1]; lowest.Score < 1 {
		t.Fatalf("the lowest level has the score %f", lowest.Score)
	}
	if m.Levels[0].TablesCount != 3 || m.Compact.NumInProgress > 0 {
		t.Errorf("of three flushes %d are left, and %d compactions run", m.Levels[0].TablesCount, m.Compact.NumInProgress)
	}
}

// TestStartWaitsForNobody: what was flushed when the database was opened is merged at once, and what comes then waits.
func TestStartWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{Scheduler: gather.NewScheduler(patience), start: time.Now()}
		db.Register(2, db)
		db.flush(t, 1)
		db.expect(t)
		db.Start(func() *pebble.Metrics { return &pebble.Metrics{} })
		t.Cleanup(db.Unregister)
		db.expect(t, 0)
		db.Done()
		pass(time.Second)
		db.flush(t, 1)
		pass(patience - 1)
		db.expect(t, 0)
		pass(1)
		db.expect(t, 0, time.Second+patience)
	})
}

// TestNothingToMergeAfterAll: the next one waits as long as if there had been none.
func TestNothingToMergeAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		db.refuses = true
		db.flush(t, 1)
		pass(patience)
		db.expect(t)
		db.refuses = false
		db.flush(t, 1)
		pass(patience - 1)
		db.expect(t)
		pass(1)
		db.expect(t, 2*patience)
	})
}

// TestNothingIsBegunOutsideOfOpen: neither before Start nor after Unregister.
func TestNothingIsBegunOutsideOfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{Scheduler: gather.NewScheduler(patience), start: time.Now()}
		db.Register(2, db)
		for range 9 {
			db.flush(t, 1)
		}
		pass(2 * patience)
		db.expect(t)
		db.Unregister() // Pebble could not be opened, or is closed without having been started

		db = &fakeDB{Scheduler: gather.NewScheduler(patience), start: time.Now()}
		db.Register(2, db)
		db.Start(func() *pebble.Metrics { return &db.levels })
		db.Unregister()
		for range 9 {
			db.flush(t, 1)
		}
		db.Done()
		pass(2 * patience)
		db.expect(t)
	})
}
