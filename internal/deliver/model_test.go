package deliver_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/tree"
)

var (
	histories = flag.Int("histories", 60, "how many random histories are run")
	firstSeed = flag.Uint64("seed", 0, "the seed of the first; 0 draws one")
)

// TestHistories runs random histories of writes, receivers that fail and servers that are killed, on
// virtual time, and compares what was delivered with a model.
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

// A change is what a delivery must say.
type change struct {
	event         string
	before, after any
}

// A key names a delivery.
type key struct {
	hook     string
	position uint64
	path     string
}

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
	tree   any
	want   map[key]change
	few    bool // locations are bounded

	mu    sync.Mutex
	mode  int
	life  int // counts the servers
	got   []receipt
	more  map[string]bool // hook and position
	peers map[string]int  // deliveries under way, by hook and location
}

// A receipt is a delivery that came in.
type receipt struct {
	key
	life int
	ok   bool
	says delivery
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), dice: rand.New(rand.NewPCG(seed, 2)), disk: vfs.NewCrashableMem(), limits: deliver.DefaultLimits(),
		want: map[key]change{}, more: map[string]bool{}, peers: map[string]int{},
	}
	h.limits.RetryFor, h.limits.MaxPause = 1000*time.Hour, 5*time.Second
	if h.random.IntN(2) == 0 { // every bound is small
		h.limits.InFlight, h.limits.Total, h.limits.Window, h.limits.Recent, h.limits.Bytes = 2, 3, 3, 2, 200
	}
	if h.random.IntN(3) == 0 {
		h.few = true
		limits := engine.DefaultLimits()
		limits.Hooks = hook.Limits{Locations: 2, Looks: 4, ValueBytes: 1 << 20, ReadBytes: 1 << 20}
		h.engine = &limits
	}
	return h
}

func (h *history) run() {
	h.start()
	d := h.site.database("db")
	for i, pattern := range patterns {
		add(h.t, d, fmt.Sprint("h", i), pattern)
	}
	for range 10 + h.random.IntN(30) {
		h.step()
	}
	h.mu.Lock()
	h.mode = 0
	h.mu.Unlock()
	for i := range patterns {
		h.pause(fmt.Sprint("h", i), false)
	}
	time.Sleep(5 * time.Minute) //nolint:forbidigo // fake time
	h.site.close()
	h.check()
}

func (h *history) start() {
	h.mu.Lock()
	h.life++
	life := h.life
	h.mu.Unlock()
	h.site = open(h.t, h.disk, h.limits, h.engine, func(r *http.Request, d delivery) (int, http.Header) { return h.receive(life, r, d) })
}

// step does something.
func (h *history) step() {
	switch n := h.random.IntN(20); {
	case n < 10:
		h.write()
	case n < 12:
		time.Sleep(time.Duration(h.random.IntN(3000)) * time.Millisecond) //nolint:forbidigo // fake time
	case n < 13:
		time.Sleep(time.Duration(h.random.IntN(60)) * time.Second) //nolint:forbidigo // fake time
	case n < 16:
		h.mu.Lock()
		h.mode = h.random.IntN(6)
		h.mu.Unlock()
	case n < 17:
		h.pause(fmt.Sprint("h", h.random.IntN(len(patterns))), h.random.IntN(2) == 0)
	case n < 19: // killed: what was not synced is lost, all or some of it
		old := h.site
		h.disk = h.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * h.random.IntN(3), RNG: h.random})
		old.close()
		h.start()
	default:
		h.site.close()
		h.start()
	}
}

