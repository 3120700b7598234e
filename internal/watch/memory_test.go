package watch_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestWatchesKeepNoRequests: paths and queries of watches are parts of requests, which need not be
// kept with all they hold for as long as the watch lasts.
func TestWatchesKeepNoRequests(t *testing.T) {
	const headBytes, count = 100 << 10, 200
	// part returns text as the end of a request.
	part := func(text string) string {
		head := strings.Repeat("x", headBytes) + text
		return head[len(head)-len(text):]
	}
	f := open(t, store.Options{})
	f.Rule(`{"rules": {"rooms": {"$room": {".read": "data.child('open').val() == true || root.child('all').val() == true"}}}}`)
	f.Put("all", `true`)
	before := heapBytes()
	for i := range count {
		req := whole(t, part(fmt.Sprintf("rooms/%d", i)))
		req.Who.Admin, req.Wake = false, func() {}
		if i%2 == 1 {
			bound := query.Bound{Set: true, Value: tree.StringLeaf(part(fmt.Sprint(i)))}
			req.Query = &query.Query{Order: query.ByKey(), Lower: bound, Limit: 2}
		}
		w, _, err := f.Watches().Open(req)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
	}
	if kept := heapBytes() - before; kept > headBytes*count/10 {
		t.Errorf("%d watches whose requests have %d bytes keep %d bytes", count, headBytes, kept)
	}
}

func heapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
