package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// try writes as somebody and returns the kind of refusal, fault.Internal and
// true if there was none.
func (f *fixture) try(who auth.Identity, at, body string) error {
	f.T.Helper()
	w, err := put(path(f.T, at), body)
	if err != nil {
		f.T.Fatal(err)
	}
	_, err = f.Write(context.Background(), engine.Request{Write: w, Who: who})
	return err
}

func denied(err error) bool { return fault.KindOf(err) == fault.Denied }

func TestRulesJudgeWritesAndReads(t *testing.T) {
	everyLimit(t, func(t *testing.T, f *fixture) {
		f.Rule(`{"rules": {
			"users": {"$uid": {
				".read": "auth.uid === $uid",
				".write": "auth.uid === $uid",
				"age": {".validate": "newData.isNumber() && newData.val() >= 0"},
				"seen": {".validate": "newData.val() === now"}
			}},
			"log": {".write": "!data.exists()", ".read": "query.orderByKey && query.limitToLast <= 10"}
		}}`)
		ann, ben := user(t, `{"uid":"ann"}`), user(t, `{"uid":"ben"}`)
		for _, c := range []struct {
			who      auth.Identity
			at, body string
			allowed  bool
		}{
			{ann, "users/ann", `{"age":3}`, true},
			{ben, "users/ann", `{"age":3}`, false},
			{auth.Identity{}, "users/ann/age", `4`, false},
			{ann, "users/ann/age", `-4`, false},
			{ann, "users/ann/age", `"old"`, false},
			{ann, "users/ann/seen", `{".sv":"timestamp"}`, true},
			{ann, "users/ann/seen", `5`, false},
			{ann, "users", `{"ann":{"age":5}}`, false},
			{ann, "users/ann/age", `{".sv":{"increment":2}}`, true},
			{ann, "users/ann/age", `{".sv":{"increment":-20}}`, false},
			{ann, "users/ann", `null`, true},
			{ann, "log", `{"a":1}`, true},
			{ann, "log", `{"a":2}`, false},
			{ann, "users/ann", `{"age":-4}`, false},
			{ann, "users/ann", `{"age":{".value":-4,".priority":1}}`, false},
			{ann, "users/ann", `{"age":{".sv":{"increment":-1}}}`, false},
			{ann, "users/ann/age", `{"deep":1}`, false},
			{ben, "users/ann/age/deep", `null`, false},
			{admin, "users/ann/age", `-4`, true},
		} {
			if err := f.try(c.who, c.at, c.body); denied(err) == c.allowed || err != nil && c.allowed {
				t.Errorf("writing %s at %s: %v, want it allowed: %v", c.body, c.at, err, c.allowed)
			}
		}
		priority := tree.PutPriority(path(t, "users/ann"), tree.LeafNode(tree.IntegerLeaf(1)))
		if _, err := f.Write(context.Background(), engine.Request{Write: priority, Who: ben}); !denied(err) {
			t.Errorf("writing the priority of another's node gives %v", err)
		}
		if _, err := f.Write(context.Background(), engine.Request{Write: priority, Who: ann}); err != nil {
			t.Errorf("writing the priority of one's own node gives %v", err)
		}
		s := f.View()
		defer s.Close()
		last := &query.Query{Limit: 10, Last: true}
		for _, c := range []struct {
			who     auth.Identity
			at      string
			q       *query.Query
			allowed bool
		}{
			{ann, "users/ann", nil, true},
			{ann, "users/ann/age", nil, true},
			{ben, "users/ann", nil, false},
			{ann, "users", nil, false},
			{ann, "log", nil, false},
			{ann, "log", last, true},
			{ann, "log", &query.Query{Limit: 11, Last: true}, false},
		} {
			if _, err := s.AllowRead(c.who, path(t, c.at), c.q); denied(err) == c.allowed {
				t.Errorf("reading %s: %v, want it allowed: %v", c.at, err, c.allowed)
			}
		}
	})
}

