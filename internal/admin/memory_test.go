package admin

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestRequestsAreNotKept: what is counted and recorded of requests are parts of them, which would
// keep all the rest, credentials too.
func TestRequestsAreNotKept(t *testing.T) {
	const headBytes, count = 100 << 10, 300
	// part returns text as the end of a request.
	part := func(text string) string {
		head := strings.Repeat("x", headBytes) + text
		return head[len(head)-len(text):]
	}
	requests := NewRequests()
	recording, ok := requests.record()
	if !ok {
		t.Fatal("nothing can be recorded")
	}
	before := heapBytes()
	for i := range count {
		requests.Observe(Operation{Database: part("default"), Path: part(fmt.Sprintf("/rooms/%d", i)), Verb: part("GET"),
			Route: "data", Status: 200 + i, Took: time.Duration(i)})
		requests.ObserveUnindexed(part("default"), part(fmt.Sprintf("/rooms/%d", i)), part("age"))
	}
	if kept := heapBytes() - before; kept > headBytes*count/10 {
		t.Errorf("%d requests of %d bytes leave %d bytes", count, headBytes, kept)
	}
	requests.stop(recording)
	runtime.KeepAlive(recording)
	runtime.KeepAlive(requests)
}

func heapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
