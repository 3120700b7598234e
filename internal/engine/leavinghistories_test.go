package engine_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
)

var leavingRounds = flag.Int("leave.rounds", 60, "how many random histories of what connections leave end in a kill")

// TestKilledHistories kills the process at a random operation of its disk under random histories of
// connections that leave increments, take some back, and go; and in some the next process, while
// it makes what was left. Each increment is made once if it was answered, and never if it was
// taken back.
func TestKilledHistories(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	cuts, unknown, counters := 0, 0, 0
	for round := range *leavingRounds {
		h := newKilledHistory(rand.New(rand.NewPCG(seed, uint64(round))))
		cut := h.run(t)
		if t.Failed() {
			t.Fatalf("seed %d, round %d:\n%s", seed, round, strings.Join(h.requests, "\n"))
		}
		counters += len(h.told)
		for _, c := range h.told {
			if c.least < c.most {
				unknown++
			}
		}
		if cut {
			cuts++
		}
	}
	t.Logf("killed %d times; of %d counters %d may have been left or not", cuts, counters, unknown)
	if *leavingRounds >= 60 && cuts < *leavingRounds/4 {
		t.Errorf("killed %d times, want more", cuts)
	}
}

// A killedHistory is some connections and what their clients know.
type killedHistory struct {
	rng          *rand.Rand
	openDatabase enginetest.OpenFunc
	leavings     []*engine.Leaving
	requests     []string

	mu       sync.Mutex
	counters []*leftCounter
	told     []leftCounter // as they were at the kill
}

// A leftCounter is between two numbers when all that was left is made.
type leftCounter struct {
	owner, least, most int
	twin               int // that came in the same request; itself if there is none
}

func newKilledHistory(rng *rand.Rand) *killedHistory {
	return &killedHistory{rng: rng, openDatabase: []enginetest.OpenFunc{enginetest.OpenDatabase, enginetest.OpenTiny, enginetest.OpenGroups}[rng.IntN(3)]}
}

// note keeps what clients know at the kill.
func (h *killedHistory) note() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.counters {
		h.told = append(h.told, *c)
	}
}

// run lives the history on a disk, kills it, and checks what the next process makes of it.
func (h *killedHistory) run(t *testing.T) (cut bool) {
	t.Helper()
	keep := h.rng.IntN(2) * 100
	kills := rand.New(rand.NewPCG(h.rng.Uint64(), 0)) // for the goroutine whose operation is the last
	first := &cutter{disk: vfs.NewCrashableMem(), keep: keep, rng: kills, note: h.note}
	f := openCut(t, first.fileSystem(), h.openDatabase)
	first.left.Store(1 + h.rng.Int64N(40))
	for range 5 + h.rng.IntN(20) {
		h.step(t, f)
	}
	first.once.Do(func() { // it is killed when all is done
		h.note()
		first.kept.Store(first.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: kills}))
	})
	cut = first.left.Load() <= 0
	f.CloseAll()
	second := &cutter{disk: first.kept.Load(), keep: keep, rng: kills}
	f = openCut(t, second.fileSystem(), h.openDatabase)
	second.left.Store(1 + h.rng.Int64N(12))
	runAll(t, f)
	if again := second.kept.Load(); again != nil {
		f.CloseAll()
		f = openCut(t, again, h.openDatabase)
		runAll(t, f)
	}
	h.check(t, f)
	f.CloseAll()
	return cut
}

// step makes one request of one connection, or has it go and another come.
func (h *killedHistory) step(t *testing.T, f *fixture) {
	t.Helper()
	for len(h.leavings) < 3 {
		h.leavings = append(h.leavings, f.NewLeaving())
	}
	who := h.rng.IntN(len(h.leavings))
	l := h.leavings[who]
	switch h.rng.IntN(8) {
	case 0:
		h.requests = append(h.requests, fmt.Sprint(who, " goes"))
		if made, err := l.Run(context.Background()); err != nil || made.Kept+made.Dropped > 0 {
			t.Errorf("Run = %+v, %v", made, err)
		}
		h.know(func() {
			for _, c := range h.counters {
				if c.owner == who {
					c.owner = -1
				}
			}
		})
		h.leavings[who] = f.NewLeaving()
	case 1, 2:
		h.cancel(t, f, who)
	case 3:
		a, b := h.counter(who), h.counter(who)
		h.know(func() { h.counters[a].twin, h.counters[b].twin = b, a })
		left := h.ask(t, f, who, fmt.Sprintf(`PATCH /n {"c%d":%s,"c%d":%s}`, a, plusOne, b, plusOne))
		h.know(func() { h.counters[a].answer(left); h.counters[b].answer(left) })
	default:
		a := h.counter(who)
		left := h.ask(t, f, who, fmt.Sprintf(`PUT /n/c%d %s`, a, plusOne))
		h.know(func() { h.counters[a].answer(left) })
	}
}

// know changes what clients know.
func (h *killedHistory) know(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// answer notes whether the counter was left, or that was refused.
func (c *leftCounter) answer(left bool) {
	if left {
		c.least = 1
	} else {
		c.most = 0
	}
}

const plusOne = `{".sv":{"increment":1}}`

func (h *killedHistory) counter(who int) int {
	h.know(func() { h.counters = append(h.counters, &leftCounter{owner: who, most: 1, twin: len(h.counters)}) })
	return len(h.counters) - 1
}

// cancel takes one of a connection's counters back.
func (h *killedHistory) cancel(t *testing.T, f *fixture, who int) {
	t.Helper()
	for i, c := range h.counters {
		if c.owner != who || c.most == 0 || h.rng.IntN(2) == 0 {
			continue
		}
		h.know(func() {
			h.counters[c.twin].twin, c.twin = c.twin, i
			c.least = 0
		})
		if h.ask(t, f, who, fmt.Sprintf("CANCEL /n/c%d", i)) {
			h.know(func() { c.most = 0 })
		}
		return
	}
}

// ask makes a request, and reports false if it is refused because too much is left already.
func (h *killedHistory) ask(t *testing.T, f *fixture, who int, request string) bool {
	t.Helper()
	h.requests = append(h.requests, fmt.Sprint(who, " ", request))
	l := &leaver{h.leavings[who], f, admin}
	if err := l.ask(request); err != nil {
		h.requests[len(h.requests)-1] += " = " + err.Error()
		return false
	}
	return true
}

// check holds the counters against what clients knew at the kill.
func (h *killedHistory) check(t *testing.T, f *fixture) {
	t.Helper()
	counts := make([]string, len(h.told))
	for i, c := range h.told {
		counts[i] = f.Export(fmt.Sprintf("/n/c%d", i))
		switch {
		case counts[i] == "1" && c.most == 1:
		case counts[i] == "null" && c.least == 0:
		default:
			t.Errorf("the counter %d is %s, want %d to %d", i, counts[i], c.least, c.most)
		}
	}
	for i, c := range h.told {
		if counts[i] != counts[c.twin] {
			t.Errorf("of one write there is a half: counter %d is %s, %d is %s", i, counts[i], c.twin, counts[c.twin])
		}
	}
	if rows := f.rows(true); rows != nil {
		t.Errorf("there are still the rows %q", rows)
	}
}
