package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/store/stamp"
	"github.com/livetree/livetree/internal/tree"
)

// This file holds what rules look up against an obvious tree in memory: writes of all kinds, of which views show several at once, late or not
// yet; readers of old and new views; and look-ups that are remembered long after they were read. All paths share few places.

// A sightWorld is a store and what its databases held after each commit.
type sightWorld struct {
	*stand
	rng   *rand.Rand
	paths []tree.Path // that are written and looked up
	names []string    // of children
	truth *model.Tree
	syncs sync.Mutex // while it is held no view comes

	mu     sync.RWMutex
	states map[layout.ID][]tree.Node // by position
}

func newSightWorld(t *testing.T, seed uint64, chunkBytes int, records bool) *sightWorld {
	w := &sightWorld{rng: rand.New(rand.NewPCG(seed, 11)), truth: model.New(), states: map[layout.ID][]tree.Node{}}
	w.stand = newStand(t, Options{ChunkBytes: chunkBytes, SlowSync: func() {
		w.syncs.Lock() // whoever holds it holds the syncer up
		defer w.syncs.Unlock()
	}})
	w.records = records
	w.states[w.id] = []tree.Node{{}}
	w.names = append([]string{"role", "7", "x"}, membersAlike...)
	for _, top := range []string{"/", "a", "d"} {
		w.paths = append(w.paths, parsePath(t, top))
	}
	for _, name := range w.names {
		w.paths = append(w.paths, parsePath(t, "a/"+name), parsePath(t, "a/"+name+"/role"), parsePath(t, "a/"+name+"/role/x"))
	}
	w.rng.Shuffle(len(w.paths), func(i, k int) { w.paths[i], w.paths[k] = w.paths[k], w.paths[i] }) // the first are looked up most
	return w
}

// membersAlike are names of children of a, in the first database of a store, whose sights share a place: of the first two all of the hash is
// the same, of the last one what its stamps go by.
var membersAlike = []string{"m522789", "m739192", "n246", "n440", "n4583"}

// TestMembersAlike: they are, or the tests below would test little.
func TestMembersAlike(t *testing.T) {
	t.Parallel()
	hash := func(at int) uint32 { return stamp.Hash(1, parsePath(t, "a/"+membersAlike[at])) }
	for at, alike := range []uint64{1 << 32, 1 << 32, 1 << 8, 1 << 8, 1 << 12} {
		if uint64(hash(at))%alike != uint64(hash(0))%alike {
			t.Errorf("%s and %s have the hashes %x and %x", membersAlike[0], membersAlike[at], hash(0), hash(at))
		}
	}
}

