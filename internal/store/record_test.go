package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A recordPair is two stores: what is built on the one is committed to both, as records.
type recordPair struct {
	*testing.T
	rng     *rand.Rand
	home    *stand
	follows *Store
	applied Applied
	overlay *Overlay
}

func newRecordPair(t *testing.T, seed uint64) *recordPair {
	p := &recordPair{T: t, rng: rand.New(rand.NewPCG(seed, 11))}
	limit := []int{-1, 24, 4096}[p.rng.IntN(3)]
	options := func() Options {
		return Options{
			FS: vfs.NewMem(), ChunkBytes: limit, PriorityRows: 3, GapSteps: 2, BallastBytes: -1, Now: newClock().now,
			Rand: bytes.NewReader(bytes.Repeat([]byte{7}, 40)), LogKeep: LogKeep{Age: math.MaxInt64}, // each trims when it wants to
		}
	}
	p.home = newStand(t, options())
	p.follows = newStand(t, options()).Store
	p.home.indexes = &layout.Indexes{Children: map[string]*layout.Indexes{
		"k0": {Here: []layout.Index{{Number: 1, Order: query.ByChild(tree.Path{}.Child("b"))}}},
		"k1": {Here: []layout.Index{{Number: 2, Order: query.ByValue()}}},
	}}
	p.overlay = NewOverlay(p.home.Store, p.home.id)
	p.applied = Applied{Shard: 3, Tenure: 1}
	return p
}

// build works out what comes next, on all that the group has so far.
func (p *recordPair) build(i int) *batch.Batch {
	on := p.overlay.Tree()
	at := fmt.Sprintf("k%d/k%d", p.rng.IntN(4), p.rng.IntN(30))
	change := tree.Change{Position: p.home.position + 1, Millis: int64(i), Author: tree.NewAuthor(tree.BySecret, "")}
	var b *batch.Batch
	var err error
	switch p.rng.IntN(12) {
	case 0:
		p.home.position++
		b, err = p.home.BuildSettings(on, change, Settings{"rules": []byte(fmt.Sprint(i)), "gone": nil}, nil)
	case 1:
		b = on.NewBatch()
		err = b.Left([]LeftRow{{Connection: strings.Repeat("c", layout.ConnectionBytes), Number: uint64(p.rng.IntN(3)), Value: []byte("left")}})
	case 2:
		b = on.NewBatch()
		err = b.Hooks([]HookRow{{Hook: 1, Position: uint64(i), Notice: []byte("news"), Progress: []byte("far"), First: 1, Last: uint64(i / 2)}})
	default:
		p.home.position++
		body := []string{
			`null`, `null`, `{"a":{"b":1,"c":[1,2,3]},".priority":3}`, `7`,
			`{"b":` + fmt.Sprint(i) + `,".priority":"x"}`, `"` + strings.Repeat("x", p.rng.IntN(80)) + `"`,
		}[p.rng.IntN(6)]
		if p.rng.IntN(8) == 0 {
			at = fmt.Sprintf("k%d", p.rng.IntN(4))
		}
		change.Write = putWrite(p, at, body)
		b, err = p.home.Build(on, change, p.home.indexes, nil, &p.home.frontier)
	}
	if err != nil {
		p.Fatal(err)
	}
	p.overlay.Add(b)
	return b
}

// record commits a group to both stores.
func (p *recordPair) record(group []*batch.Batch) {
	p.applied.Number++
	p.applied.Revision += 2
	p.applied.Digest[0]++
	var home, follows []RecordPart
	for _, b := range group {
		e, err := BatchOf(p.follows, b.ID, b.Effect())
		if err != nil {
			p.Fatal(err)
		}
		if e.Record.Position != b.Logged.Position || e.Logged != b.Logged || e.Begins() != b.Begins() || e.Format() != b.Format() {
			p.Fatalf("the effect of %+v is read as %+v", b, e.Batch)
		}
		home, follows = append(home, RecordPart{b, nil}), append(follows, RecordPart{e.Batch, nil})
	}
	done, followed := make(visible), make(visible)
	home, follows = append(home, RecordPart{nil, done}), append(follows, RecordPart{nil, followed})
	p.overlay.Reset()
	if err := errors.Join(CommitRecord(p.home.Store, home, p.applied), CommitRecord(p.follows, follows, p.applied)); err != nil {
		p.Fatal(err)
	}
	<-done
	<-followed
}

