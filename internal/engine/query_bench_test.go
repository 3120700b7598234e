package engine_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// BenchmarkQueryLast100 reads the last hundred records by an index, of
// collections that grow a thousandfold.
func BenchmarkQueryLast100(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := open(b, store.Options{CacheBytes: 1 << 30})
			f.Rule(enginetest.AgeRules)
			f.Collection(n)
			f.ready()
			last := byAge(b, func(q *query.Query) { q.Limit, q.Last = 100, true })
			bounded := byAge(b, func(q *query.Query) {
				q.Lower = query.Bound{Set: true, Value: tree.IntegerLeaf(int64(n / 2))}
				q.Limit = 100
			})
			for name, q := range map[string]query.Query{"last": last, "from the middle": bounded} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					for i := int64(n); b.Loop(); i++ {
						// Another query every time, so that none is remembered.
						q.Upper = query.Bound{Set: true, Value: tree.IntegerLeaf(i)}
						s := f.View()
						selection, err := s.Select(path(b, "users"), q, tree.Plain)
						s.Close()
						if err != nil {
							b.Fatal(err)
						}
						if err := selection.PrintTo(io.Discard); err != nil {
							b.Fatal(err)
						}
						_ = selection.Close()
					}
				})
			}
		})
	}
}

// BenchmarkWriteIndexed writes one record of a large collection with 0, 1 and 3
// indexes.
func BenchmarkWriteIndexed(b *testing.B) {
	for i, on := range []string{`[]`, `["age"]`, `["age","name","text"]`} {
		b.Run(fmt.Sprintf("%d indexes", []int{0, 1, 3}[i]), func(b *testing.B) {
			f := open(b, store.Options{})
			f.Rule(`{"rules": {"users": {".indexOn": ` + on + `}}}`)
			f.Collection(20_000)
			f.ready()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				f.Put(fmt.Sprintf("users/p%07d", n%20_000), fmt.Sprintf(`{"age":%d,"name":"new %d","text":"t%d"}`, n, n, n))
			}
		})
	}
}
