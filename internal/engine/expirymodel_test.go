package engine_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/tree"
)

var (
	expiryRuns = flag.Int("expiry.runs", 10, "how many histories the model test of expiry runs")
	expirySeed = flag.Uint64("expiry.seed", 0, "the seed of the only history of it, 0 for new ones")
)

// expiryRules are documents of which a history has one after the other, with where children
// expire by each: keys, of which * is any, and the path of the time.
var expiryRules = []struct {
	document string
	expires  []string
}{
	{`{"rules":{"s":{".expireOn":"t"}}}`, []string{"s/* t"}},
	{`{"rules":{".expireOn":"t","r":{".expireOn":"t","$r":{"m":{".expireOn":"x/t"}}}}}`, []string{"* t", "r/* t", "r/*/m/* x/t"}},
	{`{"rules":{"r":{"$a":{"$b":{".expireOn":"t"}}},"s":{".indexOn":"t"}}}`, []string{"r/*/*/* t"}},
	{`{"rules":{}}`, nil},
}

// TestExpiryModel runs random histories against the obvious tree: nothing goes early, and
// all that is due goes, whatever is written, however the clock is set, over restarts, while
// rows are built, and when rules go and come back.
func TestExpiryModel(t *testing.T) {
	t.Parallel()
	runs := *expiryRuns
	if testing.Short() {
		runs = min(runs, 2)
	}
	steps := 150
	if enginetest.Race {
		steps = 50
	}
	for n := range runs {
		seed := *expirySeed
		if seed == 0 {
			seed = mathrand.Uint64()
		} else if n > 0 {
			break
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newExpiryHistory(t, seed).run(steps) })
	}
}

type expiryHistory struct {
	t      *testing.T
	rng    *mathrand.Rand
	fs     vfs.FS
	millis atomic.Int64
	store  *store.Store
	clock  *state.Clock
	db     *engine.Database
	expiry *engine.Expiry
	noted  atomic.Int64
	tree   *model.Tree
	rules  int
	log    []string
}

func newExpiryHistory(t *testing.T, seed uint64) *expiryHistory {
	h := &expiryHistory{t: t, rng: mathrand.New(mathrand.NewPCG(seed, 7)), fs: vfs.NewMem(), tree: model.New(), rules: 3}
	h.millis.Store(1_000_000)
	h.open()
	t.Cleanup(h.close)
	return h
}

func (h *expiryHistory) open() {
	limits := []int{-1, 1, 24, 100, 4096}
	var err error
	h.store, err = store.Open("data", store.Options{
		FS: h.fs, Now: h.now, ChunkBytes: limits[h.rng.IntN(len(limits))], CacheBytes: 1 << 20, MemTableBytes: 256 << 10, GapSteps: 1, StepChildren: 1 + h.rng.IntN(5),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	id, found, err := h.store.Find("db")
	if !found && err == nil {
		id, err = h.store.Create("db")
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.clock = state.NewClock(h.now, rand.Reader, h.store.LastMillis())
	h.noted.Store(engine.Never)
	opts := engine.Options{Clock: h.clock, Name: "db", Observers: &state.Observers{Due: func(_ string, millis int64) {
		if millis == engine.Sweep {
			return // a history sweeps at its end
		}
		for was := h.noted.Load(); millis < was && !h.noted.CompareAndSwap(was, millis); was = h.noted.Load() {
		}
	}}}
	openDatabase := []enginetest.OpenFunc{enginetest.OpenDatabase, enginetest.OpenTiny, enginetest.OpenGroups}[h.rng.IntN(3)]
	if h.db, err = openDatabase(h.store, id, opts); err != nil {
		h.t.Fatal(err)
	}
	h.expiry = engine.NewExpiry(h.db)
}

func (h *expiryHistory) now() time.Time { return time.UnixMilli(h.millis.Load()) }

func (h *expiryHistory) close() {
	h.db.Close()
	if err := h.store.Close(); err != nil {
		h.t.Error(err)
	}
}

func (h *expiryHistory) fail(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), strings.Join(h.log[max(0, len(h.log)-12):], "\n"))
}

func (h *expiryHistory) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *expiryHistory) run(steps int) {
	for range steps {
		switch n := h.rng.IntN(20); {
		case n < 11:
			h.write()
		case n < 14:
			h.drain()
		case n < 15:
			h.millis.Add(int64(h.rng.IntN(1000)) - 500)
			h.note("clock %d", h.millis.Load())
		case n < 17:
			h.millis.Add(int64(h.rng.IntN(3000)))
			h.note("clock %d", h.millis.Load())
		case n < 18:
			h.rule()
		case n < 19:
			h.note("reopen")
			h.close()
			h.open()
		default:
			h.race()
		}
	}
	if err := enginetest.WaitForIndexes(context.Background(), h.db); err != nil {
		h.t.Fatal(err)
	}
	h.drain()
	h.sweep()
}

