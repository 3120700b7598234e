package trust_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

var manyDatabases = flag.Int("databases", 500, "how many databases TestClusterMany makes, for each round of -drills")

// idleTime is how long nodes without any request are watched.
const idleTime = 10 * time.Second

// TestClusterMany makes many databases through all nodes, with one write each, and kills all nodes. How much memory a node takes, how much of a
// processor when nothing is to be done, at once and after a while, and how long a start takes is in the figures.
func TestClusterMany(t *testing.T) {
	count := drill(t, *manyDatabases)
	c := startCluster(t)
	var clients []*client
	for i := range c.nodes {
		clients = append(clients, c.client(t, i, 1))
	}
	before := residentMemory(c)
	began := time.Now()
	if err := c.makeMany(clients, count); err != nil {
		t.Fatal(err)
	}
	made := time.Since(began)
	after := residentMemory(c)
	ending := idleShare(c)                                              // what was begun is ended: tables are merged, garbage is collected
	time.Sleep(min(time.Minute, time.Duration(count)*time.Millisecond)) //nolint:forbidigo // real processes
	idle, settled := idleShare(c), residentMemory(c)
	started, err := c.killAndStart()
	if err != nil {
		t.Fatal(err)
	}
	processor := time.Duration(0) // of the start, which a machine that is busy does not make longer
	for _, p := range c.nodes {
		processor = max(processor, processorTime(p))
	}
	for i := 0; i < count; i += max(1, count/300) {
		read := request{method: "GET", target: target(manyName(i), []string{"x"}, false)}
		for node, from := range clients {
			if a, _, err := from.send(read); err != nil || a.status != http.StatusOK || a.body != strconv.Itoa(i) {
				t.Fatalf("node %d: %s = %d %s, %v, want %d", node+1, read, a.status, a.body, err, i)
			}
		}
	}
	t.Logf("%d databases in %v: %d MiB before, %d MiB after, %d MiB a while later, %d MiB after a start that took %v, and %v of a processor",
		count, made, before, after, settled, residentMemory(c), started, processor)
	figures.Report(t, "clustermany", proof.Count("databases", count), proof.Count("most_mib", after), proof.Count("most_started_mib", residentMemory(c)),
		proof.Count("most_settled_mib", settled), proof.Count("most_ending_permille", ending), proof.Count("most_idle_permille", idle),
		proof.Count("most_start_ms", int(started.Milliseconds())),
		proof.Count("most_start_processor_ms", int(processor.Milliseconds())), proof.Count("make_ms", int(made.Milliseconds())))
}

func manyName(i int) string { return fmt.Sprintf("many-%06d", i) }

// makeMany makes databases with one write each.
func (c *cluster) makeMany(clients []*client, count int) error {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, 24)
	for worker := range cap(errs) {
		node := worker % len(c.nodes)
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if err := c.nodes[node].ask("POST", "/v1/databases", fmt.Sprintf(`{"name":%q}`, manyName(i)), nil); err != nil {
					errs <- err
					return
				}
				if err := c.openRules(node, manyName(i)); err != nil {
					errs <- err
					return
				}
				write := request{method: "PUT", target: target(manyName(i), []string{"x"}, false), body: strconv.Itoa(i)}
				if a, _, err := clients[node].send(write); err != nil || a.status != http.StatusOK {
					errs <- fmt.Errorf("%s = %d %s, %w", write, a.status, a.body, err)
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// killAndStart kills all nodes, and returns how long they take until all serve.
func (c *cluster) killAndStart() (time.Duration, error) {
	_ = c.each(func(p *process) error { p.kill(); return nil })
	began := time.Now()
	err := c.each(func(p *process) error { return p.start() })
	return time.Since(began), err
}

// idleShare returns how many thousandths of a processor the busiest node takes, with nothing to do.
func idleShare(c *cluster) (most int) {
	before := make([]time.Duration, len(c.nodes))
	for i, p := range c.nodes {
		before[i] = processorTime(p)
	}
	time.Sleep(idleTime) //nolint:forbidigo // real processes
	for i, p := range c.nodes {
		most = max(most, int(1000*(processorTime(p)-before[i])/idleTime))
	}
	return most
}

// processorTime returns how much of a processor a process has taken, in steps of 10 ms.
func processorTime(p *process) time.Duration {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid()), "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// residentMemory returns how much memory the largest node takes, in MiB.
func residentMemory(c *cluster) (most int) {
	for _, p := range c.nodes {
		most = max(most, memoryOf(p, "VmRSS:"))
	}
	return most
}
