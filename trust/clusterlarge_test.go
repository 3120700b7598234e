//go:build unix

package trust_test

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

var (
	largeMiB    = flag.Int("large", 100, "how many MiB the large write of a cluster has")
	largeAtOnce = flag.Int("atonce", 1, "how many clients make a large write of a cluster at the same time")
)

// TestClusterLarge has a client write 100 MiB at once, or as much as is asked for, through any node, while others write. With -atonce several clients do so at the same
// time, through the same node.
func TestClusterLarge(t *testing.T) {
	count := drill(t, 1)
	c := startCluster(t, "--max-bodies", "4GiB")
	l := newClusterLoop(t, c, seed(t), 3)
	if err := c.create(0, "large"); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		body := largeBody(*largeMiB<<20, i)
		node := l.rng.IntN(3)
		var took time.Duration
		err := l.round(func() (int, error) {
			began := time.Now()
			told := make(chan error, *largeAtOnce)
			for n := range *largeAtOnce {
				go func() { told <- putLarge(l.clients[node], n, body) }()
			}
			var err error
			for range *largeAtOnce {
				err = errors.Join(err, <-told)
			}
			took = time.Since(began)
			return noNode, err
		})
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if err := c.equal(l.clients, "large"); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: %d bytes through node %d took %v", i, len(body), node+1, took)
	}
	var most int
	for _, p := range c.nodes {
		most = max(most, peakMemory(p))
	}
	l.report(t, "clusterlarge")
	figures.Report(t, "clusterlargememory", proof.Count("most_mib", most))
}

// putLarge writes a large body.
func putLarge(c *client, n int, body string) error {
	r := request{method: "PUT", target: target("large", []string{"all" + strconv.Itoa(n)}, false, "print=silent"), body: body}
	a, _, err := c.send(r)
	if err != nil || a.status != http.StatusNoContent {
		return fmt.Errorf("PUT of %d bytes = %d %.300s, %w", len(body), a.status, a.body, err)
	}
	return nil
}

// largeBody returns an object with so many bytes.
func largeBody(size, mark int) string {
	var text strings.Builder
	text.WriteString("{")
	fill := strings.Repeat("x", 1000)
	for i := 0; text.Len() < size; i++ {
		if i > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, `"k%07d":"%d %s"`, i, mark, fill)
	}
	text.WriteString("}")
	return text.String()
}

// peakMemory returns the most memory that a process has had, in MiB; 0 where the system does not say.
func peakMemory(p *process) int { return memoryOf(p, "VmHWM:") }

// memoryOf returns a line of what the system says of a process's memory, in MiB.
func memoryOf(p *process, name string) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid()), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10
		}
	}
	return 0
}
