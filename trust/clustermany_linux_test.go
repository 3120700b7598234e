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
	again, err := c.makeMany(clients, count)
	if err != nil {
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
	t.Logf("%d databases in %v, %d requests sent again: %d MiB before, %d MiB after, %d MiB a while later, %d MiB after a start that took %v, and %v of a processor",
		count, made, again, before, after, settled, residentMemory(c), started, processor)
	figures.Report(t, "clustermany", proof.Count("databases", count), proof.Count("sent_again", again), proof.Count("most_mib", after), proof.Count("most_started_mib", residentMemory(c)),
		proof.Count("most_settled_mib", settled), proof.Count("most_ending_permille", ending), proof.Count("most_idle_permille", idle),
		proof.Count("most_start_ms", int(started.Milliseconds())),
		proof.Count("most_start_processor_ms", int(processor.Milliseconds())), proof.Count("make_ms", int(made.Milliseconds())))
}

func manyName(i int) string { return fmt.Sprintf("many-%06d", i) }

// makeMany makes databases with one write each. A request that is answered 503 is sent again, at the next node: it says how many were.
func (c *cluster) makeMany(clients []*client, count int) (again int, err error) {
	var next, refused atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, 24)
	for worker := range cap(errs) {
		all.Go(func() {
			node := worker % len(c.nodes)
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if err := c.makeOne(clients, &node, i, &refused); err != nil {
					errs <- err
					next.Store(int64(count)) // the others need not go on
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return int(refused.Load()), <-errs // nil if there is none
}

// makeOne makes a database with one write.
func (c *cluster) makeOne(clients []*client, node *int, i int, refused *atomic.Int64) error {
	name, tries := manyName(i), 0
	err := c.insist(node, refused, func() error {
		tries++
		err := c.nodes[*node].ask("POST", "/v1/databases", fmt.Sprintf(`{"name":%q}`, name), nil)
		if is := (*refusal)(nil); errors.As(err, &is) && is.status == http.StatusConflict && tries > 1 {
			return nil // it was made, and not known to be
		}
		return err
	})
	if err == nil {
		err = c.insist(node, refused, func() error { return c.openRules(*node, name) })
	}
	if err != nil {
		return err
	}
	write := request{method: "PUT", target: target(name, []string{"x"}, false), body: strconv.Itoa(i)}
	return c.insist(node, refused, func() error {
		a, _, err := clients[*node].send(write)
		if err == nil && a.status != http.StatusOK {
			err = &refusal{a.status, fmt.Sprintf("%s = %d %s", write, a.status, a.body)}
		}
		return err
	})
}

// insist does something at a node. As long as that is answered 503 it is done again at the next one, some times.
func (c *cluster) insist(node *int, refused *atomic.Int64, do func() error) error {
	err := do()
	for range 10 {
		if is := (*refusal)(nil); !errors.As(err, &is) || is.status != http.StatusServiceUnavailable {
			break
		}
		refused.Add(1)
		*node = (*node + 1) % len(c.nodes)
		time.Sleep(time.Second) //nolint:forbidigo // Retry-After of a real process
		err = do()
	}
	return err
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
