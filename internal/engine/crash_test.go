package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

var (
	crashCuts = flag.Int("crash.cuts", 120, "how often the power-loss test cuts the power")
	crashTime = flag.Duration("crash.time", 40*time.Second, "when the power-loss test ends even if there were fewer cuts")
	// The seed decides what is asked and when the power is cut, but not how the
	// goroutines run: a failure may need a few attempts to come again.
	crashSeed = flag.Uint64("crash.seed", 0, "the seed of the power-loss test, 0 for a new one")

	figures = proof.NewFigures()
)

// TestPowerLoss cuts the power at random operations of the disk, while writers
// and readers are at work, while the store is opened, or while it is closed;
// goes on with what the disk kept; and holds that against the notes of a
// witness who heard every answer. See machine and witness.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	cuts, limit := *crashCuts, *crashTime
	if testing.Short() {
		cuts = min(cuts, 6)
	}
	if enginetest.Race {
		limit /= 3
	}
	t.Run("default", func(t *testing.T) { cutPower(t, enginetest.OpenDatabase, cuts/3, limit/3) })
	t.Run("tiny", func(t *testing.T) { cutPower(t, enginetest.OpenTiny, cuts/3, limit/3) })
	t.Run("groups", func(t *testing.T) { cutPower(t, enginetest.OpenGroups, cuts/3, limit/3) })
}

// cutPower runs machines until the power was cut so often, or for so long.
func cutPower(t *testing.T, open enginetest.OpenFunc, cuts int, limit time.Duration) {
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("the first machine is that of -crash.seed=%d", seed)
	deadline := time.Now().Add(limit)
	var done tally // since figures were reported, so that a run may be stopped
	for ; cuts > 0 && time.Now().Before(deadline); seed++ {
		before := done.cuts
		if err := runMachine(seed, noPlant, livesPerMachine, open, &done); err != nil {
			t.Fatalf("-crash.seed=%d: %v", seed, err)
		}
		cuts -= done.cuts - before
		if done.cuts >= 500 {
			figures.Report(t, "powerloss", done.figures()...)
			done = tally{}
		}
	}
	figures.Report(t, "powerloss", done.figures()...)
}

// TestPowerLossIsNoticed plants bugs, each of which the witness must notice
// soon: a checker that cannot fail proves nothing.
func TestPowerLossIsNoticed(t *testing.T) {
	t.Parallel()
	plants := map[plant]string{
		dirtyReads: "somebody was told of|older than",
		tornPatch:  "want|but the commits make it|but had to be refused",
		lyingDisk:  "somebody was told of|the database is gone|" + store.ErrDamaged.Error() + "|replaying WAL|the log ends at",
	}
	for planted, want := range plants {
		t.Run(string(planted), func(t *testing.T) {
			t.Parallel()
			const maxCuts = 3000 // most are noticed within a few
			var done tally
			for seed := rand.Uint64(); done.cuts < maxCuts; seed++ {
				err := runMachine(seed, planted, livesPerMachine, enginetest.OpenDatabase, &done)
				if err == nil {
					continue
				}
				if !regexp.MustCompile(want).MatchString(err.Error()) {
					t.Fatalf("seed %d: %q was noticed as %q, want it to say %q", seed, planted, err, want)
				}
				t.Logf("noticed at cut %d: %.200s", done.cuts, err)
				return
			}
			t.Errorf("%q was not noticed in %d cuts", planted, done.cuts)
		})
	}
}

// A plant is a bug to be noticed.
type plant string

const (
	noPlant    plant = ""
	dirtyReads plant = "readers see what is not synced"
	tornPatch  plant = "a PATCH is two commits"
	lyingDisk  plant = "the disk does not sync the log"
)

const (
	livesPerMachine = 5
	writersPerTree  = 4
	readersPerTree  = 2
	opsPerWriter    = 60

	revisionsPerLife = 5
)

// tally counts what a test did.
type tally struct {
	cuts, commits, reads, refused int
	lost                          int // commits that nobody was told of
	opening, closing              int // cuts while the store was opened or closed
}

func (n *tally) figures() []proof.Figure {
	return []proof.Figure{
		proof.Count("cuts", n.cuts), proof.Count("opening", n.opening), proof.Count("closing", n.closing), proof.Count("commits", n.commits),
		proof.Count("unacknowledged", n.lost), proof.Count("reads", n.reads), proof.Count("refused", n.refused),
	}
}

// A machine is a computer with one store on it, which loses its power again and
// again. It is the same machine all along: what it was after one cut is what it
// starts with.
type machine struct {
	rng   *rand.Rand
	seed  uint64
	plant plant
	tally *tally

	disk  *vfs.MemFS
	clock time.Duration // how much its clock is off
	trees [2]*witness
	now   func() time.Time

	// Of this life:

	power *powerSwitch
	store *store.Store
}

// runMachine cuts the power of a new machine several times. The error says what
// the witness did not like.
func runMachine(seed uint64, planted plant, lives int, open enginetest.OpenFunc, done *tally) error {
	m := &machine{
		rng: rand.New(rand.NewPCG(seed, 2)), seed: seed, plant: planted, tally: done,
		disk: vfs.NewCrashableMem(),
	}
	m.now = func() time.Time { return time.Now().Add(m.clock) }
	for i, name := range []string{"one", "two"} {
		m.trees[i] = &witness{name: name, with: open, base: model.New()}
	}
	for life := range lives {
		if err := m.live(life); err != nil {
			return fmt.Errorf("life %d: %w", life, err)
		}
	}
	m.power = &powerSwitch{machine: m, kept: m.disk} // a last look
	err := m.start()
	if err == nil {
		err = m.rest()
	}
	if m.store != nil {
		err = errors.Join(err, m.store.Close())
	}
	if err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}

