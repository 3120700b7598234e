//go:build linux

package trust_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

// TestUnreadShallowPages: clients ask for the longest page of keys that there is and take
// nothing of it. The server reads as many rows as it takes to fill its buffers. It does
// not read all of them, neither while the clients wait nor after they have left.
func TestUnreadShallowPages(t *testing.T) {
	t.Parallel()
	const children, clients, pages = 100_000, 5, 10
	p := startProcess(t, "--dev", "--dev-host", "h", "--dialect", "firebase", "--admin-addr", "127.0.0.1:0")
	c := newClient(t, p, 1)
	keys := make([]string, children)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"key-%08d":1`, i)
	}
	c.must(t, request{method: "PUT", target: "/list.json", body: "{" + strings.Join(keys, ",") + "}"})
	steps := func() int { return p.metric(t, "livetree_row_steps_total") }
	before := steps()
	c.must(t, request{method: "GET", target: "/list.json?shallow=true&limitToFirst=1000000"})
	whole := steps() - before
	if whole < children {
		t.Fatalf("a page of %d keys took %d steps: they are not counted", children, whole)
	}
	before = steps()
	h := newHostile(t, p)
	var conns []net.Conn
	for range clients {
		var heads frameCounter
		conn, err := h.speakTwoTo(&heads, noWindow, eachStream(pages, func(id uint32) string {
			target := fmt.Sprintf("/list.json?shallow=true&startAfter=key-%08d&limitToFirst=999999", id)
			return frame(frameHeaders, endStream|endHeaders, id, getHeaders(target))
		}))
		if err != nil {
			t.Fatal(err)
		}
		// An answer has a head when the server would send its beginning.
		if !heads.await(frameHeaders, pages) {
			t.Errorf("%d of %d pages are begun", heads.count(frameHeaders), pages)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		conn.Close()
	}
	p.awaitMetric(t, "livetree_inflight_requests", 0) // steps are counted at the end of a read
	taken := steps() - before
	if most := clients * pages * whole / 8; taken > most {
		t.Errorf("%d pages that nobody takes had the server take %d steps, want at most %d: a whole page is %d", clients*pages, taken, most, whole)
	}
	figures.Report(t, "shallowpages", proof.Count("pages", clients*pages), proof.Count("steps", taken), proof.Count("steps_of_a_page", whole))
}

// A frameCounter counts the frames of HTTP/2 that are written to it, by their kind.
type frameCounter struct {
	mu     sync.Mutex
	counts [256]int
	head   []byte // what has come of the next one's head
	skip   int    // bytes that are left of the payload of the last one
}

func (f *frameCounter) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for rest := p; len(rest) > 0; {
		n := min(f.skip, len(rest))
		f.skip -= n
		rest = rest[n:]
		n = min(9-len(f.head), len(rest))
		f.head = append(f.head, rest[:n]...)
		rest = rest[n:]
		if len(f.head) == 9 {
			f.counts[f.head[3]]++
			f.skip, f.head = int(binary.BigEndian.Uint32(f.head)>>8), f.head[:0]
		}
	}
	return len(p), nil
}

func (f *frameCounter) count(kind byte) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[kind]
}

// await reports whether so many frames of a kind come.
func (f *frameCounter) await(kind byte, count int) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patience); f.count(kind) < count; <-tick.C {
		if time.Now().After(late) {
			return false
		}
	}
	return true
}
