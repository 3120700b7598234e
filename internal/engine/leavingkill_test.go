package engine_test

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// A cutter is a disk that is copied right before one of its operations, as a kill or a power
// cut would leave it. Its users do not notice, and go on.
type cutter struct {
	disk *vfs.MemFS
	keep int // how much of what was not synced is kept, in percent: 100 is a kill
	rng  *rand.Rand
	left atomic.Int64 // operations until the cut; it never comes if this is 0
	note func()       // called at the cut

	once sync.Once
	kept atomic.Pointer[vfs.MemFS]
}

func (c *cutter) fileSystem() vfs.FS { return errorfs.Wrap(proof.Crashable(c.disk), c) }
func (c *cutter) String() string     { return "cutter" }

// MaybeError implements errorfs.Injector.
func (c *cutter) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && c.left.Add(-1) == 0 {
		c.once.Do(func() {
			if c.note != nil {
				c.note()
			}
			c.kept.Store(c.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.keep, RNG: c.rng}))
		})
	}
	return nil
}

// What a client knows of one of its requests.
const (
	notAsked = iota
	asked    // and not answered
	answered
)

// A tale is what clients know when the process is killed: of each request, by its place.
type tale struct {
	mu    sync.Mutex
	knows []int
	told  []int // as it was at the cut; nil before it
}

func (s *tale) set(i, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knows[i] = to
}

func (s *tale) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = append([]int{}, s.knows...)
	}
}

// killRequests are made one after the other, by two connections. What was left and not taken
// back adds 1 to its counter, once.
var killRequests = []struct {
	connection int
	request    string // RUN: the connection goes
	counters   string // that it is about
}{
	{0, `PUT /n/a {".sv":{"increment":1}}`, "a"},
	{1, `PUT /n/b {".sv":{"increment":1}}`, "b"},
	{0, `PATCH /n {"c":{".sv":{"increment":1}},"d":{".sv":{"increment":1}}}`, "cd"},
	{0, `PUT /denied {".sv":{"increment":1}}`, ""},
	{0, `PUT /n/e {".sv":{"increment":1}}`, "e"},
	{0, `CANCEL /n/e`, "e"},
	{0, `PUT /n/f {".sv":{"increment":1}}`, "f"},
	{0, "RULES", ""},
	{0, "RUN", ""},
	{1, `PUT /n/g {".sv":{"increment":1}}`, "g"},
}

const killRules = `{"rules":{".write":true}}`

// laterRules deny a part of what was left.
const laterRules = `{"rules":{"n":{".write":true}}}`

// live makes the requests, and keeps the tale.
func (s *tale) live(f *fixture) {
	connections := []*engine.Leaving{f.NewLeaving(), f.NewLeaving()}
	who := user(f.T, `{"uid":"ann"}`)
	for i, r := range killRequests {
		l := connections[r.connection]
		s.set(i, asked)
		var err error
		switch r.request {
		case "RUN":
			_, err = l.Run(context.Background())
		case "RULES":
			f.Rule(laterRules)
		default:
			var req engine.Request
			if req, err = leavingRequest(l, r.request); err == nil {
				req.Who = who
				_, err = f.Write(context.Background(), req)
			}
		}
		if err != nil {
			f.T.Errorf("%s: %v", r.request, err)
		}
		s.set(i, answered)
	}
}

// counts returns between which numbers each counter must be, after all that was left is made.
func (s *tale) counts() (least, most map[rune]int) {
	least, most = map[rune]int{}, map[rune]int{}
	for i, r := range killRequests {
		for _, c := range r.counters {
			switch cancels := r.request[0] == 'C'; {
			case cancels && s.told[i] == answered:
				most[c], least[c] = 0, 0
			case cancels && s.told[i] == asked:
				least[c] = 0
			case !cancels && s.told[i] == answered:
				most[c], least[c] = 1, 1
			case !cancels && s.told[i] == asked:
				most[c] = 1
			}
		}
	}
	return least, most
}

func (s *tale) check(t *testing.T, f *fixture) {
	t.Helper()
	least, most := s.counts()
	got := map[rune]string{}
	for _, c := range "abcdefg" {
		text := f.Export(fmt.Sprintf("/n/%c", c))
		got[c] = text
		if want := fmt.Sprint(most[c]); text != want && (least[c] > 0 || text != "null") && !(most[c] == 0 && text == "null") {
			t.Errorf("the counter %c is %s, want %d to %d", c, text, least[c], most[c])
		}
	}
	if got['c'] != got['d'] {
		t.Errorf("of one write there is a half: c is %s, d is %s", got['c'], got['d'])
	}
	if rows := f.rows(true); rows != nil {
		t.Errorf("there are still the rows %q", rows)
	}
}

