package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/pushid"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file is about writes that are prepared before their turn: their push keys
// and times follow the order of commits as those of all others do.

const timestamp = `{".sv":"timestamp"}`

// A ticker is a clock that is a millisecond later with each look.
type ticker struct{ millis atomic.Int64 }

func (c *ticker) now() time.Time { return time.UnixMilli(1_767_225_600_000 + c.millis.Add(1)) }

// push returns the POST of a body.
func push(t testing.TB, at, body string) engine.Request {
	t.Helper()
	req := request(t, at, body)
	req.Push = true
	return req
}

// everyLimitTicking is everyLimit with a clock that ticks.
func everyLimitTicking(t *testing.T, test func(t *testing.T, f *fixture)) {
	for name, limit := range map[string]int{"leaves": -1, "small": 24, "large": 2048} {
		t.Run(name, func(t *testing.T) { test(t, open(t, store.Options{ChunkBytes: limit, Now: new(ticker).now})) })
	}
}

// late writes a request whose turn comes after the writes of meanwhile. All nodes that
// are larger than a chunk are prepared.
func (f *fixture) late(req engine.Request, meanwhile func()) engine.Commit {
	f.T.Helper()
	commit, err := f.WriteLate(context.Background(), req, 0, meanwhile)
	if err != nil {
		f.T.Fatalf("the late write of %s = %v", req.At, err)
	}
	return commit
}

// last returns the keys of the last n children by an order.
func (f *fixture) last(at string, order query.Order, n int) []string {
	f.T.Helper()
	text, err := f.run(at, query.Query{Order: order, Limit: n, Last: true})
	if err != nil {
		f.T.Fatal(err)
	}
	return childKeys(text)
}

// datedBody is larger than every chunk limit of the tests, with times in data, in
// priorities, and where indexes in the node itself order by them.
func datedBody() string {
	var rows []string
	for i := range 60 {
		rows = append(rows, fmt.Sprintf(`"r%02d":{"at":%s,"pad":"%0100d",".priority":%s}`, i, timestamp, i, timestamp))
	}
	return fmt.Sprintf(`{"at":%s,".priority":%s,"rows":{%s},"given":1767225600000}`, timestamp, timestamp, strings.Join(rows, ","))
}

// datedRules ask for indexes by the times of datedBody.
const datedRules = `{"rules": {".read": true, ".write": true, "l": {".indexOn": "at", "$key": {"rows": {".indexOn": ["at", ".value"]}}}}}`

// TestLatePushFollowsEarlierCommits: a POST that was prepared before others were
// committed comes after them by its key, its times and its place in every index.
func TestLatePushFollowsEarlierCommits(t *testing.T) {
	everyLimitTicking(t, func(t *testing.T, f *fixture) {
		f.Rule(datedRules)
		f.ready()
		small := func() engine.Commit { return f.Commit(push(t, "l", `{"at":`+timestamp+`,".priority":`+timestamp+`}`)) }
		first := small()
		watch := f.Watch(whole(t, "/l"))
		watch.Events()
		var second engine.Commit
		late := f.late(push(t, "l", datedBody()), func() { second = small() })
		third := small()

		all := []engine.Commit{first, second, late, third}
		var keys []string
		for i, c := range all {
			keys = append(keys, c.Key)
			if i > 0 && (c.Key <= all[i-1].Key || c.Millis <= all[i-1].Millis || c.Position <= all[i-1].Position) {
				t.Errorf("commit %d has the key %s and the time %d after commit %d with %s and %d",
					c.Position, c.Key, c.Millis, all[i-1].Position, all[i-1].Key, all[i-1].Millis)
			}
		}
		want := exported(t, datedBody(), late.Millis)
		if got := f.Export("l/" + late.Key); got != want {
			t.Errorf("the late node is\n%s\nwant\n%s", got, want)
		}
		if got := string(tree.AppendJSON(nil, late.Assignments[0].Node, tree.Export)); got != want || late.At.Last() != late.Key {
			t.Errorf("the answer is %s at %s, want %s", got, late.At, want)
		}
		for _, order := range []query.Order{query.ByKey(), query.ByPriority(), query.ByChild(path(t, "at"))} {
			for n := range keys {
				if got := f.last("l", order, len(keys)-n); !slices.Equal(got, keys[n:]) {
					t.Errorf("by %v the last children are %v, want %v", order, got, keys[n:])
				}
			}
		}
		if got := f.Export("l"); strings.Count(got, `"rows"`) != 1 {
			t.Errorf("the late node is stored %d times, want once", strings.Count(got, `"rows"`))
		}
		f.check()
		f.checkOrder()
		if events := strings.Join(watch.Events(), "\n"); !strings.Contains(events, `"/`+late.Key+`"`) || !strings.Contains(events, fmt.Sprintf(`{"at":%d,`, late.Millis)) {
			t.Errorf("the watch is told\n%s\nwant the key %s and the time %d", events, late.Key, late.Millis)
		}
	})
}

