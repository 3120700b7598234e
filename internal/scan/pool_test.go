package scan_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// fill writes n children with a number called a and a text.
func fill(f *enginetest.Fixture, n int) {
	const perWrite = 10_000
	for first := 0; first < n; first += perWrite {
		var body strings.Builder
		for i := first; i < min(n, first+perWrite); i++ {
			fmt.Fprintf(&body, `,"k%06d":{"a":%d,"text":"child %d of many"}`, i, i*7919%n, i)
		}
		f.Do(`PATCH /l {` + body.String()[1:] + `}`)
	}
}

// A gate is a writer that waits for each write.
type gate struct{ arrived, open chan struct{} }

func (g *gate) Write(p []byte) (int, error) {
	g.arrived <- struct{}{}
	<-g.open
	return len(p), nil
}

// TestPoolBoundsPasses: when all turns are taken a long pass waits, until its client
// leaves if it must, and a short one does not. A pass that writes has no turn.
func TestPoolBoundsPasses(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	fill(f, 20_000)
	f.Do(`PUT /few {"x":{"a":1},"y":{"a":2}}`)
	v := f.View()
	defer v.Close()
	pool := scan.NewPool(scan.DefaultBounds())
	node := scan.Node{Tree: v.Tree(), Path: enginetest.Path(t, "/l"), Pool: pool}
	best := parse(t, `orderBy="a"&limitToFirst=3`)

	release := pool.Hold()
	gone := make(chan struct{})
	close(gone)
	left := node
	left.Tree = left.Tree.Until(gone)
	if _, err := scan.Find(left, best); !errors.Is(err, store.ErrUnwanted) {
		t.Errorf("a pass whose client left while it waited gives %v", err)
	}
	few := node
	few.Path = enginetest.Path(t, "/few")
	if known, err := scan.Find(few, best); err != nil || len(known.Shown(best)) != 2 {
		t.Errorf("a short pass waits: %v", err)
	}
	if n := pool.Passes(); n != 0 {
		t.Errorf("%d long passes are counted", n)
	}
	release()

	slow := &gate{make(chan struct{}), make(chan struct{})}
	done := make(chan error)
	all := parse(t, `orderBy="a"`)
	go func() { done <- scan.Print(slow, node, all, tree.Plain) }()
	<-slow.arrived
	pool.Hold()() // it would wait for ever if the printing pass had a turn
	close(slow.open)
	go func() {
		for range slow.arrived {
		}
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := pool.Passes(); n != 1 {
		t.Errorf("%d long passes are counted, want 1", n)
	}
}

// mostBytes is what a scan may take with what the store reads meanwhile. To keep 100,000
// children would take several times as much.
const mostBytes = 8 << 20

// TestMemoryIsConstant: a scan of many children takes no more memory at a time than one
// of a few.
func TestMemoryIsConstant(t *testing.T) {
	f := enginetest.Open(t, store.Options{CacheBytes: 1 << 20})
	fill(f, 100_000)
	v := f.View()
	defer v.Close()
	node := scan.Node{Tree: v.Tree(), Path: enginetest.Path(t, "/l"), Pool: scan.NewPool(scan.DefaultBounds())}
	for _, text := range []string{`orderBy="a"&limitToLast=1000`, `orderBy="text"&limitToFirst=10`, `orderBy="a"`} {
		q := parse(t, text)
		peak := peakOf(func(look func()) {
			if q.Limit == 0 {
				if err := scan.Print(lookingWriter{look}, node, q, tree.Export); err != nil {
					t.Error(err)
				}
				return
			}
			known := find(t, node, q)
			look()
			runtime.KeepAlive(known)
		})
		if peak > mostBytes && !enginetest.Race {
			t.Errorf("%s of 100,000 children takes %d KiB", text, peak>>10)
		}
	}
}

func find(t testing.TB, n scan.Node, q query.Query) *scan.Known {
	t.Helper()
	known, err := scan.Find(n, q)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// peakOf returns by how much more memory is in use when f calls look than before.
func peakOf(f func(look func())) (peak int64) {
	used := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, looks := used(), 0
	f(func() {
		if looks++; looks%20 == 1 { // it takes a while
			peak = max(peak, used()-before)
		}
	})
	return peak
}

type lookingWriter struct{ look func() }

func (w lookingWriter) Write(p []byte) (int, error) {
	w.look()
	return io.Discard.Write(bytes.TrimSpace(p))
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		f := enginetest.Open(b, store.Options{})
		fill(f, n)
		v := f.View()
		defer v.Close()
		node := scan.Node{Tree: v.Tree(), Path: enginetest.Path(b, "/l"), Pool: scan.NewPool(scan.DefaultBounds())}
		for _, text := range []string{`orderBy="a"&limitToLast=100`, `orderBy="$value"&limitToLast=100`, `orderBy="none"&limitToLast=100`} {
			q := parse(b, text)
			b.Run(fmt.Sprintf("%s/%d", q.Order, n), func(b *testing.B) {
				for b.Loop() {
					find(b, node, q)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/child")
			})
		}
	}
}
