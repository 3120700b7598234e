package watch_test

import (
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

// judgedRules are conditions for reading /d, in as many ways as they can rest on
// data.
var judgedRules = []string{
	`root.child('gate').val() === 1`,
	`root.child('gate').exists()`,
	`!root.child('gate/deep').exists()`,
	`data.child('open').val() === true`,
	`data.exists()`,
	`data.hasChildren(['a', 'b'])`,
	`data.hasChild('a/b')`,
	`data.getPriority() === 1`,
	`data.child('a').getPriority() !== null`,
	`data.parent().child('users').child(auth.uid).child('role').val() === 'r'`,
	`root.child('users/' + auth.uid).isString() || data.child('open').isBoolean()`,
	`root.child(root.child('pointer').val()).val() === 1`,
	`root.child('gate').val() === 1 ? data.child('a').isNumber() : root.child('users').hasChildren()`,
	`root.val() !== null && root.child('d').child('a').val() != root.child('gate').val()`,
	`auth.uid === root.child('owner').val() && query.limitToFirst <= 3`,
	`root.child('pointer').val().contains('a')`,
}

// TestJudgements: after random commits, told at once or one by one, the watches that
// are left are those that may read, and they show what a read gives.
func TestJudgements(t *testing.T) { testJudgements(t, 10, func(*fixture) {}) }

// TestJudgementsOfHeavyRules: the same, when all rules that look at data, or some, take too
// many steps for the dispatcher.
func TestJudgementsOfHeavyRules(t *testing.T) {
	for _, steps := range []int{1, 150} {
		testJudgements(t, 3, func(f *fixture) { f.Watches().BoundRejudging(steps, 1, steps, 2*steps) })
	}
}

func testJudgements(t *testing.T, rounds int, prepare func(*fixture)) {
	if enginetest.Race || testing.Short() {
		rounds = (rounds + 2) / 3
	}
	seed := mathrand.Uint64()
	rng := mathrand.New(mathrand.NewPCG(seed, 0))
	ann := user(t, `{"uid":"ann"}`)
	f := open(t, store.Options{ChunkBytes: 40})
	prepare(f)
	hold, release := f.holdDispatcher()
	for _, rule := range judgedRules {
		f.Rule(fmt.Sprintf(`{"rules": {"d": {".read": %q}}}`, rule))
		for range rounds {
			history := []string{`PUT / ` + judgedBody(rng)}
			f.Do(history[0])
			var all []*deliveryWatch
			for range 12 {
				all = f.beginAllowed(all, ann)
				if rng.IntN(2) == 0 {
					history = append(history, judgedRequest(rng))
					f.Do(history[len(history)-1])
				} else {
					hold()
					for range 1 + rng.IntN(3) {
						history = append(history, judgedRequest(rng))
						f.Do(history[len(history)-1])
					}
					release()
				}
				var err error
				if all, err = judgeAll(all); err != nil {
					t.Fatalf("seed %d, rule %s: %v\n%s", seed, rule, err, strings.Join(history, "\n"))
				}
			}
			for _, w := range all {
				w.Close()
			}
		}
	}
}

// judgeAll returns those that go on.
func judgeAll(all []*deliveryWatch) (left []*deliveryWatch, err error) {
	for _, w := range all {
		alive, err := w.judge()
		switch {
		case err != nil:
			return nil, fmt.Errorf("watch of %s: %w", w.what, err)
		case alive:
			left = append(left, w)
		default:
			w.Close()
		}
	}
	return left, nil
}

// beginAllowed begins a watch of each kind that may read now.
func (f *fixture) beginAllowed(all []*deliveryWatch, who auth.Identity) []*deliveryWatch {
	f.T.Helper()
	for what, req := range map[string]watch.Request{
		"/d": whole(f.T, "/d"), "/d/a": whole(f.T, "/d/a"), "a window": filtered(f.T, "/d", `orderBy="$key"&limitToFirst=2`),
	} {
		req.Who, req.Wake = who, func() {}
		watch, _, err := f.Watches().Open(req)
		if denied(err) {
			continue
		}
		if err != nil {
			f.T.Fatal(err)
		}
		w := &deliveryWatch{f: f, Watcher: enginetest.NewWatcher(f.Fixture, watch), request: req, what: what}
		if err := w.take(); err != nil {
			f.T.Fatal(err)
		}
		all = append(all, w)
	}
	return all
}

// judge reports whether the watch goes on, and fails if that is not what a read
// says.
func (w *deliveryWatch) judge() (alive bool, err error) {
	w.f.WaitForWatches()
	err = w.settle()
	s := w.f.View()
	defer s.Close()
	_, refusal := s.AllowRead(w.request.Who, w.request.Path, w.request.Query)
	switch {
	case err == nil && refusal == nil:
		return true, nil
	case refusal != nil && err != nil && strings.Contains(err.Error(), "cancel"):
		return false, nil
	case err == nil:
		return false, fmt.Errorf("it goes on, but a read is refused: %w", refusal)
	}
	return false, err
}

func judgedBody(rng *mathrand.Rand) string {
	return fmt.Sprintf(`{"gate":1,"pointer":"gate","owner":"ann","users":{"ann":{"role":"r"}},"d":{"open":true,"a":%s,"b":2,".priority":1}}`,
		[]string{`1`, `{"b":1}`, `{".value":1,".priority":1}`}[rng.IntN(3)])
}

func judgedRequest(rng *mathrand.Rand) string {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	switch rng.IntN(12) {
	case 0:
		return pick(`PUT /gate 1`, `PUT /gate 2`, `DELETE /gate`, `PUT /gate/deep 1`, `PUT /gate/.priority 1`)
	case 1:
		return pick(`PUT /d/open true`, `PUT /d/open 1`, `DELETE /d/open`)
	case 2:
		return pick(`PUT /d/a 1`, `PUT /d/a "x"`, `DELETE /d/a`, `PUT /d/a/b 2`, `PUT /d/a {".value":1,".priority":2}`)
	case 3:
		return pick(`PUT /d/.priority 1`, `PUT /d/.priority 2`, `PUT /d/.priority null`, `PUT /d/a/.priority 1`)
	case 4:
		return pick(`PUT /users/ann/role "r"`, `PUT /users/ann/role "s"`, `PUT /users/ann "text"`, `DELETE /users/ann`, `DELETE /users`)
	case 5:
		return pick(`PUT /pointer "gate"`, `PUT /pointer "d/b"`, `PUT /pointer "a"`, `PUT /pointer 5`)
	case 6:
		return pick(`PUT /owner "ann"`, `PUT /owner "ben"`)
	case 7:
		return `PUT / ` + judgedBody(rng)
	case 8:
		return fmt.Sprintf(`PATCH / {"gate":%d,"d/b":%d,"users/ann/role":"r"}`, rng.IntN(2), rng.IntN(3))
	case 9:
		return pick(`DELETE /d`, `DELETE /`, `PUT /d {"open":true,"a":1,"b":1}`, `PUT /d 5`)
	default:
		return fmt.Sprintf(`PUT /d/b %d`, rng.IntN(5))
	}
}
