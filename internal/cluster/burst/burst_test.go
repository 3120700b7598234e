package burst_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster/burst"
)

// A heap notes what is done to it.
type heap struct {
	live    int64
	scanned int64
	percent int
	done    []string
}

func (h *heap) Live() int64    { return h.live }
func (h *heap) Scanned() int64 { return h.scanned }
func (h *heap) Percent() int   { return h.percent }
func (h *heap) SetPercent(percent int) {
	h.percent = percent
	h.done = append(h.done, fmt.Sprint(percent))
}
func (h *heap) Free() { h.done = append(h.done, "free") }

// A log grows at will, and so do large writes.
type log struct {
	*burst.Burst
	*heap
	size int64
	busy int64
	now  time.Time
}

func newLog(percent int, liveMiB int64) *log {
	l := &log{heap: &heap{live: liveMiB << 20, percent: percent}, size: 1 << 30, now: time.Unix(1, 0)}
	l.Burst = burst.New(l.heap, func() int64 { return l.size }, func() int64 { return l.busy })
	return l
}

// write has some MiB of large writes be under way at each of some looks.
func (l *log) write(looks int, mib int64) {
	l.busy = mib << 20
	l.grow(looks, 0)
	l.busy = 0
}

// grow has some MiB come at each of some looks.
func (l *log) grow(looks int, mib int64) {
	for range looks {
		l.size += mib << 20
		l.now = l.now.Add(burst.Every)
		l.Look(l.now)
	}
}

func (l *log) said() string {
	said := strings.Join(l.done, " ")
	l.done = nil
	return said
}

func TestBurst(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		percent int
		liveMiB int64
		do      func(*log)
		want    string
	}{
		{"slow growth is none", 100, 1000, func(l *log) { l.grow(100, 1) }, ""},
		{"a large write, and calm", 100, 512, func(l *log) { l.grow(10, 10); l.grow(20, 0) }, "12 100 free"},
		{"a long calm", 100, 512, func(l *log) { l.grow(10, 10); l.grow(200, 0) }, "12 100 free free"},
		{"another one before that", 100, 512, func(l *log) { l.grow(10, 10); l.grow(30, 0); l.grow(10, 10); l.grow(200, 0) }, "12 100 free 12 100 free free"},
		{"a small one before that", 100, 512, func(l *log) { l.grow(10, 10); l.grow(30, 0); l.grow(2, 10); l.grow(200, 0) }, "12 100 free 12 100 free"},
		{"a small one leaves little", 100, 512, func(l *log) { l.grow(2, 10); l.grow(200, 0) }, "12 100"},
		{"a write that is sent on, and not in the log yet", 100, 512, func(l *log) { l.write(50, 200); l.grow(200, 0) }, "12 100 free free"},
		{"a write that goes on when the log does not grow any more", 100, 512, func(l *log) { l.grow(10, 10); l.write(50, 200); l.grow(20, 0) }, "12 100 free"},
		{"writes that are not large", 100, 512, func(l *log) { l.write(50, 8); l.grow(200, 0) }, ""},
		{"writes of a middle size", 100, 512, func(l *log) { l.write(50, 20); l.grow(200, 0) }, "12 100"},
		{"the heap is small", 100, 60, func(l *log) { l.grow(10, 10); l.grow(20, 0) }, "free"},
		{"a collection has much to look through", 100, 512, func(l *log) { l.scanned = 400 << 20; l.grow(10, 10); l.grow(20, 0) }, "39 100 free"},
		{"the heap grows meanwhile", 100, 100, func(l *log) { l.grow(10, 10); l.live = 400 << 20; l.grow(10, 10); l.grow(20, 0) }, "64 16 100 free"},
		{"the heap is very large", 100, 1 << 13, func(l *log) { l.grow(10, 10); l.grow(20, 0) }, "5 100 free"},
		{"it still is one after a second", 100, 512, func(l *log) { l.grow(10, 10); l.grow(5, 0); l.grow(5, 10); l.grow(20, 0) }, "12 100 free"},
		{"the operator wants less than that", 10, 512, func(l *log) { l.grow(10, 10); l.grow(20, 0) }, "free"},
		{"the operator wants no collection", -1, 512, func(l *log) { l.grow(10, 10); l.grow(20, 0) }, ""},
		{"a trim hides no growth", 100, 512, func(l *log) { l.grow(1, -500); l.grow(2, 10); l.grow(20, 0) }, "12 100"},
		{"a trim is no growth", 100, 512, func(l *log) { l.grow(10, -50); l.grow(5, 1) }, ""},
	} {
		l := newLog(test.percent, test.liveMiB)
		test.do(l)
		if got := l.said(); got != test.want {
			t.Errorf("%s: %q was done, want %q", test.name, got, test.want)
		}
	}
}

// TestBurstsAlwaysEnd lets logs grow and shrink at random. The collector is never told to work less than the operator wants, nor much more, and after some calm it
// works as the operator wants it.
func TestBurstsAlwaysEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		usual := 1 + rng.IntN(200)
		l := newLog(usual, 1)
		for range 100 {
			l.live = rng.Int64N(4 << 30)
			l.scanned = rng.Int64N(l.live + 1)
			l.grow(rng.IntN(10), rng.Int64N(60)-20)
			l.write(rng.IntN(4), rng.Int64N(100))
			l.now = l.now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
			if l.percent > usual || l.percent < min(usual, 5) {
				t.Fatalf("seed %d: the heap may grow by %d percent, and usually by %d", seed, l.percent, usual)
			}
		}
		l.grow(60, 0)
		if l.percent != usual {
			t.Errorf("seed %d: the heap may grow by %d percent when all is calm, want %d", seed, l.percent, usual)
		}
		l.said()
		l.grow(20, 0)
		if got := l.said(); got != "" {
			t.Errorf("seed %d: %q was done when all was calm", seed, got)
		}
	}
}

// TestRunLeavesTheHeapAsItWas: a node that ends in the middle of a burst leaves the collector of its process as the operator wants it: the process may be a node
// once more.
func TestRunLeavesTheHeapAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heap{live: 512 << 20, percent: 100}
		var size atomic.Int64
		b := burst.New(h, size.Load, func() int64 { return 0 })
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { b.Run(ctx) })
		for range 10 {
			size.Add(10 << 20)
			time.Sleep(burst.Every) //nolint:forbidigo // fake time
		}
		synctest.Wait()
		if h.percent != 12 {
			t.Errorf("the heap may grow by %d percent in a burst, want 12", h.percent)
		}
		cancel()
		run.Wait()
		if h.percent != 100 {
			t.Errorf("the heap may grow by %d percent when the node has ended, want 100", h.percent)
		}
	})
}

// TestRuntime is not parallel: it changes what the whole process has.
func TestRuntime(t *testing.T) {
	before := debug.SetGCPercent(80)
	defer debug.SetGCPercent(before)
	var r burst.Runtime
	if got := r.Percent(); got != 80 {
		t.Errorf("the heap may grow by %d percent, want 80", got)
	}
	r.SetPercent(33)
	if got := debug.SetGCPercent(-1); got != 33 {
		t.Errorf("the heap may grow by %d percent, want 33", got)
	}
	if got := r.Percent(); got >= 0 {
		t.Errorf("without collections the heap may grow by %d percent, want below 0", got)
	}
	runtime.GC()
	if got := r.Live(); got <= 0 {
		t.Errorf("%d bytes are live", got)
	}
	if got := r.Scanned(); got <= 0 {
		t.Errorf("a collection looks through %d bytes", got)
	}
}
