package wire

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
)

// TestPathsOfManySlashes: a path that begins with a million slashes is short, and so is what is kept of it until a client
// takes the answer.
func TestPathsOfManySlashes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	slashes := strings.Repeat("/", 1<<20)
	for _, action := range []string{"g", "p"} {
		db := enginetest.Open(t, store.Options{})
		db.Rule(`{"rules":{".read":true,".write":true}}`)
		k := beginAt(t, smallFront(8<<20), db, addressAt(1))
		before := heap()
		const n = 40
		for i := range n {
			k.send(fmt.Sprintf(`%d %s {"p":"%sa/%d","d":"x"}`, i+1, action, slashes, i))
		}
		if more := heap() - before; more > 16<<20 {
			t.Errorf("%d requests %s that nobody has taken the answers of hold %d MiB", n, action, more>>20)
		}
		k.session.release()
	}
}
