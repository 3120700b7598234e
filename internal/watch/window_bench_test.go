package watch_test

import (
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// BenchmarkWindowOpen opens a watch whose limit is far above the number of children,
// without printing its first event: the first one of a place, and another one.
func BenchmarkWindowOpen(b *testing.B) {
	const n = 200_000
	f := open(b, store.Options{CacheBytes: 1 << 30})
	f.Rule(enginetest.AgeRules)
	f.Collection(n)
	if err := enginetest.WaitForIndexes(b.Context(), f.Database); err != nil {
		b.Fatal(err)
	}
	for _, last := range []bool{false, true} {
		for _, order := range []query.Order{query.ByKey(), query.ByChild(tree.Path{}.Child("age"))} {
			req := whole(b, "users")
			req.Wake = func() {}
			req.Query = &query.Query{Order: order, Limit: 2_000_000_000, Last: last}
			name := fmt.Sprintf("by %s, last %t", order, last)
			benchmark := func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w, _, err := f.Watches().Open(req)
					if err != nil {
						b.Fatal(err)
					}
					w.Close()
				}
			}
			b.Run(name+"/first", benchmark)
			w := f.Begin(req)
			b.Run(name+"/second", benchmark)
			w.Close()
		}
	}
}
