//go:build unix

package trust_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/proof"
)

// What a stream that goes on may read of the change log; see docs/reliability.md.
const (
	resumeRows  = 8192
	resumeBytes = 1 << 20
	resumeTold  = 512
	// logRow is more than the longest row of the change log takes.
	logRow = 80 << 10
)

// A distance is what a stream has missed when it comes back.
type distance struct {
	what string
	// target returns where the i-th of count writes goes, which has so many bytes.
	target       func(i int) string
	count, bytes int
	// rows and read are what one stream may have read of it.
	rows, read int
}

var distances = []distance{
	{"many commits", elsewhereAt, resumeRows + 200, 1, resumeRows, resumeBytes + logRow},
	{"many bytes", elsewhereAt, 500, 60_000, resumeBytes/60_000 + 1, resumeBytes + logRow},
	{"many changes of its location", func(i int) string { return fmt.Sprintf("/mine/%d.json", i%10) }, 2 * resumeTold, 100,
		resumeTold + 1, resumeBytes + logRow},
}

func elsewhereAt(i int) string { return fmt.Sprintf("/else/%d.json", i%100) }

// TestStreamsFromFarBehind: clients that come back again and again with an id from far
// behind get a fresh put, and each of them has the server read a bounded part of the
// change log, however long that is.
func TestStreamsFromFarBehind(t *testing.T) {
	t.Parallel()
	const streams = 20
	p := startProcess(t, "--dev", "--admin-addr", "127.0.0.1:0")
	c := newClient(t, p, 2)
	for _, d := range distances {
		c.must(t, request{method: "PUT", target: "/mine.json", body: `{"last":1}`})
		id := idOf(t, c.firstFrame(t, "/mine.json?resume=true", ""))
		c.miss(t, d)
		rows, bytes := p.metric(t, "livetree_log_rows_read_total"), p.metric(t, "livetree_log_read_bytes_total")
		for range streams {
			frame := c.firstFrame(t, "/mine.json?resume=true", id)
			if !strings.Contains(frame, "event: put") || !strings.Contains(frame, `"path":"/"`) {
				t.Errorf("a stream that missed %s is told %.300q, want a put of everything", d.what, frame)
				break
			}
		}
		rows, bytes = p.metric(t, "livetree_log_rows_read_total")-rows, p.metric(t, "livetree_log_read_bytes_total")-bytes
		if rows > streams*d.rows || bytes > streams*d.read {
			t.Errorf("%d streams that missed %s have the server read %d rows and %d bytes of the change log, want at most %d and %d each",
				streams, d.what, rows, bytes, d.rows, d.read)
		}
		figures.Report(t, "farbehind", proof.Count("streams", streams), proof.Count("missed", d.count),
			proof.Count("rows_read", rows), proof.Count("bytes_read", bytes))
	}
}

// idOf returns the id of a frame.
func idOf(t *testing.T, frame string) string {
	t.Helper()
	line, _, _ := strings.Cut(frame, "\n")
	id, ok := strings.CutPrefix(line, "id: ")
	if !ok {
		t.Fatalf("the frame %q has no id", frame)
	}
	return id
}

// miss makes the writes that a stream misses. Many clients make them, so that they
// share syncs.
func (c *client) miss(t *testing.T, d distance) {
	t.Helper()
	const clients = 32
	body := `"` + strings.Repeat("x", d.bytes) + `"`
	var wait sync.WaitGroup
	for first := range clients {
		wait.Go(func() {
			for i := first; i < d.count; i += clients {
				a, _, err := c.send(request{method: "PUT", target: d.target(i) + "?print=silent", body: body})
				if err != nil || a.status != http.StatusNoContent {
					t.Errorf("a write is answered %d %.100s, %v", a.status, a.body, err)
					return
				}
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
