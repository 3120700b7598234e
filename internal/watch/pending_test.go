package watch_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// TestPendingBytes holds the dispatcher, fills what waits for it, and measures the
// heap: it must be within the bound, and about what was counted.
func TestPendingBytes(t *testing.T) {
	if enginetest.Race {
		t.Skip("the race detector keeps memory of its own")
	}
	const nodes = 150
	list := "[" + strings.Repeat("1,", 80) + "1]" // each is a row in the store
	large := "[" + strings.Repeat(list+",", 80) + list + "]"
	long := `{"text":"` + strings.Repeat("t", 60_000) + `"}`
	for name, shape := range map[string]struct {
		large string // at /l/0, /l/1 and so on
		write func(n int) string
	}{
		"small assignments over large nodes": {large, func(n int) string { return fmt.Sprintf(`PUT /l/%d %d`, n, n) }},
		"deletes of large nodes":             {large, func(n int) string { return fmt.Sprintf(`DELETE /l/%d`, n) }},
		"priorities of large nodes":          {large, func(n int) string { return fmt.Sprintf(`PUT /l/%d/.priority %d`, n, n) }},
		"priorities of long strings":         {long, func(n int) string { return fmt.Sprintf(`PUT /l/%d/.priority %d`, n, n) }},
		"many parts merged": {large, func(n int) string {
			var parts []string
			for i := range 10 {
				parts = append(parts, fmt.Sprintf(`"%d/.priority":%d,"%d/0/%d":%d`, i, n, i, n, n))
			}
			return `PATCH /l {` + strings.Join(parts, ",") + `}`
		}},
		"large nodes": {"1", func(n int) string { return fmt.Sprintf(`PUT /l/%d %s`, n, large) }},
	} {
		t.Run(name, func(t *testing.T) {
			measurePending(t, nodes, func(f *fixture) {
				for n := range nodes {
					f.Do(fmt.Sprintf(`PUT /l/%d %s`, n, shape.large))
				}
			}, func(f *fixture, n int) { f.Do(shape.write(n % nodes)) })
		})
	}
	t.Run("paths of long requests", func(t *testing.T) {
		measurePending(t, 2000, func(*fixture) {}, func(f *fixture, n int) {
			head := fmt.Sprintf("/l/%d?", n) + strings.Repeat("h", 100_000)
			p, err := tree.ParsePath(head[:strings.Index(head, "?")])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(context.Background(), engine.Request{Who: admin, Write: tree.Put(p, tree.LeafNode(tree.BooleanLeaf(true)))}); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// measurePending fills what waits by at most so many writes and measures it. The store's own
// memory may change while it does: then it tries again.
func measurePending(t *testing.T, most int, prepare func(*fixture), write func(f *fixture, n int)) {
	var err error
	for range 3 {
		f := open(t, store.Options{})
		prepare(f)
		f.Watch(whole(t, "/l"))
		f.Watch(whole(t, "/l/0"))
		if err = f.fill(most, func(n int) { write(f, n) }); err == nil {
			return
		}
	}
	t.Error(err)
}

// fill writes until what waits is nearly full, and measures. Then it goes on until all
// is given up.
func (f *fixture) fill(most int, write func(n int)) error {
	limit := watch.MaxPendingBytes
	dispatcher := f.Watches().HoldDispatcher()
	defer dispatcher.Release()
	n, given := 0, false
	for ; n < most && f.Watches().PendingBytes() < limit*3/4; n++ {
		write(n)
	}
	counted, held := f.Watches().PendingBytes(), keptHeap()
	for ; n < 2*most && counted >= limit*3/4 && !given; n++ {
		before := f.Watches().PendingBytes()
		write(n)
		waits := f.Watches().PendingBytes()
		given = waits < before
		if waits > limit {
			return fmt.Errorf("%d bytes wait, want at most %d", waits, limit)
		}
	}
	if given {
		held -= keptHeap()
	} else {
		f.Watches().DropPending()
		held -= keptHeap()
	}
	f.T.Logf("%d writes: %d KiB counted, %d KiB measured", n, counted>>10, held>>10)
	if held > counted+counted/4+8<<20 {
		return fmt.Errorf("what waits takes %d bytes, but %d are counted", held, counted)
	}
	return nil
}

// keptHeap returns how much of the heap is in use.
func keptHeap() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