// rows returns all rows of a store but that of its group.
func rowsOf(t testing.TB, s *Store) string {
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = it.Close() }()
	var text strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		if !bytes.Equal(it.Key(), layout.GroupKey) {
			fmt.Fprintf(&text, "%x %x\n", it.Key(), it.Value())
		}
	}
	return text.String()
}

// TestRecordsMakeEqualRows commits random groups, each built on an overlay of those before it in the group, to the store
// that they were built in and to another. Both have the same rows, and the rows fit together.
func TestRecordsMakeEqualRows(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		p := newRecordPair(t, seed)
		for i := 1; i < 250; {
			var group []*batch.Batch
			for range p.rng.IntN(12) {
				group = append(group, p.build(i))
				i++
			}
			position := p.home.position
			if p.rng.IntN(8) == 0 { // it is never made
				for _, b := range group {
					if b.Logged.Position > 0 {
						position = min(position, b.Logged.Position-1)
					}
					b.Close()
				}
				p.overlay.Reset()
				p.home.position, p.home.frontier = position, batch.Frontier{}
				continue
			}
			p.record(group)
		}
		if a, b := rowsOf(t, p.home.Store), rowsOf(t, p.follows); a != b {
			t.Fatalf("seed %d: %s", seed, firstDifference(b, a))
		}
		live := p.home.Live(p.home.id)
		if err := errors.Join(checkData(live), checkIndexes(live, p.home.indexes)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if applied, err := AppliedOf(p.follows, 3); applied != p.applied || err != nil {
			t.Fatalf("seed %d: applied is %+v, %v, want %+v", seed, applied, err, p.applied)
		}
	}
}

// TestRecordsInOrder shows that a record is committed once, and none is left out.
func TestRecordsInOrder(t *testing.T) {
	t.Parallel()
	s := newStand(t, Options{})
	for _, c := range []struct {
		number uint64
		ok     bool
	}{{2, false}, {1, true}, {1, false}, {0, false}, {3, false}, {2, true}} {
		b := s.build(putWrite(t, "x", fmt.Sprint(c.number)))
		err := CommitRecord(s.Store, []RecordPart{{b, forgotten{}}}, Applied{Number: c.number})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrRecord) {
			t.Errorf("record %d: %v", c.number, err)
		}
		if c.ok {
			s.position++
		}
	}
	if applied, err := AppliedOf(s.Store, 1); applied != (Applied{Shard: 1}) || err != nil {
		t.Errorf("another shard is at %+v, %v", applied, err)
	}
}

// TestOverlayGaps deletes from the front of a collection in an overlay and in the store: neither sees the gaps of the other.
func TestOverlayGaps(t *testing.T) {
	t.Parallel()
	s := newStand(t, Options{ChunkBytes: -1, GapSteps: 2})
	for i := range 60 {
		s.put(fmt.Sprintf("q/k%03d", i), `1`)
	}
	for i := range 30 {
		s.put(fmt.Sprintf("q/k%03d", i), `null`)
	}
	first := func(on Tree) string {
		key, err := on.NextChild(parsePath(t, "q"), "")
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if got := first(s.Live(s.id)); got != "k030" { // the gap before it is known now
		t.Fatalf("the first child is %s", got)
	}
	o := NewOverlay(s.Store, s.id)
	var added []*batch.Batch
	defer func() {
		o.Reset()
		for _, b := range added {
			b.Close()
		}
	}()
	add := func(at, body string) {
		b, err := s.Build(o.Tree(), tree.Change{Write: putWrite(t, at, body), Position: s.position + 1}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Add(b)
		added = append(added, b)
	}
	add("q/k005", `2`)
	if got := first(o.Tree()); got != "k005" {
		t.Errorf("in the overlay the first child is %s", got)
	}
	for i := range 30 {
		add(fmt.Sprintf("q/k%03d", i+30), `null`)
	}
	add("q/k005", `null`)
	if got := first(o.Tree()); got != "" {
		t.Errorf("in the empty overlay the first child is %s", got)
	}
	if got := first(s.Live(s.id)); got != "k030" {
		t.Errorf("in the store the first child is %s", got)
	}
}
