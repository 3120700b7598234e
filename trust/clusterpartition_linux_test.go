package trust_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestClusterPartition cuts a node off from its peers, but not from its clients, and lets it back. It refuses to read what
// may be old, unless it is asked for what it has, and acknowledges nothing that is lost.
func TestClusterPartition(t *testing.T) {
	count := drill(t, 3)
	c, r := startRelayed(t)
	l := newClusterLoop(t, c, seed(t), 3)
	for i := range count {
		victim := l.rng.IntN(3)
		if home, err := c.home(); err == nil && i%2 == 0 {
			victim = home
		}
		if err := l.round(l.partition(r, victim)); err != nil {
			t.Fatalf("round %d, node %d is cut off: %v", i, victim+1, err)
		}
	}
	l.report(t, "clusterpartition")
}

// partition returns the accident that a node is cut off until a read that it holds up is refused.
func (l *clusterLoop) partition(r *relays, victim int) accident {
	return func() (int, error) {
		r.cut(victim, true)
		defer r.cut(victim, false)
		began := time.Now()
		read := request{method: "GET", target: target(l.tallies[0].database, []string{"tally"}, false)}
		// It may take a moment until the node notices; what it reads until then is judged by the tally.
		for {
			a, _, err := l.clients[victim].send(read)
			if err == nil && a.status == http.StatusServiceUnavailable {
				break
			}
			if time.Since(began) > patience/3 {
				return victim, fmt.Errorf("%s = %d %s, %w at a node without a majority, want 503", read, a.status, a.body, err)
			}
		}
		l.t.Logf("a read is refused after %v", time.Since(began))
		local := read
		local.target += "&consistency=local"
		if a, _, err := l.clients[victim].send(local); err != nil || a.status != http.StatusOK {
			return victim, fmt.Errorf("%s = %d %s, %w at a node without a majority, want 200", local, a.status, a.body, err)
		}
		if err := l.await(100); err != nil {
			return victim, fmt.Errorf("with node %d cut off: %w", victim+1, err)
		}
		r.cut(victim, false)
		healed := time.Now()
		for {
			a, _, err := l.clients[victim].send(read)
			if err == nil && a.status == http.StatusOK {
				l.starts = append(l.starts, time.Since(healed))
				return victim, nil
			}
			if time.Since(healed) > patience/3 {
				return victim, fmt.Errorf("%s = %d %s, %w after %v with the others, want 200", read, a.status, a.body, err, patience/3)
			}
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // real processes
		}
	}
}
