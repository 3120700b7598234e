package client_test

import (
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/client"
)

// A heap notes the most memory that objects take.
type heap struct {
	sample []metrics.Sample
	base   uint64
	most   uint64
	calls  int
}

func newHeap() *heap {
	runtime.GC()
	h := &heap{sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	metrics.Read(h.sample)
	h.base = h.sample[0].Value.Uint64()
	return h
}

// look is called often; it collects garbage now and then, so that what is counted
// is what is held.
func (h *heap) look(int64) {
	if h.calls++; h.calls%200 != 0 {
		return
	}
	runtime.GC()
	metrics.Read(h.sample)
	h.most = max(h.most, h.sample[0].Value.Uint64())
}

// repeated is a JSON text of many children, which is made while it is read.
func repeated(children int) io.Reader {
	child := `"k%":{"name":"` + strings.Repeat("n", 400) + `","list":[1,2,3.5]}`
	r, w := io.Pipe()
	go func() {
		_, err := io.WriteString(w, `{"a":{`)
		for i := 0; i < children && err == nil; i++ {
			separator := ","
			if i == 0 {
				separator = ""
			}
			_, err = io.WriteString(w, separator+strings.Replace(child, "%", number(i), 1))
		}
		if err == nil {
			_, err = io.WriteString(w, "}}")
		}
		w.CloseWithError(err)
	}()
	return r
}

func number(i int) string {
	return string([]byte{'a' + byte(i/17576%26), 'a' + byte(i/676%26), 'a' + byte(i/26%26), 'a' + byte(i%26)})
}

const (
	memoryChildren = 110_000 // some 50 MB
	memoryLimit    = 32 << 20
)

// TestMemoryOfImport: it does not grow with the file.
func TestMemoryOfImport(t *testing.T) {
	c := clientOf(t, plainServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "null")
	})))
	h := newHeap()
	report, err := c.Import(t.Context(), client.Import{Input: repeated(memoryChildren), Path: "/", Mode: client.ModeMerge, Done: h.look})
	if err != nil || report.Bytes < 45<<20 {
		t.Fatalf("import: %+v, %v", report, err)
	}
	if grown := int64(h.most) - int64(h.base); h.most == 0 || grown > memoryLimit {
		t.Errorf("an import of %d bytes takes %d bytes of memory, want at most %d", report.Bytes, grown, memoryLimit)
	}
}

// TestMemoryOfExport: it does not grow with the tree.
func TestMemoryOfExport(t *testing.T) {
	c := clientOf(t, plainServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, repeated(memoryChildren))
	})))
	h := newHeap()
	n, err := c.Export(t.Context(), client.Export{File: filepath.Join(t.TempDir(), "out.json.zst"), Done: h.look})
	if err != nil || n < 45<<20 {
		t.Fatalf("export: %d bytes, %v", n, err)
	}
	if grown := int64(h.most) - int64(h.base); h.most == 0 || grown > memoryLimit {
		t.Errorf("an export of %d bytes takes %d bytes of memory, want at most %d", n, grown, memoryLimit)
	}
}
