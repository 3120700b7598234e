package rows_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

func outlineOf(t *testing.T, o *rows.Outlines, f *enginetest.Fixture, at tree.Path, marks int) rows.Outline {
	t.Helper()
	outline, err := o.Of(f.Database, at, marks, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outline
}

// TestOutlineEqualsTheNode: after random writes every outline is right, remembered or not,
// and with bounds that remember next to nothing.
func TestOutlineEqualsTheNode(t *testing.T) {
	t.Parallel()
	for _, kept := range []int{600, 4 << 20} {
		enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
			r := seeded(t)
			o := rows.NewOutlines(rows.OutlineBound{Time: time.Minute, Slice: time.Nanosecond, Free: 1, Kept: kept})
			for range 150 {
				if r.IntN(3) == 0 {
					change(f, r)
				}
				at := tree.Path{}
				if r.IntN(2) == 0 {
					at = at.Child(pick(r, keys))
				}
				checkOutline(t, f, at, outlineOf(t, o, f, at, 1+r.IntN(6)))
			}
		})
	}
}

func checkOutline(t *testing.T, f *enginetest.Fixture, at tree.Path, got rows.Outline) {
	t.Helper()
	n := node(t, f, at)
	v := f.View()
	want := rows.Outline{At: rows.ID(f.Epoch(), v.Position), Count: n.Len(), Exact: true, Every: got.Every, Marks: []string{}, Bytes: got.Bytes}
	v.Close()
	i := 0
	for key := range n.Children() {
		if i%got.Every == 0 {
			want.Marks = append(want.Marks, key)
		}
		i++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("the outline of %s is %v, want %v", at, got, want)
	}
}

// TestOutlineHasFewMarks: as many as fit, and at least half as many.
func TestOutlineHasFewMarks(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	fill(f, 3000)
	o := rows.NewOutlines(rows.DefaultOutlineBound())
	for _, marks := range []int{1, 2, 3, 7, 100, 2000} {
		got := outlineOf(t, o, f, enginetest.Path(t, "/a"), marks)
		checkOutline(t, f, enginetest.Path(t, "/a"), got)
		if len(got.Marks) > marks || 2*len(got.Marks) < marks {
			t.Errorf("the outline has %d marks, at most %d were asked for", len(got.Marks), marks)
		}
	}
	for _, marks := range []int{0, -1, 2001} {
		if _, err := o.Of(f.Database, tree.Path{}, marks, nil); fault.KindOf(err) != fault.Invalid {
			t.Errorf("an outline of %d marks is %v", marks, err)
		}
	}
	text := string(outlineOf(t, o, f, enginetest.Path(t, "/none"), 5).AppendJSON(nil))
	if !strings.HasSuffix(text, `"count":0,"exact":true,"every":1,"marks":[],"bytes":0}`) {
		t.Errorf("the outline of nothing is %s", text)
	}
}

// TestOutlineEndsInTime, and says so.
func TestOutlineEndsInTime(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	fill(f, 3000)
	o := rows.NewOutlines(rows.OutlineBound{Time: time.Nanosecond, Slice: time.Minute, Free: 256, Kept: 1 << 20})
	for range 2 { // it must not be remembered as if it were whole
		got := outlineOf(t, o, f, enginetest.Path(t, "/a"), 10)
		if got.Exact || got.Count == 0 || got.Count >= 3000 || len(got.Marks) == 0 {
			t.Errorf("an outline without time is %v", got)
		}
	}
}

// TestOutlinesOfADatabaseComeOneByOne: another is refused meanwhile.
func TestOutlinesOfADatabaseComeOneByOne(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	pool := scan.NewPool(scan.DefaultBounds())
	f.Reopen(engine.Options{Clock: f.Clock, Scans: pool})
	fill(f, 2000)
	var turns []*scan.Turn
	for { // take all turns: then an outline waits for one
		turn := pool.NewTurn()
		soon := make(chan struct{})
		timer := time.AfterFunc(20*time.Millisecond, func() { close(soon) })
		if turn.Begin(soon) != nil {
			break
		}
		timer.Stop()
		turns = append(turns, turn)
	}
	bound := rows.DefaultOutlineBound()
	bound.Kept = 0 // what is remembered is never refused
	o := rows.NewOutlines(bound)
	var first sync.WaitGroup
	first.Go(func() {
		outline, err := o.Of(f.Database, enginetest.Path(t, "/a"), 10, nil)
		for fault.KindOf(err) == fault.Unavailable { // the other one is faster
			outline, err = o.Of(f.Database, enginetest.Path(t, "/a"), 10, nil)
		}
		if err != nil {
			t.Error(err)
			return
		}
		checkOutline(t, f, enginetest.Path(t, "/a"), outline)
	})
	for !t.Failed() {
		_, err := o.Of(f.Database, enginetest.Path(t, "/b"), 10, nil)
		if fault.KindOf(err) == fault.Unavailable {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		runtime.Gosched() // the first has not begun
	}
	for _, turn := range turns {
		turn.End()
	}
	first.Wait()
	checkOutline(t, f, enginetest.Path(t, "/a"), outlineOf(t, o, f, enginetest.Path(t, "/a"), 10))
}

// TestOutlineOfAReopenedStore: what one store has remembered is not what another one shows that has gone on in its directory. The
// moments of a past are made so, one after the other.
func TestOutlineOfAReopenedStore(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := rows.NewOutlines(rows.DefaultOutlineBound())
	at := enginetest.Path(t, "/a")
	for i := range 3 {
		between := enginetest.Open(t, store.Options{FS: fs})
		between.Put(fmt.Sprintf("/a/%d", i), `"value"`)
		between.CloseAll()
		f := enginetest.Open(t, store.Options{FS: fs})
		for range 2 {
			checkOutline(t, f, at, outlineOf(t, o, f, at, 10))
		}
		f.CloseAll()
	}
}
