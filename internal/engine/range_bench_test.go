//go:build unix

package engine_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// BenchmarkRange100 reads a hundred records by an index from a bound that no other read has,
// so no memo answers: of few records, of many that fit the block cache, and of many that are
// five times as much.
func BenchmarkRange100(b *testing.B) {
	for _, test := range []struct {
		name  string
		n     int
		cache int64
	}{
		{"of 1000", 1000, 1 << 30},
		{"of 200000 cached", 200_000, 1 << 30},
		{"of 200000 beyond the cache", 200_000, 12 << 20},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.Chdir(b.TempDir())
			f := open(b, store.Options{FS: vfs.Default, BallastBytes: -1, CacheBytes: test.cache})
			f.Rule(`{"rules": {"users": {".indexOn": "score"}}}`)
			rng := rand.New(rand.NewPCG(1, 2))
			for from := 0; from < test.n; from += 20_000 {
				var body strings.Builder
				for i := from; i < min(test.n, from+20_000); i++ {
					fmt.Fprintf(&body, `,"user%07d":%s`, i, benchRecord(rng))
				}
				f.Patch("users", "{"+body.String()[1:]+"}")
			}
			f.ready()
			order, at := query.ByChild(path(b, "score")), path(b, "users")
			read := func(int) error {
				q := query.Query{Order: order, Limit: 100}
				q.Lower = query.Bound{Set: true, Value: tree.DoubleLeaf(rand.Float64() * 80)}
				v := f.View()
				selection, err := v.Select(at, q, tree.Plain)
				v.Close()
				if err != nil {
					return err
				}
				defer func() { _ = selection.Close() }()
				return selection.PrintTo(io.Discard)
			}
			for i := range 2000 { // so that the cache holds what it can
				if err := read(i); err != nil {
					b.Fatal(err)
				}
			}
			measure(b, 1, read)
		})
	}
}
