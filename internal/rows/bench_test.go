package rows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/store"
)

// fill puts children below /a, of some bytes each.
func fill(f *enginetest.Fixture, children int) {
	const step = 10_000
	for from := 0; from < children; from += step {
		var members []string
		for i := from; i < min(children, from+step); i++ {
			members = append(members, fmt.Sprintf(`"k%07d":{"by":"ann","text":"hello, world","at":17632400%05d}`, i, i%100_000))
		}
		f.Patch("/a", "{"+strings.Join(members, ",")+"}")
	}
}

// BenchmarkList reads 200 rows from the middle, and the last 200: it must not grow with the
// number of children.
func BenchmarkList(b *testing.B) {
	for _, children := range []int{1_000, 30_000, 1_000_000} {
		if testing.Short() && children > 30_000 {
			continue
		}
		f := enginetest.Open(b, store.Options{})
		fill(f, children)
		path := enginetest.Path(b, "/a")
		for name, p := range map[string]params{
			"middle": {"limitToFirst": "200", "startAt": fmt.Sprintf(`"k%07d"`, children/2)},
			"last":   {"limitToLast": "200"},
		} {
			req := p.request(b)
			b.Run(fmt.Sprintf("%s-%d", name, children), func(b *testing.B) {
				short := 0 // pages that ended early, as they may on a busy machine
				for b.Loop() {
					page, err := rows.List(f.Database, path, req, nil)
					if err != nil {
						b.Fatal(err)
					}
					if len(page.Rows) < 200 {
						short++
					}
				}
				b.ReportMetric(float64(short), "short")
			})
		}
	}
}

// BenchmarkOutline counts the children of a node, which takes a pass, and asks again.
func BenchmarkOutline(b *testing.B) {
	f := enginetest.Open(b, store.Options{})
	fill(f, 200_000)
	path := enginetest.Path(b, "/a")
	b.Run("pass", func(b *testing.B) {
		for b.Loop() {
			if _, err := rows.NewOutlines(rows.DefaultOutlineBound()).Of(f.Database, path, rows.MaxMarks, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("remembered", func(b *testing.B) {
		o := rows.NewOutlines(rows.DefaultOutlineBound())
		for b.Loop() {
			if _, err := o.Of(f.Database, path, rows.MaxMarks, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWatch looks after 100 writes, as a stream does under 1,000 changes in a second, at a
// node with many children and 200 locations.
func BenchmarkWatch(b *testing.B) {
	f := enginetest.Open(b, store.Options{})
	fill(f, 20_000)
	locations := []rows.Location{{Path: "/a", From: "k0000100", To: "k0000299"}}
	for i := range 199 {
		locations = append(locations, rows.Location{Path: fmt.Sprintf("/a/k%07d", i)})
	}
	w := newWatcher(b, f, rows.DefaultWatchBound(), "", locations...)
	defer w.Close()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		for i := range 100 {
			f.Put(fmt.Sprintf("/a/k%07d/text", i*3), fmt.Sprint(n))
		}
		b.StartTimer()
		if events, err := w.Look(nil); err != nil || len(events) == 0 {
			b.Fatal(events, err)
		}
	}
}
