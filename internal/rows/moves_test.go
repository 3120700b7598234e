package rows_test

import (
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestMovesAreAtomic: two nodes are moved between three places by some, while others count
// in them. Whoever looks sees each of them once and whole, and no count is lost.
func TestMovesAreAtomic(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]*engine.Limits{"usual": nil, "tiny": enginetest.TinyLimits()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMoves(t, limits)
			var workers, watcher sync.WaitGroup
			var done atomic.Bool
			watcher.Go(func() {
				for last := (counts{}); !done.Load() && !t.Failed(); {
					last = m.look(last)
				}
			})
			for i := range 2 {
				rng := mathrand.New(mathrand.NewPCG(m.seed, uint64(i)))
				workers.Go(func() { m.move(rng, 100) })
			}
			for _, id := range ids {
				workers.Go(func() { m.count(id, 60) })
			}
			workers.Wait()
			done.Store(true)
			watcher.Wait()
			want := counts{ids[0]: 60, ids[1]: 60}
			if got := m.look(counts{}); !t.Failed() && fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the nodes have counted %v, want %v", got, want)
			}
			if moved := m.moved.Load(); moved < 10 {
				t.Errorf("%d moves went through, which shows nothing", moved)
			}
		})
	}
}

var (
	ids    = []string{"one", "two"}
	places = []string{"/l", "/r", "/d/e"}
)

// counts are how far the nodes have counted, by id.
type counts map[string]int64

// moves are two nodes that are moved.
type moves struct {
	t     *testing.T
	f     *enginetest.Fixture
	seed  uint64
	moved atomic.Int64
}

func newMoves(t *testing.T, limits *engine.Limits) *moves {
	t.Helper()
	m := &moves{t: t, f: enginetest.Open(t, store.Options{}), seed: mathrand.Uint64()}
	t.Logf("seed %d", m.seed)
	m.f.Reopen(engine.Options{Clock: m.f.Clock, Limits: limits, Deadline: enginetest.Unhurried})
	for i, id := range ids {
		m.f.Put(places[i], bodyOf(id))
	}
	return m
}

func bodyOf(id string) string {
	return `{".priority":"` + id + `","id":"` + id + `","n":0,"text":"` + strings.Repeat(id, 50) + `"}`
}

// at returns what is at a place.
func (m *moves) at(v *state.View, place string) tree.Node {
	n, err := v.Tree().Node(enginetest.Path(m.t, place), 1<<20)
	if err != nil {
		m.t.Error(err)
	}
	return n
}

// move moves whatever there is, as often as it is told to.
func (m *moves) move(rng *mathrand.Rand, tries int) {
	for range tries {
		from := rng.IntN(len(places))
		to := (from + 1 + rng.IntN(len(places)-1)) % len(places)
		req := rows.CopyRequest{From: places[from], To: places[to], Move: true}
		_, err := rows.Copy(m.t.Context(), m.f.Database, req, 1<<20, &budget.Claim{})
		switch kind := fault.KindOf(err); {
		case err == nil:
			m.moved.Add(1)
		case kind == fault.NotFound, kind == fault.Conflict: // it is elsewhere, or the other one is there
		case kind == fault.Unavailable && strings.Contains(err.Error(), "changes too often"):
		default:
			m.t.Errorf("move %s to %s: %v", req.From, req.To, err)
		}
	}
}

// count counts in a node, wherever it is at that moment.
func (m *moves) count(id string, times int) {
	for done := 0; done < times && !m.t.Failed(); {
		req, ok := m.next(id)
		if !ok {
			m.t.Errorf("%s is nowhere", id)
			return
		}
		switch _, err := m.f.Write(m.t.Context(), req); {
		case err == nil:
			done++
		case fault.KindOf(err) != fault.Precondition:
			m.t.Errorf("count in %s: %v", id, err)
		}
	}
}

// next returns the write that counts on in a node, if it is still what and where it is.
func (m *moves) next(id string) (engine.Request, bool) {
	v := m.f.View()
	defer v.Close()
	for _, place := range places {
		n := m.at(v, place)
		if n.Child("id").Leaf().Text() != id {
			continue
		}
		p := enginetest.Path(m.t, place)
		tag, err := v.ETag(p)
		if err != nil {
			m.t.Error(err)
		}
		return engine.Request{
			Write: tree.Put(enginetest.Path(m.t, place+"/n"), tree.LeafNode(tree.IntegerLeaf(n.Child("n").Leaf().Int()+1))),
			Also:  []engine.Condition{{Path: p, ETag: tag}}, Who: enginetest.Admin,
		}, true
	}
	return engine.Request{}, false
}

// look expects each node at one place, with all that it holds, and no count to go back.
func (m *moves) look(last counts) counts {
	v := m.f.View()
	defer v.Close()
	found := counts{}
	for _, place := range places {
		n := m.at(v, place)
		if n.IsNull() {
			continue
		}
		id, count := n.Child("id").Leaf().Text(), n.Child("n").Leaf().Int()
		if _, twice := found[id]; twice {
			m.t.Errorf("%s is at two places", id)
		}
		found[id] = count
		want := strings.Replace(bodyOf(id), `"n":0`, fmt.Sprintf(`"n":%d`, count), 1)
		if !tree.Equal(n, decode(m.t, want)) {
			m.t.Errorf("at %s is %s, want %s", place, tree.AppendJSON(nil, n, tree.Export), want)
		}
		if count < last[id] {
			m.t.Errorf("%s has counted to %d, and then to %d", id, last[id], count)
		}
	}
	if len(found) != len(ids) {
		m.t.Errorf("there are the nodes %v, want %v", found, ids)
	}
	return found
}
