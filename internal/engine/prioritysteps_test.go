package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

func (f *fixture) prioritise(at string, priority int64) {
	f.T.Helper()
	w := tree.PutPriority(path(f.T, at), tree.LeafNode(tree.IntegerLeaf(priority)))
	f.Commit(engine.Request{Write: w})
}

func highest() query.Query { return query.Query{Order: query.ByPriority(), Limit: 1, Last: true} }

// TestFirstPriorityAmongManyChildren: the index is built in the background. Until it
// is there, queries say when to come back, and streams that need it end.
func TestFirstPriorityAmongManyChildren(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {".read": true, ".write": true}}`)
	f.Put("users", people(5000))
	w := f.Watch(filtered(t, "/users", `orderBy="$priority"&limitToLast=1`))
	release := f.HoldIndexes()
	f.prioritise("users/p000007", 5)
	w.Expect("end")
	if _, err := f.run("users", highest()); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a query while the index is built gives %v, want that it is not available yet", err)
	}
	f.check()
	release()
	f.ready()
	f.check()
	if got, err := f.run("users", highest()); err != nil || !strings.HasPrefix(got, `{"p000007":`) {
		t.Errorf("when the index is there, the query gives %.80s, %v", got, err)
	}
	if rows := f.indexRows(); rows != 5001 {
		t.Errorf("there are %d index rows, want one for each child and one that says so", rows)
	}
}

// TestPriorityIndexIsBuiltOverARestart: nobody has to ask for it again.
func TestPriorityIndexIsBuiltOverARestart(t *testing.T) {
	opts := store.Options{FS: vfs.NewMem(), ChunkBytes: 64, PriorityRows: 10, StepChildren: 10}
	f := open(t, opts)
	f.Put("users", people(500))
	f.HoldIndexes()
	f.prioritise("users/p000007", 5)
	f.Database.Close()
	if err := f.Store.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, opts)
	f.prioritise("users/p000300", 7)
	f.ready()
	f.check()
	if got, err := f.run("users", highest()); err != nil || !strings.HasPrefix(got, `{"p000300":`) {
		t.Errorf("the query gives %.80s, %v", got, err)
	}
	if rows := f.indexRows(); rows != 501 {
		t.Errorf("there are %d index rows, want one for each child and one that says so", rows)
	}
}

// TestPriorityIndexesAreBuiltWhileOthersWrite: writes change, empty, replace and
// order the nodes whose indexes are built.
func TestPriorityIndexesAreBuiltWhileOthersWrite(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64, PriorityRows: 3, StepChildren: 20})
	for i := range 40 {
		f.Put(fmt.Sprintf("users/g%02d", i), people(100))
	}
	writes := 300
	if enginetest.Race {
		writes = 25
	}
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range writes {
				n := w*7919 + i*104_729
				f.prioritise(fmt.Sprintf("users/g%02d/p%06d", n%40, n%100), int64(n%5))
			}
		})
		writers.Go(func() { f.disturb(w, writes) })
	}
	writers.Wait()
	f.ready()
	f.check()
	s := f.View()
	defer s.Close()
	if unbuilt, err := s.Tree().HasUnbuilt(); unbuilt || err != nil {
		t.Errorf("HasUnbuilt = %t, %v at rest", unbuilt, err)
	}
}
