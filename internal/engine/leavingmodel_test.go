package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/tree"
)

// TestLeavingModel makes random requests of several connections at once, some of whose processes
// are killed, and holds the outcome against that of the lists of package leave.
func TestLeavingModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rounds := 60
	if testing.Short() || enginetest.Race {
		rounds = 15
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		disk := vfs.NewCrashableMem()
		openDatabase := []enginetest.OpenFunc{enginetest.OpenDatabase, enginetest.OpenTiny, enginetest.OpenGroups}[rng.IntN(3)]
		f := openCut(t, disk, openDatabase)
		var models []*modelLeaver
		for i := range 3 {
			m := newModelLeaver(f, i, rng.Uint64())
			models = append(models, m)
		}
		var wg sync.WaitGroup
		for _, m := range models {
			wg.Go(func() { m.live(20) })
		}
		wg.Wait()
		if rng.IntN(2) == 0 {
			killed := disk.CrashClone(vfs.CrashCloneCfg{})
			f.CloseAll()
			f = openCut(t, killed, openDatabase)
			runAll(t, f)
		} else {
			for _, m := range models {
				if made, err := m.Run(context.Background()); err != nil || made.Kept > 0 || made.Dropped > 0 {
					t.Errorf("Run = %+v, %v", made, err)
				}
			}
		}
		for i, m := range models {
			if got, want := f.Export(fmt.Sprintf("/%d", i)), m.outcome(t); got != want {
				t.Errorf("seed %d round %d: connection %d has left %s, want %s", seed, round, i, got, want)
			}
		}
		if rows := f.rows(true); rows != nil {
			t.Errorf("seed %d round %d: there are still the rows %q", seed, round, rows)
		}
		f.CloseAll()
		if t.Failed() {
			return
		}
	}
}

// A modelLeaver leaves writes below a path of its own, and tells a list of them.
type modelLeaver struct {
	*engine.Leaving
	f    *fixture
	name int
	rng  *rand.Rand
	list *leave.List
}

func newModelLeaver(f *fixture, name int, seed uint64) *modelLeaver {
	return &modelLeaver{f.NewLeaving(), f, name, rand.New(rand.NewPCG(seed, 0)), leave.New(leave.Limits{MaxParts: 1e6, MaxBytes: 1e9})}
}

func (m *modelLeaver) live(requests int) {
	for range requests {
		request := m.randomRequest()
		req, err := leavingRequest(m.Leaving, request)
		if err != nil {
			m.f.T.Errorf("%s: %v", request, err)
			return
		}
		req.Who = admin
		_, err = m.f.Write(context.Background(), req)
		switch {
		case err == nil:
			m.tell(request)
		case fault.KindOf(err) != fault.TooLarge:
			m.f.T.Errorf("%s: %v", request, err)
		}
	}
}

// tell makes a request that was not refused to the list.
func (m *modelLeaver) tell(request string) {
	rest, cancels := strings.CutPrefix(request, "CANCEL")
	if cancels {
		request = "DELETE" + rest
	}
	req, err := enginetest.ParseRequest(request)
	switch {
	case err != nil:
	case cancels:
		m.list, err = m.list.Without(req.At, false)
	default:
		m.list, err = m.list.With(req.Write)
	}
	if err != nil {
		m.f.T.Errorf("%s: %v", request, err)
	}
}

func (m *modelLeaver) randomRequest() string {
	at := fmt.Sprintf("/%d", m.name)
	for range m.rng.IntN(4) {
		at += "/" + string("abc"[m.rng.IntN(3)])
	}
	value := fmt.Sprintf(`{"a":%d,"b":{"c":"%0*d"}}`, m.rng.IntN(10), 1+m.rng.IntN(60), m.rng.IntN(10))
	switch m.rng.IntN(5) {
	case 0:
		return "CANCEL " + at
	case 1:
		return fmt.Sprintf(`PATCH %s {"a":%s,"b/c":null,"c":%d}`, at, value, m.rng.IntN(10))
	case 2:
		return "DELETE " + at
	case 3:
		return fmt.Sprintf("PUT %s %d", at, m.rng.IntN(10))
	}
	return "PUT " + at + " " + value
}

// outcome returns what must be at the path of the connection.
func (m *modelLeaver) outcome(t *testing.T) string {
	t.Helper()
	editor := tree.NewEditor(tree.Node{})
	for _, r := range m.list.Rows() {
		w, err := r.Write()
		if err != nil {
			t.Fatal(err)
		}
		editor.Apply(tree.Path{}, slices.Values(w.Assignments))
	}
	n := editor.Node().Child(fmt.Sprint(m.name))
	return string(tree.AppendJSON(nil, n, tree.Export))
}

// TestSubmittedLeaving: what is left and taken back without waiting for answers comes in the order
// in which it was submitted.
func TestSubmittedLeaving(t *testing.T) {
	t.Parallel()
	f := openCut(t, vfs.NewMem(), enginetest.OpenDatabase)
	defer f.CloseAll()
	l, chain := f.NewLeaving(), &engine.Chain{}
	var wg sync.WaitGroup
	for _, request := range []string{`PUT /a {"b":1,"c":2}`, `PUT /d 1`, `CANCEL /a/b`, `PUT /a/b 3`, `CANCEL /d`} {
		req, err := leavingRequest(l, request)
		if err != nil {
			t.Fatal(err)
		}
		req.Who = admin
		wg.Add(1)
		f.Submit(req, chain, func(commit engine.Commit, err error) {
			if err != nil || commit.Position != 0 {
				t.Errorf("%s = %+v, %v", request, commit, err)
			}
			wg.Done()
		})
	}
	wg.Wait()
	if made, err := l.Run(t.Context()); made != (engine.Made{Made: 2}) || err != nil {
		t.Errorf("Run() = %+v, %v, want two writes", made, err)
	}
	f.expect("/", `{"a":{"b":3,"c":2}}`)
}

// TestManyLeftArePrepared: where much is left, what more does to the list is not worked out at the
// turn of a request, where all other writes would wait for it.
func TestManyLeftArePrepared(t *testing.T) {
	t.Parallel()
	f := openCut(t, vfs.NewMem(), enginetest.OpenDatabase)
	defer f.CloseAll()
	l := f.leaver(admin)
	var paths []string
	for i := range 300 {
		paths = append(paths, fmt.Sprintf(`"%d":1`, i))
	}
	l.leave(fmt.Sprintf(`PATCH /a {%s}`, strings.Join(paths, ",")))
	for _, request := range []string{`PUT /b 1`, `CANCEL /a/7`} {
		req, err := leavingRequest(l.Leaving, request)
		if err != nil {
			t.Fatal(err)
		}
		req.Who = admin
		f.Submit(req, &engine.Chain{}, func(_ engine.Commit, err error) {
			if !errors.Is(err, engine.ErrAgain) {
				t.Errorf("%s at its turn = %v, want that it is to be prepared", request, err)
			}
		})
		l.leave(request)
	}
	l.run(engine.Made{Made: 2})
	f.expect("/a/7", "null")
	f.expect("/a/8", "1")
}