func (h *history) pause(name string, paused bool) {
	_, err := engine.ReviseHook(h.t.Context(), h.site.database("db"), name, func(h *hook.Hook) error {
		h.Paused = map[bool]string{true: hook.ByOperator}[paused]
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// receive is the receiver. It crashes, stalls, answers 500, or takes a delivery.
func (h *history) receive(life int, r *http.Request, d delivery) (int, http.Header) {
	h.mu.Lock()
	place := fmt.Sprint(life, d.Hook, d.Path)
	if h.peers[place]++; h.peers[place] > 1 && d.Event != "more" {
		h.t.Errorf("two deliveries of %s are under way", place)
	}
	mode, dice := h.mode, h.dice.IntN(4)
	h.mu.Unlock()
	status, header := http.StatusOK, http.Header{}
	switch {
	case mode == 0:
	case mode == 1 || dice == 0:
		status = http.StatusInternalServerError
	case mode == 2 && dice == 1:
		<-r.Context().Done() // it stalls
		status = http.StatusOK
	case mode == 3:
		status = http.StatusServiceUnavailable
		header.Set("Retry-After", "7")
	case mode == 4 && strings.HasPrefix(d.Path, "/a/a"):
		status = http.StatusBadRequest // it never takes this one
	}
	if r.Context().Err() == nil && dice > 1 {
		time.Sleep(time.Duration(dice) * 100 * time.Millisecond) //nolint:forbidigo // fake time
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peers[place]--
	k := key{d.Hook, d.Position, d.Path}
	ok := status == http.StatusOK && r.Context().Err() == nil
	if d.Event == "more" {
		if ok {
			h.more[fmt.Sprint(d.Hook, d.Position)] = true
		}
		return status, header
	}
	h.got = append(h.got, receipt{k, life, ok, d})
	return status, header
}

func (h *history) compare(k key, want change, d delivery) {
	got := change{d.Event, decode(h.t, d.Before), decode(h.t, d.After)}
	if !reflect.DeepEqual(got, want) {
		h.t.Errorf("seed %d: %v was delivered as %v, want %v", h.seed, k, got, want)
	}
}

func decode(t *testing.T, text []byte) (v any) {
	if err := json.Unmarshal(text, &v); err != nil {
		t.Error(err, string(text))
	}
	return v
}

// check compares what came in with what was to come.
func (h *history) check() {
	newest := map[string]uint64{} // first successful receipts, by hook and location
	inLife := map[string]uint64{} // attempts
	seen := map[key]bool{}
	for _, r := range h.got {
		if want, known := h.want[r.key]; known {
			h.compare(r.key, want, r.says)
		} else {
			h.t.Errorf("seed %d: %v was delivered, which did not happen", h.seed, r.key)
		}
		place, life := r.hook+r.path, fmt.Sprint(r.life, r.hook, r.path)
		if r.position < inLife[life] {
			h.t.Errorf("seed %d: %v was delivered after %d", h.seed, r.key, inLife[life])
		}
		inLife[life] = r.position
		if r.ok && !seen[r.key] {
			if seen[r.key] = true; r.position < newest[place] {
				h.t.Errorf("seed %d: %v came first after %d", h.seed, r.key, newest[place])
			}
			newest[place] = r.position
		}
	}
	for k := range h.want {
		if !seen[k] && !h.more[fmt.Sprint(k.hook, k.position)] {
			h.t.Errorf("seed %d: %v was not delivered", h.seed, k)
		}
	}
	if len(h.more) > 0 && !h.few {
		h.t.Errorf("seed %d: there was more at %v", h.seed, h.more)
	}
}

// write makes a random write, and notes what must be delivered.
func (h *history) write() {
	w := h.randomWrite()
	next := h.tree
	for _, a := range w.Assignments {
		next = assign(next, slices.Collect(a.Path.Keys()), decode(h.t, tree.AppendJSON(nil, a.Node, tree.Plain)))
	}
	commit, err := h.site.database("db").Write(h.t.Context(), engine.Request{Write: w, Who: auth.Identity{Admin: true}})
	if err != nil {
		h.t.Fatal(err)
	}
	for i, pattern := range patterns {
		places := map[string]bool{}
		find(h.tree, strings.Split(pattern[1:], "/"), "", places)
		find(next, strings.Split(pattern[1:], "/"), "", places)
		for place := range places {
			before, after := at(h.tree, place), at(next, place)
			if reflect.DeepEqual(before, after) {
				continue
			}
			event := "update"
			if before == nil {
				event = "create"
			} else if after == nil {
				event = "delete"
			}
			h.want[key{fmt.Sprint("h", i), commit.Position, place}] = change{event, before, after}
		}
	}
	h.tree = next
}

// randomWrite returns a PUT or a PATCH.
func (h *history) randomWrite() tree.Write {
	if h.random.IntN(3) > 0 {
		p := h.randomPath(h.random.IntN(4))
		return tree.Put(p, h.randomNode(3-p.Depth()))
	}
	w := tree.Write{Patch: true}
	for range 1 + h.random.IntN(4) {
		p := h.randomPath(1 + h.random.IntN(3))
		w.Assignments = append(w.Assignments, tree.Assignment{Path: p, Node: h.randomNode(3 - p.Depth()), Name: p.String()})
	}
	if w.CheckOverlap() != nil {
		return h.randomWrite()
	}
	return w
}

func (h *history) randomPath(depth int) (p tree.Path) {
	for range depth {
		p = p.Child(string(rune('a' + h.random.IntN(3))))
	}
	return p
}

func (h *history) randomNode(depth int) tree.Node {
	n, err := tree.DecodeBytes([]byte(h.randomText(depth)), tree.DecodeOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *history) randomText(depth int) string {
	switch n := h.random.IntN(6); {
	case n == 0:
		return "null"
	case n < 3 || depth <= 0:
		return fmt.Sprint(h.random.IntN(3))
	}
	var parts []string
	for _, k := range []string{"a", "b", "c"} {
		if h.random.IntN(2) == 0 {
			parts = append(parts, fmt.Sprintf("%q:%s", k, h.randomText(depth-1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// assign returns a tree with a value at a place. It is the obvious way, and shares nothing with the server.
func assign(t any, keys []string, v any) any {
	if len(keys) == 0 {
		return v
	}
	old, _ := t.(map[string]any)
	child := assign(old[keys[0]], keys[1:], v)
	if old == nil && child == nil {
		return t
	}
	next := map[string]any{}
	for k, c := range old {
		next[k] = c
	}
	if next[keys[0]] = child; child == nil {
		delete(next, keys[0])
	}
	if len(next) == 0 {
		return nil
	}
	return next
}

func at(t any, place string) any {
	for k := range strings.SplitSeq(place[1:], "/") {
		object, _ := t.(map[string]any)
		t = object[k]
	}
	return t
}

// find adds the places that a pattern matches.
func find(t any, pattern []string, place string, into map[string]bool) {
	if len(pattern) == 0 {
		into[place] = true
		return
	}
	object, _ := t.(map[string]any)
	for k, child := range object {
		if k == pattern[0] || strings.HasPrefix(pattern[0], "$") {
			find(child, pattern[1:], place+"/"+k, into)
		}
	}
}