// TestOnlyOneWinsARace: rules are judged on the state that the write is applied
// to, whoever else writes.
func TestOnlyOneWinsARace(t *testing.T) {
	const clients = 16
	races := 1000
	if testing.Short() || enginetest.Race {
		races = 100
	}
	f := open(t, store.Options{})
	f.Rule(`{"rules": {"once": {"$k": {".write": "!data.exists()"}}}}`)
	for race := range races {
		var winners atomic.Int32
		var wait sync.WaitGroup
		for c := range clients {
			wait.Go(func() {
				err := f.try(auth.Identity{}, fmt.Sprintf("once/%d", race), fmt.Sprint(c))
				if err == nil {
					winners.Add(1)
				} else if !denied(err) {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if n := winners.Load(); n != 1 {
			t.Fatalf("race %d has %d winners", race, n)
		}
	}
}

// TestCounterUnderRules: a rule lets a counter grow by one only; its value is
// the number of writes that were let through.
func TestCounterUnderRules(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {"n": {".write": true, ".read": true, ".validate": "newData.val() === (data.exists() ? data.val() : 0) + 1"}}}`)
	var granted atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				next := granted.Load() + 1 // a guess that is often right
				if err := f.try(auth.Identity{}, "n", fmt.Sprint(next)); err == nil {
					granted.Add(1)
				} else if !denied(err) {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if got, want := f.Export("n"), fmt.Sprint(granted.Load()); got != want {
		t.Errorf("%s writes were let through and the counter is %s", want, got)
	}
}

// TestRulesAreReplacedInOrder: each write is judged by exactly one version of
// the rules, the one in force at its place in the order of commits.
func TestRulesAreReplacedInOrder(t *testing.T) {
	f := open(t, store.Options{})
	rules := func(version int) string {
		return fmt.Sprintf(`{"rules": {".write": "newData.child('v').val() === %d || newData.hasChild('keep')", ".read": true}}`, version)
	}
	f.Rule(rules(0))
	var wait sync.WaitGroup
	var version atomic.Int64
	wait.Go(func() {
		for v := 1; v <= 50; v++ {
			f.Rule(rules(v))
			version.Store(int64(v))
		}
	})
	for range 4 {
		wait.Go(func() {
			for range 200 {
				before := version.Load()
				err := f.try(auth.Identity{}, "", fmt.Sprintf(`{"v":%d}`, before))
				// The version can only have moved on since.
				if err == nil && version.Load() > before+1 {
					continue
				}
				if err != nil && version.Load() == before && before == 50 {
					t.Errorf("the last version does not let its own writes in: %v", err)
				}
				if err != nil && !denied(err) {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if err := f.try(auth.Identity{}, "", `{"v":49}`); !denied(err) {
		t.Errorf("a write by old rules gives %v", err)
	}
	if err := f.try(auth.Identity{}, "", `{"v":50}`); err != nil {
		t.Errorf("a write by the new rules gives %v", err)
	}
}

// TestHeavyWritesAreJudgedOnWhatIsCommitted: a large write is judged before its
// turn; if what its rules read changes meanwhile, it is judged again.
func TestHeavyWritesAreJudgedOnWhatIsCommitted(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {
		"big": {".write": "root.child('open').val() === true"},
		"open": {".write": true}
	}}`)
	if err := f.try(auth.Identity{}, "open", "true"); err != nil { // at least for the first write
		t.Fatal(err)
	}
	body := `"` + strings.Repeat("x", 200<<10) + `"`
	var wait sync.WaitGroup
	tried := make(chan struct{}, 200)
	wait.Go(func() {
		for i := range 100 {
			<-tried
			if err := f.try(auth.Identity{}, "open", fmt.Sprint(i%3 != 2)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		wait.Go(func() {
			for range 50 {
				err := f.try(auth.Identity{}, "big", body)
				tried <- struct{}{}
				if kind := fault.KindOf(err); err != nil && kind != fault.Denied && kind != fault.Unavailable {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	// Every commit at /big stands where /open was true in the order of commits.
	s := f.View()
	defer s.Close()
	isOpen, seen := false, 0
	err := changes(s, 0, func(c tree.Change) bool {
		switch c.At.String() {
		case "/open":
			isOpen = c.Assignments[0].Node.Leaf().Bool()
		case "/big":
			seen++
			if !isOpen {
				t.Errorf("commit %d wrote /big while /open was not true", c.Position)
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("no large write was let through: the test tests nothing")
	}
}

// TestDebugAndSimulate: a token can ask for the trace of the rules, and for a
// write that is only judged.
func TestDebugAndSimulate(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {"a": {".write": "auth.uid === 'ann'", ".read": "auth.uid === 'ann'"}}}`)
	ann, ben := user(t, `{"uid":"ann"}`), user(t, `{"uid":"ben"}`)
	ann.Debug, ben.Debug, ann.Simulate = true, true, true
	for _, c := range []struct {
		who  auth.Identity
		want string
	}{{ann, "Write was allowed."}, {ben, "Write was denied."}} {
		w, err := put(path(t, "a"), `1`)
		if err != nil {
			t.Fatal(err)
		}
		commit, err := f.Write(context.Background(), engine.Request{Write: w, Who: c.who})
		if !strings.HasSuffix(commit.Trace, c.want) || commit.Position != 0 {
			t.Errorf("the trace is %q at position %d, %v, want %q at its end and 0", commit.Trace, commit.Position, err, c.want)
		}
	}
	if got := f.Export("a"); got != "null" {
		t.Errorf("the simulated write left %s", got)
	}
	s := f.View()
	defer s.Close()
	if trace, err := s.AllowRead(ben, path(t, "a"), nil); !denied(err) || !strings.Contains(trace, `.read`) {
		t.Errorf("the trace of a denied read is %q, %v", trace, err)
	}
}