// value returns a random body, with so many levels at most.
func (w *sightWorld) value(levels int) string {
	if levels > 0 && w.rng.IntN(3) > 0 {
		members := []string{}
		for _, at := range w.rng.Perm(len(w.names))[:1+w.rng.IntN(3)] {
			members = append(members, strconv.Quote(w.names[at])+":"+w.value(levels-1))
		}
		if w.rng.IntN(4) == 0 {
			members = append(members, `".priority":`+w.leaf())
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	if w.rng.IntN(5) == 0 {
		return `{".value":` + w.leaf() + `,".priority":` + strconv.Itoa(w.rng.IntN(3)) + `}`
	}
	return []string{w.leaf(), "null", "true", "false"}[w.rng.IntN(4)]
}

func (w *sightWorld) leaf() string {
	switch w.rng.IntN(8) {
	case 0:
		return strconv.Quote(strings.Repeat("long ", w.rng.IntN(80)))
	case 1:
		return "1.5"
	case 2, 3:
		return `"admin"`
	}
	return strconv.Itoa(w.rng.IntN(4))
}

// large returns a body of many rows, now and then of more than the change log keeps.
func (w *sightWorld) large() string {
	member := `":{"role":"` + strings.Repeat("r", w.rng.IntN(250)) + `"}`
	var body strings.Builder
	for i := range 300 {
		body.WriteString(`,"c` + strconv.Itoa(i) + member)
	}
	return "{" + body.String()[1:] + "}"
}

// write makes a write, of the world and of the store. It does not wait for a view.
func (w *sightWorld) write() {
	p := w.paths[w.rng.IntN(len(w.paths))]
	keys, kind := strings.Split(p.String(), "/"), w.rng.IntN(60)
	if keys = keys[1:]; p.IsRoot() {
		keys = nil
	}
	var change tree.Write
	var err error
	switch {
	case kind == 0:
		body := w.large()
		change, err = putWrite(w, p.String(), body), w.truth.Put(keys, []byte(body), 0)
	case kind < 9:
		body := w.leaf()
		n, decodeErr := tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{})
		if decodeErr != nil {
			w.Fatal(decodeErr)
		}
		change, err = tree.PutPriority(p, n), w.truth.PutPriority(keys, []byte(body), 0)
	case kind < 25:
		body := w.patchBody()
		if change, err = tree.DecodePatch(strings.NewReader(body), p, tree.DecodeOptions{}); err == nil {
			err = w.truth.Patch(keys, []byte(body), 0)
		}
	case kind < 38:
		change, err = putWrite(w, p.String(), "null"), w.truth.Put(keys, []byte("null"), 0)
	default:
		body := w.value(4 - p.Depth())
		change, err = putWrite(w, p.String(), body), w.truth.Put(keys, []byte(body), 0)
	}
	if err != nil {
		w.Fatal(err)
	}
	w.note()
	if err := w.Commit(w.build(change), forgotten{}); err != nil {
		w.Fatal(err)
	}
	w.position++
}

func (w *sightWorld) patchBody() string {
	var members []string
	for _, at := range w.rng.Perm(len(w.names))[:1+w.rng.IntN(3)] {
		switch name := w.names[at]; w.rng.IntN(4) {
		case 0:
			members = append(members, strconv.Quote(name+"/role")+":"+w.value(1))
		case 1:
			members = append(members, strconv.Quote(name+"/.priority")+":"+w.leaf())
		default:
			members = append(members, strconv.Quote(name)+":"+w.value(1))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// note keeps what the next commit leaves, before any view can show it.
func (w *sightWorld) note() {
	n, err := tree.DecodeBytes([]byte(w.truth.Export(nil)), tree.DecodeOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[w.id] = append(w.states[w.id], n)
}

// remake drops the database and makes another one under its name.
func (w *sightWorld) remake() {
	if err := w.Drop("db"); err != nil {
		w.Fatal(err)
	}
	again := useDatabase(w.TB, w.Store, "db")
	again.records = w.records
	w.stand, w.truth = again, model.New()
	w.states[w.id] = []tree.Node{{}}
}

// A sightReader looks up what rules look up.
type sightReader struct {
	world *sightWorld
	rng   *rand.Rand
	held  []sightView
	late  []func() // each has something remembered that was read before
	known int
}

// A sightView is a view of a database, and what that holds in it.
type sightView struct {
	*View
	id    layout.ID
	state tree.Node
}

// take takes the newest view, and gives an old one back.
func (r *sightReader) take(id layout.ID) error {
	v := sightView{View: r.world.View(), id: id}
	position, err := v.Tree(id).Position()
	r.world.mu.RLock()
	v.state = r.world.states[id][position]
	r.world.mu.RUnlock()
	if r.held = append(r.held, v); len(r.held) > 4 {
		at := r.rng.IntN(len(r.held))
		r.held[at].Release()
		r.held = append(r.held[:at], r.held[at+1:]...)
	}
	return err
}

func (r *sightReader) release() {
	for _, v := range r.held {
		v.Release()
	}
	r.held = nil
}

// step looks at a few nodes of a view, as one judgement does.
func (r *sightReader) step() error {
	v := r.held[r.rng.IntN(len(r.held))]
	var cost Cost
	var last Last
	t := Remembering(v.Tree(v.id).Counting(&cost), &last)
	for range 3 {
		p := r.world.paths[r.rng.IntN(1+r.rng.IntN(len(r.world.paths)))]
		var err error
		if r.rng.IntN(4) == 0 {
			err = r.lookLate(t, v, p)
		} else {
			err = r.look(t, v, p)
		}
		if err != nil {
			return err
		}
	}
	for len(r.late) > 0 && r.rng.IntN(3) > 0 {
		at := r.rng.IntN(len(r.late))
		r.late[at]()
		r.late = append(r.late[:at], r.late[at+1:]...)
	}
	return nil
}

// look compares what is seen at a path with what the world knows.
func (r *sightReader) look(t Tree, v sightView, p tree.Path) error {
	if r.world.memos.Sight(&memo.Lookup{ID: v.id, Path: p, Aspect: memo.Aspect(r.rng.IntN(2)), View: v.number}) != nil {
		r.known++
	}
	there, err := t.Exists(p)
	if err != nil {
		return err
	}
	leaf, priority, within, err := t.LookWithin(p, math.MaxInt)
	if err != nil {
		return err
	}
	want := v.state.At(p)
	if there == want.IsNull() || !within || leaf != want.Leaf() || priority != want.Priority() {
		read := v.Tree(v.id)
		readThere, _ := exists(read, p)
		readLeaf, readPriority, _, _ := lookWithin(read, p, math.MaxInt)
		return fmt.Errorf("%s in view %d of database %d is seen as %t %+v %+v, its rows are %t %+v %+v, want %t %+v %+v", p, v.number, v.id,
			there, leaf, priority, readThere, readLeaf, readPriority, !want.IsNull(), want.Leaf(), want.Priority())
	}
	return nil
}

// lookLate looks up what is remembered later.
func (r *sightReader) lookLate(t Tree, v sightView, p tree.Path) error {
	l := &memo.Lookup{ID: v.id, Path: p, Aspect: memo.Aspect(r.rng.IntN(2)), View: v.number}
	if r.world.memos.Sight(l) != nil {
		return nil
	}
	runtime.Gosched()
	var s memo.Sight
	var err error
	if l.Aspect == memo.Existence {
		s.Exists, err = exists(t, p)
	} else {
		s.Leaf, s.Priority, _, err = lookWithin(t, p, math.MaxInt)
	}
	if err == nil && len(r.late) < 8 {
		r.late = append(r.late, func() { r.world.memos.KeepSight(l, s) })
	}
	return err
}

// TestSightsAgainstModel: what rules look up is what the writes have left, in every view, whenever it is remembered, also of databases that are
// dropped and made again.
func TestSightsAgainstModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	for i, limit := range []int{-1, 24, 200, DefaultChunkBytes} {
		w := newSightWorld(t, seed+uint64(i), limit, i%2 == 1)
		r := &sightReader{world: w, rng: w.rng}
		err := r.take(w.id)
		isHeld := false
		for step := 0; step < sightSteps && err == nil; step++ {
			isHeld, err = w.step(r, isHeld)
		}
		if isHeld {
			w.syncs.Unlock()
		}
		r.release()
		if err != nil {
			t.Fatalf("seed %d, chunks of %d: %v", seed, limit, err)
		}
		if r.known < sightSteps/30 {
			t.Errorf("seed %d, chunks of %d: only %d sights were remembered: the test tests little", seed, limit, r.known)
		}
	}
}

// step does one thing or another. It is told whether syncs are held up, and returns whether they are then.
func (w *sightWorld) step(r *sightReader, isHeld bool) (bool, error) {
	switch n := w.rng.IntN(40); {
	case n < 6:
		w.write()
	case n < 10 && isHeld:
		w.syncs.Unlock()
		done := make(visible)
		if err := w.Barrier(done); err != nil || n < 8 {
			return false, err
		}
		<-done
		return false, nil
	case n < 10:
		w.syncs.Lock()
		return true, nil
	case n < 14:
		return isHeld, r.take(w.id)
	case n == 14 && !isHeld && w.rng.IntN(20) == 0:
		w.remake()
	default:
		return isHeld, r.step()
	}
	return isHeld, nil
}

const sightSteps = 1000

// TestSightsAgainstModelAtOnce: the same with many readers at a time.
func TestSightsAgainstModelAtOnce(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	w := newSightWorld(t, seed, 64, true)
	var known atomic.Int64
	var readers sync.WaitGroup
	var stop atomic.Bool
	for i := range 6 {
		readers.Go(func() {
			r := &sightReader{world: w, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
			defer r.release()
			for !stop.Load() {
				err := r.take(w.id)
				for range 5 {
					if err == nil {
						err = r.step()
					}
				}
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					return
				}
			}
			known.Add(int64(r.known))
		})
	}
	for range sightSteps / 3 {
		w.write()
		if w.rng.IntN(3) == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	readers.Wait()
	if known.Load() == 0 {
		t.Errorf("seed %d: nothing was remembered", seed)
	}
}
