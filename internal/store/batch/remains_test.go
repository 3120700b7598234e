package batch

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// TestRemains: whatever is written, nothing remains of what was there before: neither rows of data nor of indexes, of which some are
// built and dropped meanwhile. Large writes are prepared on what others then replace, and some are given another key and time.
func TestRemains(t *testing.T) {
	const histories, steps = 12, 60
	pointDeletes = 2
	t.Cleanup(func() { pointDeletes = PointDeletes })
	seed := rand.Uint64()
	for n := range uint64(histories) {
		t.Run(fmt.Sprint(seed+n), func(t *testing.T) {
			r := newRemains(t, seed+n)
			for range steps {
				if r.step(); t.Failed() {
					t.Fatal(strings.Join(r.log[max(0, len(r.log)-12):], "\n"))
				}
			}
		})
	}
}

// remains is one random history, of a stand that prepares, renews, builds and drops, and of a plain one that does none of it.
type remains struct {
	*stand
	plain *stand
	model *model.Tree
	rng   *rand.Rand
	log   []string

	built   []*builtIndex
	next    uint32
	most    int  // how many indexes there are at a time
	wild    bool // patterns are of wildcards alone, else of keys alone: then no index ends another's
	millis  int64
	touched []tree.Path // by writes, in order
	hints   bool        // there may be rows of what expires that have no data
}

// A builtIndex is an index at any stage.
type builtIndex struct {
	layout.Index
	pattern []string
	stage   string
	cursor  []byte
	expires bool
}

func newRemains(t *testing.T, seed uint64) *remains {
	rng := rand.New(rand.NewPCG(seed, 1))
	limit := []int{0, 8, 24, 64, 300}[rng.IntN(5)]
	r := &remains{stand: newStand(t, limit), plain: newStand(t, limit), model: model.New(), rng: rng, next: 1, most: rng.IntN(5), wild: rng.IntN(2) == 0, millis: timeBefore}
	r.frontier.Most = rng.IntN(4)
	r.PriorityRows, r.StepChildren = rng.IntN(4), []int{1, 3, 12, 1000}[rng.IntN(4)]
	return r
}

func (r *remains) step() {
	switch n := r.rng.IntN(12); {
	case n == 0 && len(r.built) < r.most:
		r.begin()
	case n == 1:
		r.drop()
	case n < 4:
		r.work()
	case n == 4:
		r.ChunkBytes = []int{0, 8, 24, 64, 300}[r.rng.IntN(5)]
		r.plain.ChunkBytes = r.ChunkBytes
	default:
		r.change()
	}
	r.verify()
}

// begin adds an index that is to be built.
func (r *remains) begin() {
	e := &builtIndex{stage: "building"}
	for range r.rng.IntN(4) {
		key := "$"
		if !r.wild {
			key = r.key()
		}
		e.pattern = append(e.pattern, key)
	}
	orders := []query.Order{query.ByValue(), query.ByChild(parsePath(r, "a")), query.ByChild(parsePath(r, "7/b")), query.ByChild(parsePath(r, "b"))}
	n := r.rng.IntN(5)
	e.expires = n == 4
	e.Index = layout.Index{Number: r.next, Order: orders[n%4+n/4]}
	r.next++
	r.built = append(r.built, e)
	r.keep()
	r.log = append(r.log, fmt.Sprintf("index %d at %v by %v, expires %v", e.Number, e.pattern, e.Order, e.expires))
}

// drop has an index no longer kept.
func (r *remains) drop() {
	if len(r.built) == 0 {
		return
	}
	e := r.built[r.rng.IntN(len(r.built))]
	if e.stage != "dropping" {
		e.stage, e.cursor = "dropping", nil
		r.keep()
		r.log = append(r.log, fmt.Sprintf("drop index %d", e.Number))
	}
}

// keep makes the indexes those that writes keep.
func (r *remains) keep() {
	r.indexes = &layout.Indexes{}
	for _, e := range r.built {
		if e.stage == "dropping" {
			continue
		}
		x := r.indexes
		for _, key := range e.pattern {
			if key == "$" {
				if x.Wildcard == nil {
					x.Wildcard = &layout.Indexes{}
				}
				x = x.Wildcard
				continue
			}
			if x.Children == nil {
				x.Children = map[string]*layout.Indexes{}
			}
			if x.Children[key] == nil {
				x.Children[key] = &layout.Indexes{}
			}
			x = x.Children[key]
		}
		if e.expires {
			x.Due = append(x.Due, e.Index)
		} else {
			x.Here = append(x.Here, e.Index)
		}
	}
	r.indexes.NoteExpiry()
}

// work makes a step of an index, or of one by priority, while writes are made between finding its rows and adding them.
func (r *remains) work() {
	snapshot := r.DB.NewSnapshot()
	defer func() { _ = snapshot.Close() }()
	view := r.live()
	view.Source, view.View = snapshot, 1
	since := len(r.touched)
	meanwhile := func() {
		for range r.rng.IntN(4) {
			r.change()
		}
	}
	if n := r.rng.IntN(len(r.built) + 1); n < len(r.built) {
		r.workOn(r.built[n], view, since, meanwhile)
		return
	}
	rows, err := r.BuildPriority(view, 0)
	if err != nil {
		r.Fatal(err)
	}
	if rows == nil {
		return
	}
	meanwhile()
	r.log = append(r.log, "a step of priorities")
	ok, err := rows.Amend(r.live(), r.touched[since:])
	if !ok && err == nil {
		rows.Close()
		rows, err = r.BuildPriority(r.live(), 0)
	}
	if err != nil {
		r.Fatal(err)
	}
	if rows != nil {
		r.take(&rows.IndexRows)
	}
}