// sweep makes steps until all rows are gone that have no data.
func (h *expiryHistory) sweep() {
	for again := h.step().Again; again != engine.Never; again = h.step().Again {
		time.Sleep(time.Millisecond) //nolint:forbidigo // a sweep rests, by a clock that cannot be set
	}
	if n, err := engine.StaleDue(h.db); n != 0 || err != nil {
		h.fail("after a sweep %d rows have no data, %v", n, err)
	}
}

func (h *expiryHistory) rule() {
	h.rules = h.rng.IntN(len(expiryRules))
	h.note("rules %s", expiryRules[h.rules].document)
	if _, err := h.db.SetRules(context.Background(), expiryRules[h.rules].document); err != nil {
		h.t.Fatal(err)
	}
}

func (h *expiryHistory) value() string {
	now := h.clock.Millis()
	switch h.rng.IntN(12) {
	case 0:
		return `"text"`
	case 1:
		return `{"y":1}`
	case 2:
		return `null`
	case 3:
		return `{".sv":"timestamp"}`
	case 4:
		return fmt.Sprintf(`{".sv":{"increment":%d}}`, h.rng.IntN(4000))
	case 5:
		return fmt.Sprintf(`{".value":%d,".priority":%d}`, now+int64(h.rng.IntN(3000)), h.rng.IntN(3))
	case 6:
		return []string{"9007199254740993", "-1e300", "1e300", "-5", "9223372036854775807"}[h.rng.IntN(5)]
	case 7:
		return fmt.Sprintf("%d.5", now+int64(h.rng.IntN(3000)))
	}
	return fmt.Sprint(now + int64(h.rng.IntN(3000)) - 200)
}

