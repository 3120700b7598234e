package watch_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/store"
)

// TestWindowsAreMovedFairly: a client with many windows at a location does not use up what the
// dispatcher may do for the windows of others there. Users and networks count by themselves.
func TestWindowsAreMovedFairly(t *testing.T) {
	t.Parallel()
	f, _ := withScans(t, store.Options{}, scan.DefaultBounds())
	f.Watches().BoundMoving(150) // 50 windows of a child
	f.Rule(`{"rules":{".read":true,"l":{".indexOn":"n"}}}`)
	f.Do(`PUT /l {"a":{"n":1},"b":{"n":2}}`)
	limit := 5
	window := func(who auth.Identity, network int) *enginetest.Watcher {
		limit++ // each is a place of its own
		req := as(who, filtered(t, "/l", fmt.Sprintf(`orderBy="n"&limitToFirst=%d`, limit)))
		req.Client.Network = netip.AddrFrom4([4]byte{192, 0, 2, byte(network)})
		return f.Watch(req)
	}
	nobody, greedy := auth.Identity{}, user(t, `{"uid":"greedy"}`)
	kinds := map[string][]*enginetest.Watcher{}
	add := func(kind string, w *enginetest.Watcher) { kinds[kind] = append(kinds[kind], w) }
	order := rand.Perm(120)
	for i := range order { // the others come at any time
		switch n := order[i]; {
		case n < 60:
			add("greedy network", window(nobody, 1))
		case n < 110:
			add("greedy user", window(greedy, n))
		case n < 115:
			add("network", window(nobody, 2))
		default:
			add("user", window(user(t, fmt.Sprintf(`{"uid":"u%d"}`, n)), 1))
		}
	}
	f.Do(`PUT /l/a/n 3`)
	f.WaitForWatches()
	moved := map[string]int{}
	for kind, list := range kinds {
		for _, w := range list {
			if got := strings.Join(w.Events(), "\n"); strings.HasPrefix(got, "put") {
				moved[kind]++
			} else if !strings.HasPrefix(got, "first") {
				t.Errorf("a window was told %s", got)
			}
		}
	}
	if moved["network"] != 5 || moved["user"] != 5 {
		t.Errorf("of 5 windows each of a network and of users, these were moved: %v", moved)
	}
	if a, b := moved["greedy network"], moved["greedy user"]; a < 10 || b < 10 {
		t.Errorf("what is left is not shared: %v", moved)
	}
}