func (r *remains) workOn(e *builtIndex, view seek.Reader, since int, meanwhile func()) {
	var rows *IndexRows
	var err error
	switch {
	case e.stage == "ready":
		return
	case e.stage == "dropping":
		rows, err = r.DropIndex(view, e.Number, e.cursor)
	case e.expires:
		rows, err = r.BuildDue(view, r.indexes, e.Number, e.cursor)
	default:
		rows, err = r.BuildIndex(view, r.indexes, e.Index, len(e.pattern), e.cursor)
	}
	if err != nil {
		r.Fatal(err)
	}
	meanwhile()
	r.hints = r.hints || e.expires && len(r.touched) > since // it may add rows of what is gone: see BuildDue
	r.log = append(r.log, fmt.Sprintf("a step of index %d, %s", e.Number, e.stage))
	if e.stage == "building" && !e.expires {
		ok, err := rows.Amend(r.live(), r.touched[since:])
		if !ok && err == nil {
			rows.Close()
			rows, err = r.BuildIndex(r.live(), r.indexes, e.Index, len(e.pattern), e.cursor)
		}
		if err != nil {
			r.Fatal(err)
		}
	}
	if e.cursor = rows.Cursor; e.cursor == nil && e.stage == "building" {
		e.stage = "ready"
	} else if e.cursor == nil {
		e.stage = "gone"
	}
	r.take(rows)
	for i, e := range r.built {
		if e.stage == "gone" {
			r.built = append(r.built[:i:i], r.built[i+1:]...)
			break
		}
	}
}

func (r *remains) take(rows *IndexRows) {
	b := r.Empty(testID)
	b.Take(rows)
	defer b.Close()
	if err := r.DB.Apply(b.Rows, pebble.NoSync); err != nil {
		r.Fatal(err)
	}
}

// verify holds all rows against those of the plain stand, and against the model, and the index rows against the data.
func (r *remains) verify() {
	if got, want := strings.Join(r.dataRows(), "\n"), strings.Join(r.plain.dataRows(), "\n"); got != want {
		r.Errorf("the rows are\n%.3000s\nwant\n%.3000s", got, want)
	}
	if got, want := r.export(), r.model.Export(nil); got != want {
		r.Errorf("the tree is\n%.3000s\nwant\n%.3000s", got, want)
	}
	report := func(f inspect.Flaw) bool {
		r.Errorf("%s: %v", f.Path, f.Err)
		return true
	}
	unfinished := func(number uint32) bool {
		for _, e := range r.built {
			if e.Number == number {
				return e.stage != "ready"
			}
		}
		return false
	}
	err := errors.Join(inspect.CheckData(r.live(), report), inspect.CheckIndexes(r.live(), r.indexes, unfinished, report), inspect.CheckDue(r.live(), r.indexes, unfinished, report))
	if err != nil {
		r.Error(err)
	}
	r.verifyDue()
}

// verifyDue holds the rows of what expires against the data: without the mark of a sweep there are none too many.
func (r *remains) verifyDue() {
	mark, err := r.live().SweepMark()
	if err != nil {
		r.Fatal(err)
	}
	unbuilt := slices.ContainsFunc(r.built, func(e *builtIndex) bool { return e.expires && e.stage != "ready" })
	if unbuilt {
		return
	}
	var want, got []string
	walk := seek.DueWalk{Reader: r.live(), Indexes: r.indexes, Yield: func(index layout.Index, child tree.Path, time query.Value) error {
		if time.IsNumber() {
			want = append(want, fmt.Sprintf("%x", layout.DueKey(nil, testID, index.Number, time, child)))
		}
		return nil
	}}
	if r.indexes.Expires() {
		if _, err := walk.Run(layout.DataPrefix(testID), layout.AppendSpace(nil, layout.SpaceData, testID+1), math.MaxInt); err != nil {
			r.Fatal(err)
		}
	}
	from, to := layout.DueRange(testID)
	if err := r.live().EachDueRow(from, to, func(key []byte) bool { got = append(got, fmt.Sprintf("%x", key)); return true }); err != nil {
		r.Fatal(err)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if mark != nil || r.hints { // the rows are swept
		var keys [][]byte
		for _, row := range got {
			if _, ok := slices.BinarySearch(want, row); !ok {
				key, _ := hex.DecodeString(row)
				keys = append(keys, key)
			}
		}
		b := r.Empty(testID)
		defer b.Close()
		if err := errors.Join(b.DropDue(append(keys, layout.SweepKey(testID))), r.DB.Apply(b.Rows, pebble.NoSync)); err != nil {
			r.Fatal(err)
		}
		r.hints = false
		return
	}
	if !slices.Equal(got, want) {
		r.Errorf("the rows of what expires are\n%q\nwant\n%q", got, want)
	}
}

// export puts the tree together from its rows.
func (r *remains) export() string {
	it, err := r.live().Space(layout.SpaceData)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = it.Close() }()
	e := tree.NewEditor(tree.Node{})
	type priority struct {
		at tree.Path
		of tree.Leaf
	}
	var priorities []priority
	for ok := it.First(); ok; ok = it.Next() {
		path, isPriority, err := layout.CutDataKey(it.Key())
		if err != nil {
			r.Fatal(err)
		}
		n, err := layout.DecodeChunk(bytes.Clone(it.Value()))
		if err != nil {
			r.Fatal(err)
		}
		if isPriority {
			priorities = append(priorities, priority{path, n.Leaf()})
		} else {
			e.Set(path, n)
		}
	}
	for _, p := range priorities {
		e.SetPriority(p.at, p.of)
	}
	return string(tree.AppendJSON(nil, e.Node(), tree.Export))
}
