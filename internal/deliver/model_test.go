package deliver_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
)

var (
	histories = flag.Int("histories", 60, "how many random histories are run")
	firstSeed = flag.Uint64("seed", 0, "the seed of the first; 0 draws one")
)

// TestHistories runs random histories of writes, receivers that fail, hooks and databases that go, clocks that are set and servers
// that are killed, on virtual time, and compares what was delivered with a model.
func TestHistories(t *testing.T) {
	t.Parallel()
	seed := *firstSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 40)
	}
	for i := range uint64(*histories) {
		synctest.Test(t, func(t *testing.T) { newHistory(t, seed+i).run() })
		if t.Failed() {
			t.Fatalf("go test ./internal/deliver -run TestHistories -histories 1 -seed %d", seed+i)
		}
	}
}

// patterns of the hooks of a history.
var patterns = []string{"/a/$x", "/a/$x", "/$w/$x/b", "/a", "/c/$x/$y", "/a/b/c"}

// A change is what a delivery must say, and when the change was made.
type change struct {
	event         string
	before, after any
	made          time.Time
}

// A key names a delivery. The hook is named by its database and its number, as in ids.
type key struct {
	hook     string
	position uint64
	path     string
}

// A modelHook is a hook that there is.
type modelHook struct{ id, name, pattern string }

// A history is one random run.
type history struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	dice   *rand.Rand // the receiver's; guarded by mu
	disk   *vfs.MemFS
	site   *site
	limits deliver.Limits
	engine *engine.Limits
	offset atomic.Int64 // of the clock
	tree   any
	hooks  []modelHook
	want   map[key]change

	few   bool // locations are bounded
	tight bool // the spool is small
	brief bool // deliveries are given up
	reset bool // the clock was set forward

	mu       sync.Mutex
	mode     int
	life     int // counts the servers
	got      []receipt
	gaps     []receipt
	more     map[string]bool      // hook and position
	peers    map[string]int       // deliveries under way, by hook and location
	gone     map[string]time.Time // when hooks were removed
	replayed map[string]bool      // ids
}

// A receipt is a delivery that came in.
type receipt struct {
	key
	life int
	at   time.Time
	ok   bool
	says delivery
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), dice: rand.New(rand.NewPCG(seed, 2)), disk: vfs.NewCrashableMem(), limits: deliver.DefaultLimits(),
		want: map[key]change{}, more: map[string]bool{}, peers: map[string]int{}, gone: map[string]time.Time{}, replayed: map[string]bool{},
	}
	h.limits.RetryFor, h.limits.MaxPause = 1000*time.Hour, time.Minute
	if h.random.IntN(2) == 0 { // every bound is small
		h.limits.InFlight, h.limits.Total, h.limits.Window, h.limits.Recent, h.limits.Bytes = 2, 3, 3, 2, 200
		h.limits.Share, h.limits.Late, h.limits.MaxPause = 1, 1+h.random.IntN(2), 5*time.Second
	}
	if h.tight = h.random.IntN(3) == 0; h.tight {
		h.limits.Spool = 300 + h.random.Int64N(1500)
	}
	if h.brief = h.random.IntN(3) == 0; h.brief {
		h.limits.RetryFor = time.Duration(1+h.random.IntN(20)) * time.Second
	}
	if h.few = h.random.IntN(3) == 0; h.few {
		limits := engine.DefaultLimits()
		limits.Hooks = hook.Limits{Locations: 2, Looks: 4, ValueBytes: 1 << 20, ReadBytes: 1 << 20}
		h.engine = &limits
	}
	return h
}

func (h *history) run() {
	h.start()
	for range patterns {
		h.addHook()
	}
	for range 10 + h.random.IntN(30) {
		h.step()
	}
	h.setMode(0)
	time.Sleep(time.Second) //nolint:forbidigo // fake time
	for _, m := range h.hooks {
		h.revise(m, func(h *hook.Hook) { h.Paused = "" })
	}
	time.Sleep(5 * time.Minute) //nolint:forbidigo // fake time
	h.checkStored(true)
	h.site.close()
	h.check()
}

func (h *history) start() {
	h.mu.Lock()
	h.life++
	life := h.life
	h.mu.Unlock()
	h.site = openAt(h.t, h.disk, h.limits, h.engine, func(r *http.Request, d delivery) (int, http.Header) { return h.receive(life, r, d) },
		func() time.Time { return time.Now().Round(0).Add(time.Duration(h.offset.Load())) })
}

// step does something.
func (h *history) step() {
	switch n := h.random.IntN(28); {
	case n < 10:
		h.write()
	case n < 12:
		h.burst()
	case n < 14:
		time.Sleep(time.Duration(h.random.IntN(3000)) * time.Millisecond) //nolint:forbidigo // fake time
		h.checkStored(false)
	case n < 15:
		time.Sleep(time.Duration(h.random.IntN(60)) * time.Second) //nolint:forbidigo // fake time
	case n < 18:
		h.setMode(h.random.IntN(7))
	case n < 21:
		h.changeHook()
	case n < 22:
		h.setClock()
	case n < 23:
		h.replay()
	case n < 24:
		h.dropDatabase()
	case n < 27: // killed: what was not synced is lost, all or some of it
		old := h.site
		h.disk = h.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * h.random.IntN(3), RNG: h.random})
		old.close()
		h.start()
	default:
		h.site.close()
		h.start()
	}
}

func (h *history) setMode(mode int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mode = mode
}

// setClock sets the clock of the machine, which the server may not notice.
func (h *history) setClock() {
	step := time.Duration(h.random.Int64N(int64(96*time.Hour))) - 48*time.Hour
	h.reset = h.reset || step > 0
	h.offset.Add(int64(step))
}

