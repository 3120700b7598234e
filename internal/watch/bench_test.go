package watch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// BenchmarkTellPatch writes n paths at a time, each of which has a watch of its own,
// and tells them. The metric cpu-ns/path is to be the same for every n.
func BenchmarkTellPatch(b *testing.B) {
	for _, n := range []int{1000, 8000, 64_000} {
		b.Run(fmt.Sprintf("paths=%d", n), func(b *testing.B) {
			f := open(b, store.Options{})
			req, paths := patchOf(b, n)
			var left atomic.Int64
			told := make(chan struct{}, 1)
			wake := func() {
				if left.Add(-1) == 0 {
					told <- struct{}{}
				}
			}
			list := make([]*enginetest.Watcher, n)
			for i, p := range paths {
				list[i] = f.Watch(watch.Request{Path: p, Who: admin, Wake: wake})
			}
			b.ReportAllocs()
			b.ResetTimer()
			before := enginetest.CPUMicros(b)
			for round := range b.N {
				for i := range req.Assignments {
					req.Assignments[i].Node = tree.LeafNode(tree.IntegerLeaf(int64(round)))
				}
				left.Store(int64(n))
				if _, err := f.Write(context.Background(), req); err != nil {
					b.Fatal(err)
				}
				<-told
				for _, w := range list {
					if _, ok := w.Next(); !ok {
						b.Fatal("no event")
					}
				}
			}
			b.ReportMetric(float64(enginetest.CPUMicros(b)-before)*1000/float64(b.N*n), "cpu-ns/path")
		})
	}
}