// rest waits until the machine has nothing left to do.
func (m *machine) rest() error {
	clock := state.NewClock(m.now, rand.NewChaCha8([32]byte{}), m.store.LastMillis())
	for _, w := range m.trees {
		if err := w.begin(m.store, clock); err != nil {
			return err
		}
		defer w.db.Close()
		if err := errors.Join(enginetest.WaitForIndexes(context.Background(), w.db), w.compareRules()); err != nil {
			return err
		}
	}
	return nil
}

// live runs the machine from one start to the next cut.
func (m *machine) live(life int) error {
	m.power = &powerSwitch{machine: m, rng: rand.New(rand.NewPCG(m.seed, uint64(life)))}
	beforeWork := m.rng.IntN(6) == 0
	if beforeWork {
		m.power.cutAfter(1 + m.rng.IntN(60))
	}
	m.power.keepPercent = []int{0, 0, 50, 100}[m.rng.IntN(4)]
	m.clock += []time.Duration{0, -time.Hour, time.Second}[m.rng.IntN(3)]
	err := m.start()
	if err == nil && !beforeWork {
		m.power.cutAfter(1 + m.rng.IntN(scale(500)))
		err = m.work()
	}
	closing := !m.power.isCut()
	if m.store != nil {
		err = errors.Join(err, m.store.Close())
	}
	m.power.cut() // if it has not happened yet
	m.disk = m.power.kept
	for _, w := range m.trees {
		w.open = false // also if it began to listen when it had happened
	}
	m.tally.cuts++
	switch {
	case beforeWork && !closing:
		m.tally.opening++
	case closing:
		m.tally.closing++
	}
	return err
}

// start opens the store and compares it with what the witnesses know.
func (m *machine) start() error {
	m.store = nil
	s, err := store.Open("data", store.Options{
		FS: m.power.fileSystem(m.disk), Now: m.now, CacheBytes: 1 << 20,
		MemTableBytes: 64 << 10, ChunkBytes: []int{-1, 40, 2048}[m.rng.IntN(3)],
		PriorityRows: []int{1, 2, 0}[m.rng.IntN(3)], StepChildren: []int{1, 0}[m.rng.IntN(2)],
	})
	if err != nil {
		return err
	}
	m.store = s
	var newest int64
	for _, w := range m.trees {
		millis, err := w.compare(s, m.tally)
		if err != nil {
			return fmt.Errorf("database %q: %w", w.name, err)
		}
		newest = max(newest, millis)
	}
	if s.LastMillis() < newest {
		return fmt.Errorf("the store says that its newest commit was at %d, but one was at %d: times and push keys could go back",
			s.LastMillis(), newest)
	}
	return nil
}

// work lets writers and readers loose until the power is cut, or they are done.
func (m *machine) work() error {
	clock := state.NewClock(m.now, rand.NewChaCha8([32]byte{byte(m.seed)}), m.store.LastMillis())
	for _, w := range m.trees {
		if err := w.begin(m.store, clock); err != nil {
			return err
		}
		defer w.db.Close()
	}
	var work sync.WaitGroup
	var failures errorList
	for _, w := range m.trees {
		writers := new(atomic.Int64)
		for range writersPerTree {
			client := m.newClient(w)
			writers.Add(1)
			work.Go(func() {
				defer writers.Add(-1)
				for range scale(opsPerWriter) {
					if m.power.isCut() {
						return
					}
					failures.add(client.write())
				}
			})
		}
		work.Go(func() {
			for range scale(revisionsPerLife) {
				if m.power.isCut() {
					return
				}
				failures.add(w.revise())
			}
		})
		for range readersPerTree {
			client := m.newClient(w)
			work.Go(func() {
				for !m.power.isCut() && writers.Load() > 0 {
					failures.add(client.read())
				}
			})
		}
	}
	work.Wait()
	return failures.err()
}

// errorList gathers the failures of several goroutines.
type errorList struct {
	mu   sync.Mutex
	list []error
}

func (l *errorList) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.list = append(l.list, err)
	}
}

func (l *errorList) err() error { return errors.Join(l.list...) }

// What TestPowerLoss found, by itself:

// TestLargeNodeBesideTheSameInteger: 7 and 007 are two keys, though the rows of
// the one begin with the key of the other.
func TestLargeNodeBesideTheSameInteger(t *testing.T) {
	everyLimit(t, func(t *testing.T, f *fixture) {
		large := `"` + strings.Repeat("x", 70<<10) + `"`
		f.Put("a", `{"7":1,"0":{"b":2}}`)
		f.Put("a/007", `{"large":`+large+`}`)
		f.Put("a/-0", `{"large":`+large+`}`)
		if got, want := f.Export("a"), `{"0":{"b":2},"-0":{"large":`+large+`},"7":1,"007":{"large":`+large+`}}`; got != want {
			t.Errorf("/a is %.100s, want %.100s", got, want)
		}
	})
}

// TestNoPushKeyIsAheadOfItsCommit: after a restart the clock starts behind the
// newest commit, and must be behind the newest key then.
func TestNoPushKeyIsAheadOfItsCommit(t *testing.T) {
	var millis atomic.Int64
	f := open(t, store.Options{Now: func() time.Time { return time.UnixMilli(millis.Add(1)) }})
	for range 3 {
		w, err := put(path(t, "list"), "1")
		if err != nil {
			t.Fatal(err)
		}
		c := f.Commit(engine.Request{Write: w, Push: true})
		if at, ok := model.KeyTime(c.Key); !ok || at > c.Millis {
			t.Errorf("a commit at %d has a key of %d", c.Millis, at)
		}
	}
}
