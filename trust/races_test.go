//go:build unix

package trust_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/proof"
)

const raceRules = `{"rules": {
	"once": {"$k": {".read": true, ".write": "!data.exists()"}},
	"count": {".read": true, ".write": "newData.val() === (data.exists() ? data.val() : 0) + 1"}
}}`

// TestRaces has clients race for what rules allow only one of them: rules are
// judged on the state that the write is committed to, or two would win.
func TestRaces(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	clients := []*client{newClient(t, p, 1), newClient(t, p, 2)}
	clients[0].must(t, request{method: "PUT", target: "/.settings/rules.json?auth=" + secret, body: raceRules})
	races, wins := rounds(20, 1000, 10_000), 0
	for i := range races {
		first := race(t, clients, func(int) request {
			return request{method: "PUT", target: fmt.Sprintf("/once/%d.json", i), body: "1"}
		})
		if first != 1 {
			t.Fatalf("%d clients made the same node, want one", first)
		}
		next := race(t, clients, func(int) request {
			return request{method: "PUT", target: "/count.json", body: strconv.Itoa(wins + 1)}
		})
		wins += next
		if next != 1 {
			t.Fatalf("%d clients counted to %d, want one", next, wins)
		}
	}
	if a := clients[0].must(t, request{method: "GET", target: "/count.json"}); a.body != strconv.Itoa(wins) {
		t.Errorf("the counter is %s after %d writes that were allowed", a.body, wins)
	}
	figures.Report(t, "races", proof.Count("races", 2*races), proof.Count("winners", races+wins))
}

// race sends a request of each of sixteen clients at once and returns how many were
// allowed. The others must be denied.
func race(t *testing.T, clients []*client, of func(int) request) int {
	t.Helper()
	var won atomic.Int64
	var racing sync.WaitGroup
	for i := range 16 {
		racing.Go(func() {
			a, _, err := clients[i%len(clients)].send(of(i))
			switch {
			case err != nil:
				t.Error(err)
			case a.status == http.StatusOK:
				won.Add(1)
			case a.status != http.StatusForbidden:
				t.Errorf("a write that lost is answered %d %s, want 403", a.status, a.body)
			}
		})
	}
	racing.Wait()
	return int(won.Load())
}