// addHook adds a hook under a name that may have been another's.
func (h *history) addHook() {
	d := h.site.database("db")
	for i, pattern := range patterns {
		name := fmt.Sprint("h", i)
		if _, err := engine.Hooks(d).Named(name); err == nil {
			continue
		}
		added := add(h.t, d, name, pattern)
		h.hooks = append(h.hooks, modelHook{fmt.Sprintf("msg_%x-%x", d.Epoch(), added.Number), name, pattern})
		return
	}
}

// changeHook removes a hook, adds one, pauses or resumes one, or has it send elsewhere.
func (h *history) changeHook() {
	if len(h.hooks) == 0 {
		h.addHook()
		return
	}
	i := h.random.IntN(len(h.hooks))
	m := h.hooks[i]
	switch h.random.IntN(5) {
	case 0:
		h.addHook()
	case 1:
		if _, err := engine.RemoveHook(h.t.Context(), h.site.database("db"), m.name); err != nil {
			h.t.Error(err)
		}
		h.forget(m)
		h.hooks = append(h.hooks[:i:i], h.hooks[i+1:]...)
	case 2:
		h.revise(m, func(is *hook.Hook) { is.URL = fmt.Sprintf("https://example.com/%d", h.random.IntN(100)) })
	case 3:
		h.revise(m, func(is *hook.Hook) { is.Paused = hook.ByOperator })
	default:
		h.revise(m, func(is *hook.Hook) { is.Paused = "" })
	}
}

// forget notes that a hook is gone.
func (h *history) forget(m modelHook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[m.id] = time.Now()
}

// dropDatabase drops the database, with its hooks, and makes another of the same name.
func (h *history) dropDatabase() {
	h.site.database("db") // there may be none
	if err := h.site.bases.Drop("db"); err != nil {
		h.t.Error(err)
	}
	for _, m := range h.hooks {
		h.forget(m)
	}
	h.tree, h.hooks = nil, nil
	if h.random.IntN(2) == 0 {
		time.Sleep(time.Second) //nolint:forbidigo // fake time; a receiver may be about to answer
		if s := h.site.runner.Stats(); len(s) > 0 || h.site.runner.Waiting() != 0 {
			h.t.Errorf("seed %d: after a drop there are %+v, and %d bytes wait", h.seed, s, h.site.runner.Waiting())
		}
	}
	for range h.random.IntN(len(patterns) + 1) {
		h.addHook()
	}
}

// replay has some attempts of the past made again.
func (h *history) replay() {
	d := h.site.database("db")
	for _, is := range engine.Hooks(d).Hooks() {
		for _, r := range h.site.runner.Recent("db", is) {
			if h.random.IntN(4) > 0 || r.ID == "gap" {
				continue
			}
			h.mu.Lock()
			h.replayed[r.ID] = true
			h.mu.Unlock()
			_ = h.site.runner.Replay(d, is, r.ID) // it may be gone by now
		}
	}
}

func (h *history) revise(m modelHook, change func(*hook.Hook)) {
	_, err := engine.ReviseHook(h.t.Context(), h.site.database("db"), m.name, func(h *hook.Hook) error {
		change(h)
		return nil
	})
	if err != nil {
		h.t.Error(err)
	}
}

// receive is the receiver. It crashes, stalls, answers 500, says that it is gone, or takes a delivery.
func (h *history) receive(life int, r *http.Request, d delivery) (int, http.Header) {
	parts := strings.Split(d.ID, "-")
	id := parts[0] + "-" + parts[1]
	h.mu.Lock()
	if removed, gone := h.gone[id]; gone && time.Since(removed) > time.Second {
		h.t.Errorf("seed %d: %s came in %v after its hook was removed", h.seed, d.ID, time.Since(removed))
	}
	place := fmt.Sprint(life, id, d.Path, d.Event == "more")
	if h.peers[place]++; h.peers[place] > 1 {
		h.t.Errorf("seed %d: two deliveries of %s are under way", h.seed, place)
	}
	mode, dice := h.mode, h.dice.IntN(4)
	h.mu.Unlock()
	status, header := answerIn(mode, dice, r, d)
	if r.Context().Err() == nil && dice > 1 {
		time.Sleep(time.Duration(dice) * 100 * time.Millisecond) //nolint:forbidigo // fake time
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peers[place]--
	ok := status == http.StatusOK && r.Context().Err() == nil
	is := receipt{key{id, d.Position, d.Path}, life, time.Now(), ok, d}
	switch {
	case d.Event == "more":
		h.more[fmt.Sprint(id, d.Position)] = h.more[fmt.Sprint(id, d.Position)] || ok
	case d.Event == "gap":
		h.gaps = append(h.gaps, is)
	default:
		h.got = append(h.got, is)
	}
	return status, header
}

// answerIn is what a receiver answers that is in a bad way.
func answerIn(mode, dice int, r *http.Request, d delivery) (int, http.Header) {
	switch {
	case mode == 0:
	case mode == 1 || dice == 0:
		return http.StatusInternalServerError, nil
	case mode == 2 && dice == 1:
		<-r.Context().Done() // it stalls
	case mode == 3:
		return http.StatusServiceUnavailable, http.Header{"Retry-After": {"7"}}
	case mode == 4 && strings.HasPrefix(d.Path, "/a/a"):
		return http.StatusBadRequest, nil // it never takes this one
	case mode == 5 && dice == 1:
		return http.StatusGone, nil
	}
	return http.StatusOK, http.Header{}
}
