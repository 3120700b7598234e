package rest

import (
	"bytes"
	"testing"

	"github.com/livetree/livetree/internal/watch"
)

var frameEvent = watch.Event{Kind: watch.Put, Value: bytes.Repeat([]byte("x"), 200)}

// TestFrameAllocatesOnce: it is made once for all streams that are told the same.
func TestFrameAllocatesOnce(t *testing.T) {
	if allocs := testing.AllocsPerRun(100, func() { encodeFrame(&frameEvent) }); allocs > 1 {
		t.Errorf("a frame takes %v allocations, want 1", allocs)
	}
	dst := make([]byte, 0, 100)
	if allocs := testing.AllocsPerRun(100, func() { dst = appendID(dst[:0], 1<<40, 1<<50) }); allocs > 0 {
		t.Errorf("the id of a frame takes %v allocations, want none", allocs)
	}
}

func BenchmarkFrame(b *testing.B) {
	b.ReportAllocs()
	dst := make([]byte, 0, 100)
	for b.Loop() {
		encodeFrame(&frameEvent)
		dst = appendID(dst[:0], 1<<40, 1<<50)
	}
}
