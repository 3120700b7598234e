//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/proof"
)

// TestClusterClock has nodes whose clocks are five minutes ahead and five behind, and moves the homes from one to the next. For whoever writes one thing after the
// other, timestamps never go back, and push keys grow. The nodes say whose clock is wrong.
func TestClusterClock(t *testing.T) {
	count := drill(t, 3)
	c := &cluster{addrs: freeaddr.List(t, 3), sight: &sightings{}}
	c.makeNodes(t, c.addrs, nil)
	c.nodes[1].env, c.nodes[2].env = []string{"LIVETREE_CLOCK_OFFSET=5m"}, []string{"LIVETREE_CLOCK_OFFSET=-5m"}
	if err := c.each(func(p *process) error { return p.start() }); err != nil {
		t.Fatal(err)
	}
	var all []*timekeeper
	var working sync.WaitGroup
	stop := make(chan struct{})
	for i := range 6 {
		name := fmt.Sprintf("clock-%d", i)
		if err := c.create(i%3, name); err != nil {
			t.Fatal(err)
		}
		k := &timekeeper{database: name}
		for node := range c.nodes {
			k.clients = append(k.clients, c.client(t, node, 1))
		}
		all = append(all, k)
		working.Go(func() { k.work(stop) })
	}
	end := sync.OnceFunc(func() { close(stop); working.Wait() })
	defer end()
	moves := 0
	for i := range 3 * count {
		moves += c.moveTo(i % 3)
		for _, k := range all {
			if err := k.await(10); err != nil {
				t.Fatalf("after the homes have moved to node %d: %v", i%3+1, err)
			}
		}
	}
	c.nodes[1].kill()
	if err := c.nodes[1].start(); err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if err := k.await(10); err != nil {
			t.Fatalf("after node 2 was killed: %v", err)
		}
	}
	end()
	made := 0
	for _, k := range all {
		made += int(k.made.Load())
		for _, problem := range k.problems {
			t.Errorf("%s: %s", k.database, problem)
		}
	}
	if moves == 0 {
		t.Error("no home has moved: this test saw nothing")
	}
	c.tellsOfClocks(t)
	figures.Report(t, "clusterclock", proof.Count("writes", made), proof.Count("moves", moves))
}

// tellsOfClocks fails unless the status names a clock, and the nodes whose clocks are wrong say so.
func (c *cluster) tellsOfClocks(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(patience / 6)
	for node, want := range []string{"ok", "clock", "clock"} {
		for {
			var ready struct {
				Checks []struct{ Name, State, Result string }
			}
			err := c.nodes[node].ask("GET", "/readyz", "", &ready)
			state, result := "", ""
			for _, check := range ready.Checks {
				if check.Name == "cluster" {
					state, result = check.State, check.Result
				}
			}
			s, statusErr := c.status(node)
			if err == nil && statusErr == nil && state == want && result != "fail" && strings.Contains(strings.Join(s.Problems, "\n"), "the clock of ") {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("node %d says of its readiness %q, %q, %v, want %q, and of its problems %q, %v", node+1, state, result, err, want, s.Problems, statusErr)
				return
			}
			time.Sleep(50 * time.Millisecond) //nolint:forbidigo // real processes
		}
	}
}

// moveTo has all nodes but one give their homes to it, and returns how many did.
func (c *cluster) moveTo(node int) (moved int) {
	for i, p := range c.nodes {
		if i != node && p.ask("POST", "/v1/cluster/move", fmt.Sprintf(`{"node":%q}`, c.addrs[node]), nil) == nil {
			moved++
		}
	}
	return moved
}

// A timekeeper writes one timestamp and one push key after the other, through all nodes in turn.
type timekeeper struct {
	clients  []*client
	database string
	made     atomic.Int64
	problems []string // of its goroutine, until that has ended

	stamp float64
	key   string
}

// work writes until it is to stop.
func (k *timekeeper) work(stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		if k.stampOnce(k.clients[i%len(k.clients)]) && k.pushOnce(k.clients[(i+1)%len(k.clients)]) {
			k.made.Add(1)
		}
	}
}

// stampOnce writes a timestamp, which must not be before the last one. It reports false if no answer came, which may be.
func (k *timekeeper) stampOnce(c *client) bool {
	a, _, err := c.send(request{method: "PUT", target: target(k.database, []string{"stamp"}, false), body: `{".sv":"timestamp"}`})
	var stamp float64
	if err != nil || a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &stamp) != nil {
		return false
	}
	if stamp < k.stamp {
		k.problems = append(k.problems, fmt.Sprintf("the timestamp %.0f comes after %.0f", stamp, k.stamp))
	}
	k.stamp = stamp
	return true
}

// pushOnce pushes a child, whose key must come after the last one.
func (k *timekeeper) pushOnce(c *client) bool {
	a, _, err := c.send(request{method: "POST", target: target(k.database, []string{"list"}, false), body: "1"})
	var made struct{ Name string }
	if err != nil || a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &made) != nil {
		return false
	}
	if made.Name <= k.key {
		k.problems = append(k.problems, fmt.Sprintf("the push key %q comes after %q", made.Name, k.key))
	}
	k.key = made.Name
	return true
}

// await returns when so many more were written.
func (k *timekeeper) await(more int64) error {
	want, deadline := k.made.Load()+more, time.Now().Add(patience/3)
	for k.made.Load() < want {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s has written %d times, and not %d", k.database, k.made.Load(), want)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // real processes
	}
	return nil
}
