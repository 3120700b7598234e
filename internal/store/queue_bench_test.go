//go:build unix

package store

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// BenchmarkQueue shows what a queue of 40 live jobs costs after so many were done:
// a delete with the push of the next job, and the looks that find the oldest.
func BenchmarkQueue(b *testing.B) {
	for _, done := range []int{5_000, 20_000, 80_000} {
		b.Run(fmt.Sprintf("%d done", done), func(b *testing.B) {
			q := newQueue(b, Options{FS: vfs.Default})
			q.finish(done)
			b.Run("delete the oldest", func(b *testing.B) { measure(b, func(int) { q.push(); q.deleteOldest() }) })
			b.Run("set and delete one child", func(b *testing.B) { measure(b, func(int) { q.push(); q.deleteNewest() }) })
			q.wait()
			view := q.View()
			defer view.Release()
			b.Run("exists", func(b *testing.B) { measure(b, func(int) { q.look(view, nil) }) })
			first := query.Query{Order: query.ByKey(), Limit: 1}
			b.Run("first by key", func(b *testing.B) { measure(b, func(int) { q.look(view, &first) }) })
			oldest := query.Query{Order: query.ByChild(tree.Path{}.Child("at")), Limit: 1}
			b.Run("first by index", func(b *testing.B) { measure(b, func(int) { q.look(view, &oldest) }) })
			newest := query.Query{Order: query.ByKey(), Limit: 1, Last: true}
			b.Run("last by key", func(b *testing.B) { measure(b, func(int) { q.look(view, &newest) }) })
		})
	}
}