// exported returns a body in export form, as it is at a time.
func exported(t testing.TB, body string, millis int64) string {
	t.Helper()
	w, err := put(tree.Path{}, body)
	if err == nil {
		w, err = tree.Resolve(w, millis, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(tree.AppendJSON(nil, w.Assignments[0].Node, tree.Export))
}

// checkOrder holds the times of all commits in the log against their order.
func (f *fixture) checkOrder() {
	f.T.Helper()
	s := f.View()
	defer s.Close()
	var last tree.Change
	err := changes(s, 0, func(c tree.Change) bool {
		if c.Millis < last.Millis {
			f.T.Errorf("commit %d has the time %d, commit %d before it %d", c.Position, c.Millis, last.Position, last.Millis)
		}
		last = c
		return true
	})
	if err != nil {
		f.T.Fatal(err)
	}
}

// TestLateTimesFollowEarlierCommits: the times of a PUT and of a PATCH, part of which
// is prepared, are those of their turn.
func TestLateTimesFollowEarlierCommits(t *testing.T) {
	everyLimitTicking(t, func(t *testing.T, f *fixture) {
		f.Put("l", `{"a":1,"x":{"y":2}}`)
		other := func() engine.Commit { return f.Put("other", timestamp) }
		var before engine.Commit
		late := f.late(request(t, "l", datedBody()), func() { before = other() })
		if late.Millis <= before.Millis {
			t.Errorf("the PUT has the time %d, want it later than %d", late.Millis, before.Millis)
		}
		if got, want := f.Export("l"), exported(t, datedBody(), late.Millis); got != want {
			t.Errorf("the PUT left %s, want %s", got, want)
		}
		w, err := tree.DecodePatch(strings.NewReader(`{"big":`+datedBody()+`,"small":`+timestamp+`,"rows/r00/.priority":`+timestamp+`,"at":null}`), path(t, "l"), tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		late = f.late(engine.Request{Write: w, Who: admin}, func() { before = other() })
		want := fmt.Sprint(late.Millis)
		if got := f.Export("l/small"); late.Millis <= before.Millis || got != want {
			t.Errorf("the PATCH has the time %d after %d, and left %s", late.Millis, before.Millis, got)
		}
		if got := f.Export("l/big"); got != exported(t, datedBody(), late.Millis) {
			t.Errorf("the PATCH left %s", got)
		}
		f.check()
		f.checkOrder()
	})
}

// TestLatePushIsJudgedByItsKey: where rules look at the key of a POST, they are asked
// about the key that it gets at its turn. That is never one at which there is data.
func TestLatePushIsJudgedByItsKey(t *testing.T) {
	const body, guessed = `{"a":"some text","b":2}`, `{"was":"here"}`
	for _, c := range []struct {
		name, rules, at string // at is where there is data for a key that is drawn
		draw            int    // 0 when it is prepared, 1 for the other POST, 2 at its turn
		denied          bool
	}{
		{"nothing looks at the key", `{".write": true}`, "taken", 2, false},
		{"the key is looked at", `{"$key": {".write": "!root.child('taken').hasChild($key)"}}`, "taken", 2, true},
		{"the key is valid", `{".write": true, "$key": {".validate": "!root.child('taken').hasChild($key)"}}`, "other", 2, false},
		{"the key is not valid", `{".write": true, "$key": {".validate": "!root.child('taken').hasChild($key)"}}`, "taken", 2, true},
		{"a key below is not valid", `{".write": true, "$key": {"a": {".validate": "!root.child('taken').hasChild($key)"}}}`, "taken", 2, true},
		{"something is there", `{"$key": {".write": "!data.exists()"}}`, "l", 2, false},
		{"something is there, and must be", `{"$key": {".write": "data.exists()"}}`, "l", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, store.Options{ChunkBytes: -1})
			f.Rule(`{"rules": {"l": ` + c.rules + `}}`)
			clock := state.NewClock(func() time.Time { return time.UnixMilli(0) }, zeros{}, f.Clock.Millis())
			f.SetClock(clock)
			keys := pushid.New(zeros{})
			var next string
			for range c.draw + 1 {
				next, _ = keys.Next(clock.Millis())
			}
			f.Put(c.at+"/"+next, guessed)
			req := push(t, "l", body)
			req.Who = auth.Identity{}
			commit, err := f.WriteLate(t.Context(), req, 0, func() { f.Commit(push(t, "l", `1`)) })
			if got := fault.KindOf(err) == fault.Denied; got != c.denied || !got && err != nil {
				t.Fatalf("the POST = %v, want it denied: %v", err, c.denied)
			}
			if got := f.Export("l/" + commit.Key); !c.denied && (commit.Key < next || got != body) {
				t.Errorf("the POST got the key %s and left %s, want at least %s and %s", commit.Key, got, next, body)
			}
			if got := f.Export(c.at + "/" + next); got != guessed {
				t.Errorf("what was at %s is now %s", c.at, got)
			}
			f.check()
		})
	}
}

// TestLateSimulatedPush: a POST that is only simulated gets the key and the time of
// its turn, and writes nothing; one that debugs has the new key in its trace.
func TestLateSimulatedPush(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	f.Rule(`{"rules": {"l": {"$key": {".write": true}}}}`)
	req := push(t, "l", datedBody())
	req.Who = auth.Identity{Simulate: true, Debug: true}
	var other engine.Commit
	commit := f.late(req, func() { other = f.Commit(push(t, "l", `1`)) })
	if commit.Key <= other.Key || commit.Position != 0 || !strings.Contains(commit.Trace, commit.Key) {
		t.Errorf("the simulated POST has the key %s after %s, the position %d and the trace %q", commit.Key, other.Key, commit.Position, commit.Trace)
	}
	if got := f.Export("l"); got != `{"`+other.Key+`":1}` {
		t.Errorf("the simulated POST left %s", got)
	}
}

// TestKeysAndTimesFollowTheOrderOfCommits: while many clients POST small and large
// bodies, later commits have greater push keys and no earlier times.
func TestKeysAndTimesFollowTheOrderOfCommits(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(datedRules)
	f.ready()
	bodies := []string{
		`{"at":` + timestamp + `,".priority":` + timestamp + `}`,
		`{"at":` + timestamp + `,".priority":` + timestamp + `,"pad":` + padding + `}`,
		`{"at":` + timestamp + `,"rows":{"a":{"at":` + timestamp + `,".priority":` + timestamp + `,"pad":` + padding + `},"b":{"at":` + timestamp + `}}}`,
	}
	var mu sync.Mutex
	var commits []engine.Commit
	each := scale(100)
	together(6, func(writer int) {
		for i := range each {
			commit := f.Commit(push(t, "l", bodies[(writer+i)%len(bodies)]))
			mu.Lock()
			commits = append(commits, commit)
			mu.Unlock()
		}
	})
	slices.SortFunc(commits, func(a, b engine.Commit) int { return int(a.Position) - int(b.Position) })
	for i, c := range commits {
		if i > 0 && (c.Key <= commits[i-1].Key || c.Millis < commits[i-1].Millis) {
			t.Errorf("commit %d has the key %s and the time %d after %s and %d", c.Position, c.Key, c.Millis, commits[i-1].Key, commits[i-1].Millis)
		}
		if made, _ := model.KeyTime(c.Key); made > c.Millis {
			t.Errorf("the key %s is of %d, ahead of its commit at %d", c.Key, made, c.Millis)
		}
		if got := f.number("l/" + c.Key + "/at"); int64(got) != c.Millis {
			t.Errorf("commit %d of the time %d left the time %d", c.Position, c.Millis, got)
		}
	}
	f.check()
	f.checkOrder()
}