func (h *expiryHistory) body(depth int) string {
	if depth <= 0 || h.rng.IntN(3) == 0 {
		return h.value()
	}
	var members []string
	for _, key := range []string{"t", "x", "m", "a", "1", "b"} {
		if h.rng.IntN(3) == 0 {
			members = append(members, fmt.Sprintf("%q:%s", key, h.body(depth-1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (h *expiryHistory) path() string {
	keys := []string{[]string{"s", "r"}[h.rng.IntN(2)]}
	for range h.rng.IntN(5) {
		keys = append(keys, []string{"t", "x", "m", "a", "1", "b"}[h.rng.IntN(6)])
	}
	if h.rng.IntN(20) == 0 {
		return ""
	}
	return strings.Join(keys, "/")
}

func split(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// write makes a write in both worlds.
func (h *expiryHistory) write() {
	at, body := h.path(), h.body(4)
	var w tree.Write
	var err error
	patch := h.rng.IntN(4) == 0
	if patch {
		body = fmt.Sprintf(`{"t":%s,"a/t":%s,"m":%s}`, h.value(), h.value(), h.body(2))
		w, err = tree.DecodePatch(strings.NewReader(body), path(h.t, at), tree.DecodeOptions{})
	} else {
		w, err = put(path(h.t, at), body)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.note("write %s %s at %d", at, body, h.clock.Millis())
	if _, err := h.db.Write(context.Background(), engine.Request{Write: w, Who: admin}); err != nil {
		h.fail("write: %v", err)
	}
	if patch {
		err = h.tree.Patch(split(at), []byte(body), h.clock.Millis())
	} else {
		err = h.tree.Put(split(at), []byte(body), h.clock.Millis())
	}
	if err != nil {
		h.fail("model: %v", err)
	}
	h.same("a write")
}

func (h *expiryHistory) export() string {
	f := &fixture{&enginetest.Fixture{T: h.t, Store: h.store, Database: h.db}}
	return f.Export("")
}

func (h *expiryHistory) same(after string) {
	h.t.Helper()
	if got, want := h.export(), h.tree.Export(nil); got != want {
		h.fail("after %s there is\n%s\nwant\n%s", after, got, want)
	}
}

// step makes one step with all that was noted.
func (h *expiryHistory) step() engine.Expired {
	h.expiry.Note(h.noted.Swap(engine.Never))
	result, err := h.expiry.Step(context.Background(), func() bool { return h.rng.IntN(4) == 0 })
	if err != nil {
		h.fail("step: %v", err)
	}
	return result
}

// drain makes steps until nothing is due, and compares. While rows are built, only what
// has its row goes; at the end of a history all are built.
func (h *expiryHistory) drain() {
	if h.rng.IntN(2) == 0 {
		if err := enginetest.WaitForIndexes(context.Background(), h.db); err != nil {
			h.t.Fatal(err)
		}
	}
	built := len(unfinished(h.db)) == 0
	next := int64(0)
	for next = h.step().Next; next <= h.clock.Millis(); next = h.step().Next {
	}
	h.note("drained at %d, next %d", h.clock.Millis(), next)
	if !built {
		h.follow()
		return
	}
	expired := h.tree.Clone()
	first := h.expire(expired)
	h.tree = expired
	h.same("what is due has gone")
	h.check()
	if first < next {
		h.fail("the next is due at %d, a step says %d", first, next)
	}
}

func unfinished(d *engine.Database) []state.IndexEntry {
	var list []state.IndexEntry
	for _, e := range d.Published().Settings.List.Entries {
		if e.State == state.IndexBuilding {
			list = append(list, e)
		}
	}
	return list
}

// check holds the rows against the data.
func (h *expiryHistory) check() {
	v := h.db.View()
	defer v.Close()
	skip := func(number uint32) bool { return false }
	if len(v.Settings.List.Entries) > 0 {
		skip = func(number uint32) bool {
			i := v.Settings.List.Find(number)
			return number != 0 && (i < 0 || v.Settings.List.Entries[i].State != state.IndexReady)
		}
	}
	err := firstFlaw(func(report func(store.Flaw) bool) error {
		return inspect.CheckDue(v.Tree().Reader(), v.Settings.Indexes, skip, report)
	})
	if err == nil {
		err = checkIndexes(v)
	}
	if err == nil {
		err = checkData(v.Tree())
	}
	if err != nil {
		h.fail("check: %v", err)
	}
}

// follow makes the model what is there, when it cannot know how much has gone. The data must be what
// is left of it when some of the children are deleted that are due.
func (h *expiryHistory) follow() {
	now := h.export()
	all := h.tree.Clone()
	h.expire(all)
	if !within(parse(all.Plain(nil)), parse(h.plain())) || !within(parse(h.plain()), parse(h.tree.Plain(nil))) {
		h.fail("there is %s, which is not between %s and %s", now, h.tree.Export(nil), all.Export(nil))
	}
	if err := h.tree.Put(nil, []byte(now), 0); err != nil {
		h.t.Fatal(err)
	}
}

func (h *expiryHistory) plain() string {
	t := model.New()
	if err := t.Put(nil, []byte(h.export()), 0); err != nil {
		h.t.Fatal(err)
	}
	return t.Plain(nil)
}

// parse reads JSON, with arrays as objects.
func parse(text string) any {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		panic(text)
	}
	return v
}

func object(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case []any:
		m := map[string]any{}
		for i, e := range v {
			if e != nil {
				m[fmt.Sprint(i)] = e
			}
		}
		return m
	}
	return nil
}

// within reports whether all that a has is in b.
func within(a, b any) bool {
	if a == nil {
		return true
	}
	if m := object(a); m != nil {
		for key, child := range m {
			if !within(child, object(b)[key]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}

// expire deletes from a tree what is due now, and returns when the next is.
func (h *expiryHistory) expire(t *model.Tree) (next int64) {
	next = engine.Never
	for _, rule := range expiryRules[h.rules].expires {
		pattern, on, _ := strings.Cut(rule, " ")
		h.expirePattern(t, nil, split(pattern), on, &next)
	}
	return next
}

func (h *expiryHistory) expirePattern(t *model.Tree, at, pattern []string, on string, next *int64) {
	if len(pattern) == 0 {
		number, ok := parse(t.Plain(append(at[:len(at):len(at)], split(on)...))).(json.Number)
		if !ok {
			return
		}
		order, err := model.CompareNumbers(number.String(), fmt.Sprint(h.clock.Millis()))
		if err != nil {
			h.t.Fatal(err)
		}
		if order <= 0 {
			t.Delete(at)
			return
		}
		if f, _ := number.Float64(); f < 1e15 {
			*next = min(*next, int64(f)+1)
		}
		return
	}
	for key := range object(parse(t.Plain(at))) {
		if pattern[0] == "*" || pattern[0] == key {
			h.expirePattern(t, append(at[:len(at):len(at)], key), pattern[1:], on, next)
		}
	}
}

// alone says that no other database waits.
func alone() bool { return false }

// race lets a step run while other writes are made. The log then says whether the step was
// right: each child that it deleted was due when it was.
func (h *expiryHistory) race() {
	h.note("race")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 5 {
			h.expiry.Note(h.noted.Swap(engine.Never))
			if _, err := h.expiry.Step(context.Background(), alone); err != nil {
				h.t.Error(err)
			}
			h.millis.Add(100)
		}
	}()
	defer func() { <-done }() // the store is closed when the test has failed
	before := h.db.Published().Position
	for range 10 {
		w, err := put(path(h.t, h.path()), h.body(3))
		if err == nil {
			_, err = h.db.Write(context.Background(), engine.Request{Write: w, Who: admin})
		}
		// With limits that are tiny a write may have been prepared in vain too often.
		if err != nil && !strings.Contains(err.Error(), "changes too often") {
			h.t.Fatal(err)
		}
	}
	<-done
	v := h.db.View()
	defer v.Close()
	err := changes(v, before, func(c tree.Change) bool {
		h.replay(c)
		return true
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.same("a race")
}

// replay makes a change in the model. Those that expiry made must be right.
func (h *expiryHistory) replay(c tree.Change) {
	for _, a := range c.Assignments {
		at := split(a.Path.String()[1:])
		if c.Author.String() == tree.ByExpiry {
			h.wasDue(at, c.Millis)
		}
		if a.Node.IsNull() {
			h.tree.Delete(at)
			continue
		}
		text := tree.AppendJSON(nil, a.Node, tree.Export)
		if err := h.tree.Put(at, text, 0); err != nil {
			h.t.Fatal(err)
		}
	}
}

// wasDue fails if a child was not due at a time.
func (h *expiryHistory) wasDue(at []string, millis int64) {
	for _, rule := range expiryRules[h.rules].expires {
		pattern, on, _ := strings.Cut(rule, " ")
		keys := split(pattern)
		matches := len(keys) == len(at)
		for i := range keys {
			matches = matches && (keys[i] == "*" || keys[i] == at[i])
		}
		if !matches {
			continue
		}
		number, ok := parse(h.tree.Plain(append(at[:len(at):len(at)], split(on)...))).(json.Number)
		if !ok {
			continue
		}
		if order, err := model.CompareNumbers(number.String(), fmt.Sprint(millis)); err == nil && order <= 0 {
			return
		}
	}
	h.fail("%v was deleted at %d, and was not due: %s", at, millis, h.tree.Plain(nil))
}