// openCut opens the database of a disk.
func openCut(t *testing.T, fs vfs.FS, openDatabase enginetest.OpenFunc) *fixture {
	t.Helper()
	s, err := store.Open("data", store.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	id, found, err := s.Find("db")
	if err == nil && !found {
		id, err = s.Create("db")
	}
	if err != nil {
		t.Fatal(err)
	}
	clock := state.NewClock(time.Now, crand.Reader, s.LastMillis())
	d, err := openDatabase(s, id, engine.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{&enginetest.Fixture{T: t, Store: s, Clock: clock, Database: d}}
}

// TestKillWhileLeaving kills the process at every operation of its disk while connections
// leave writes, take them back and go; and the next one while it makes what was left. Each
// write is made once.
func TestKillWhileLeaving(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, openDatabase := range map[string]enginetest.OpenFunc{"default": enginetest.OpenDatabase, "tiny": enginetest.OpenTiny} {
		for _, keep := range []int{0, 100} {
			t.Run(fmt.Sprintf("%s keeping %d", name, keep), func(t *testing.T) {
				t.Parallel()
				step := 1
				if testing.Short() || enginetest.Race {
					step = 5
				}
				cuts, again := 0, 0
				for k := 1; ; k += step {
					rng := rand.New(rand.NewPCG(seed, uint64(k)))
					cut, cutAgain := killAt(t, openDatabase, int64(k), keep, rng)
					if t.Failed() {
						t.Fatalf("killed at operation %d", k)
					}
					if !cut {
						break
					}
					if cuts++; cutAgain {
						again++
					}
				}
				t.Logf("killed %d times, and %d times again", cuts, again)
				if cuts < 20/step || again == 0 {
					t.Errorf("killed %d times, and %d times again: want more", cuts, again)
				}
			})
		}
	}
}

// killAt kills the process at an operation, and reports false if it came to its end before.
func killAt(t *testing.T, openDatabase enginetest.OpenFunc, k int64, keep int, rng *rand.Rand) (cut, cutAgain bool) {
	t.Helper()
	story := &tale{knows: make([]int, len(killRequests))}
	first := &cutter{disk: vfs.NewCrashableMem(), keep: keep, rng: rng, note: story.end}
	f := openCut(t, first.fileSystem(), openDatabase)
	f.Rule(killRules)
	first.left.Store(k)
	story.live(f)
	kept := first.kept.Load()
	if kept == nil { // it is killed when all is done
		story.end()
		kept = first.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: rng})
	}
	cut = first.kept.Load() != nil
	f.CloseAll()

	second := &cutter{disk: kept, keep: keep, rng: rng}
	f = openCut(t, second.fileSystem(), openDatabase)
	second.left.Store(1 + rng.Int64N(12))
	runAll(t, f)
	again := second.kept.Load()
	cutAgain = again != nil
	if cutAgain {
		f.CloseAll()
		f = openCut(t, again, openDatabase)
		runAll(t, f)
	}
	story.check(t, f)
	f.CloseAll()
	return cut, cutAgain
}

func runAll(t *testing.T, f *fixture) {
	t.Helper()
	made, err := f.RunLeft(context.Background(), engine.LeftReport{Problem: func(err error) { t.Error(err) }})
	if err != nil || made.Kept > 0 {
		t.Errorf("RunLeft = %+v, %v", made, err)
	}
}

// TestLeftInPages: what many connections have left is made a page of them at a time. Where no more
// can be made, all others are named, so that they can be run again.
func TestLeftInPages(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		disk := vfs.NewCrashableMem()
		f := openCut(t, disk, enginetest.OpenTiny)
		for range 7 {
			f.leaver(admin).leave(`PUT /n {".sv":{"increment":1}}`)
		}
		disk = disk.CrashClone(vfs.CrashCloneCfg{})
		f.CloseAll()
		if full {
			disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1, UsedBytes: 1<<40 - 1})
		}
		f = openCut(t, disk, enginetest.OpenTiny)
		pages, kept := 0, map[string]bool{}
		made, err := f.RunLeft(t.Context(), engine.LeftReport{
			Progress: func(engine.Made) { pages++ },
			Kept:     func(connection string) { kept[connection] = true },
		})
		want := engine.Made{Made: 7}
		if full {
			want = engine.Made{Kept: 7}
		}
		if made != want || err != nil || pages != 4 || len(kept) != want.Kept {
			t.Errorf("RunLeft = %+v, %v in %d pages, %d kept, want %+v in 4 pages", made, err, pages, len(kept), want)
		}
		f.CloseAll()
	}
}
