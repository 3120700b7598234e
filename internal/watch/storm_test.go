package watch_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

// TestWatchStorm opens and closes watches while others write, then closes the
// database and the store under the writers. Nothing is left behind.
func TestWatchStorm(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	for range 5 {
		storm(t)
	}
	// What ends may take a moment to be gone, on a busy machine a long one.
	err := goleak.Find(ignore)
	for tries := 0; err != nil && tries < 200; tries++ {
		err = goleak.Find(ignore)
	}
	if err != nil {
		t.Error(err)
	}
}

func storm(t *testing.T) {
	s, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Create("db")
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.Open(s, id, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, 0), Deadline: enginetest.Unhurried})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var writes, opened atomic.Int64
	var closing atomic.Bool
	requests := []watch.Request{whole(t, "/"), whole(t, "/w1"), whole(t, "/w0/3"),
		filtered(t, "/w0", `orderBy="$key"&limitToLast=2`), filtered(t, "/w1", `orderBy="$key"&limitToFirst=2`)}
	for i := range 3 {
		running.Go(func() {
			for k := 0; ; k++ {
				req, err := enginetest.ParseRequest(fmt.Sprintf(`PUT /w%d/%d %d`, i, k%20, k))
				if err != nil {
					t.Error(err)
					return
				}
				req.Who = admin
				if _, err := d.Write(context.Background(), req); err != nil {
					if !closing.Load() {
						t.Error(err)
					}
					return
				}
				writes.Add(1)
			}
		})
	}
	for i := range 6 {
		running.Go(func() {
			for k := i; ; k++ {
				req := requests[k%len(requests)]
				req.Wake = func() {}
				w, _, err := d.Watches().Open(req)
				if err != nil && !closing.Load() {
					if fault.KindOf(err) != fault.Unavailable { // too many begin, and leave at once
						t.Error(err)
						return
					}
					continue
				}
				if err != nil {
					return
				}
				opened.Add(1)
				for range k % 10 {
					if e, ok := w.Next(); ok && e.Content != nil {
						if err := e.Content.Close(); err != nil {
							t.Error(err)
						}
					}
				}
				w.Close()
			}
		})
	}
	for (writes.Load() < 100 || opened.Load() < 100) && !t.Failed() {
		runtime.Gosched()
	}
	closing.Store(true)
	d.Close()
	running.Wait()
	if watches, places := d.Watches().WatchCounts(); watches != 0 || places != 0 {
		t.Errorf("%d watches and %d places are left", watches, places)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkWriteBesideWatches writes where nobody watches.
func BenchmarkWriteBesideWatches(b *testing.B) {
	for _, idle := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("idle=%d", idle), func(b *testing.B) {
			f := open(b, store.Options{})
			for i := range idle {
				f.Watch(whole(b, fmt.Sprintf("/idle/%d", i)))
			}
			req, err := enginetest.ParseRequest(`PUT /busy/x {"a":1,"b":"text"}`)
			if err != nil {
				b.Fatal(err)
			}
			req.Who = admin
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Write(context.Background(), req); err != nil {
					b.Fatal(err)
				}
			}
			f.WaitForWatches()
		})
	}
}

// BenchmarkWriteToWatches writes where a thousand watch, who all take the event.
func BenchmarkWriteToWatches(b *testing.B) {
	const watches = 1000
	f := open(b, store.Options{})
	list := make([]*enginetest.Watcher, watches)
	for i := range list {
		list[i] = f.Watch(whole(b, "/busy"))
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		f.Do(fmt.Sprintf(`PUT /busy/x {"a":%d,"b":"text"}`, n))
		f.WaitForWatches()
		for _, w := range list {
			if _, ok := w.Next(); !ok {
				b.Fatal("no event")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*watches), "ns/event")
}
