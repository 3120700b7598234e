//go:build unix

package trust_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/proof"
)

// TestCostlyETags: requests of some bytes that ask for the ETag of a large tree, from
// clients that leave at once, do not have it hashed each time. An ordinary client is
// served meanwhile.
func TestCostlyETags(t *testing.T) {
	t.Parallel()
	const requests = 60
	p := startProcess(t, "--dev", "--admin-addr", "127.0.0.1:0")
	c := newClient(t, p, 1)
	c.must(t, request{method: "PUT", target: "/large.json", body: `[1` + strings.Repeat(`,{"a":"of many small nodes"}`, 1<<16) + `]`})
	trusted, err := p.trusted()
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{addr: p.address(), trusted: trusted}
	before := processorMillis(p.pid())
	for i := range requests {
		method := []string{"GET", "HEAD"}[i%2]
		header := []string{"X-Firebase-ETag: true", `If-None-Match: "x"`}[i/2%2]
		conn, err := h.speak(fmt.Sprintf("%s /large.json HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", method, header))
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if i%10 == 0 {
			c.must(t, request{method: "PUT", target: "/small.json", body: strconv.Itoa(i)})
		}
	}
	// The last one to ask is answered after the others, or at least most of them.
	a := c.must(t, request{method: "HEAD", target: "/large.json", header: []string{"X-Firebase-ETag", "true"}})
	if a.header.Get("ETag") == "" {
		t.Error("the large node has no ETag")
	}
	if hashed := p.metric(t, "livetree_etags_hashed_total"); hashed > 8 {
		t.Errorf("%d requests for one ETag took %d hashes of the node, want few", requests, hashed)
	}
	figures.Report(t, "costlyetags", proof.Count("requests", requests), proof.Count("cpu_ms", processorMillis(p.pid())-before))
}

// processorMillis returns the processor time of a process, 0 where the system does not
// tell.
func processorMillis(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return (user + system) * 10 // in hundredths of a second
}
