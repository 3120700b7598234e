package deliver_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/livetree/livetree/internal/engine"
)

// This file compares what a history has delivered with its model.

// checkStored compares what the runner says is stored with the rows. In the end nothing waits.
func (h *history) checkStored(inTheEnd bool) {
	synctest.Wait()
	d, runner := h.site.database("db"), h.site.runner
	for _, is := range engine.Hooks(d).Hooks() {
		s := runner.Stat("db", is)
		rows := stored(h.t, d, is)
		if s.Bytes > rows || inTheEnd && (s.Bytes != rows || s.Pending != 0) { // some may not be deleted yet
			h.t.Errorf("seed %d: rows of %d bytes are stored, and the hook says %+v", h.seed, rows, s)
		}
	}
	if waiting := runner.Waiting(); waiting < 0 || waiting > h.limits.Spool || inTheEnd && waiting != 0 {
		h.t.Errorf("seed %d: %d bytes wait, of %d", h.seed, waiting, h.limits.Spool)
	}
}

// check compares what came in with what was to come.
func (h *history) check() {
	newest := map[string]uint64{} // first successful receipts, by hook and location
	inLife := map[string]uint64{} // attempts
	seen := map[key]bool{}
	for _, r := range h.got {
		if want, known := h.want[r.key]; known {
			h.compare(r.key, want, r.says)
		} else {
			h.t.Errorf("seed %d: %v was delivered, which did not happen", h.seed, r.key)
		}
		if h.replayed[r.says.ID] {
			seen[r.key] = seen[r.key] || r.ok
			continue // it has no order
		}
		place, life := r.hook+r.path, fmt.Sprint(r.life, r.hook, r.path)
		if r.position < inLife[life] {
			h.t.Errorf("seed %d: %v was delivered after %d", h.seed, r.key, inLife[life])
		}
		inLife[life] = r.position
		if r.ok && !seen[r.key] {
			if seen[r.key] = true; r.position < newest[place] {
				h.t.Errorf("seed %d: %v came first after %d", h.seed, r.key, newest[place])
				h.tell(r.key)
			}
			newest[place] = r.position
		}
	}
	for k := range h.want {
		if _, gone := h.gone[k.hook]; !gone && !seen[k] && !h.isMore(k) && !h.inGap(k) && !h.givenUp(k) {
			h.t.Errorf("seed %d: %v was not delivered", h.seed, k)
			h.tell(k)
		}
	}
	if len(h.more) > 0 && !h.few {
		h.t.Errorf("seed %d: there was more at %v", h.seed, h.more)
	}
	h.checkGaps()
}

// tell logs what came in for the location of a delivery.
func (h *history) tell(k key) {
	h.t.Logf("few %t tight %t brief %t reset %t made %v %+v", h.few, h.tight, h.brief, h.reset, h.want[k].made, h.limits)
	for _, r := range h.got {
		if r.hook == k.hook && r.path == k.path {
			h.t.Logf("%d life %d at %v ok %t replayed %t", r.position, r.life, r.at, r.ok, h.replayed[r.says.ID])
		}
	}
	for _, g := range h.gaps {
		h.t.Logf("gap %s %d %d %t", g.hook, g.says.First, g.says.Last, g.ok)
	}
}

// checkGaps makes sure that no gap is invented.
func (h *history) checkGaps() {
	for _, g := range h.gaps {
		owed := h.few // then a notice may say no more than that there may be something
		for k := range h.want {
			owed = owed || k.hook == g.hook && k.position >= g.says.First && k.position <= g.says.Last
		}
		if !owed || !h.tight || g.says.First > g.says.Last {
			h.t.Errorf("seed %d: there was a gap from %d to %d of %s, owed %t, few %t, with a spool of %d", h.seed, g.says.First, g.says.Last, g.hook, owed, h.few, h.limits.Spool)
		}
	}
}

// isMore reports whether the receiver was told that there is more than it is sent of a commit, or that was given up.
func (h *history) isMore(k key) bool {
	taken, tried := h.more[fmt.Sprint(k.hook, k.position)]
	return taken || tried && h.brief
}

// inGap reports whether the receiver was told that a delivery is missing.
func (h *history) inGap(k key) bool {
	return slices.ContainsFunc(h.gaps, func(g receipt) bool {
		return g.ok && g.hook == k.hook && g.says.First <= k.position && k.position <= g.says.Last
	})
}

// givenUp reports whether a delivery may have been given up: it has failed some times in one life, for long enough.
func (h *history) givenUp(k key) bool {
	failures, late := map[int]int{}, false
	for _, r := range h.got {
		if r.key == k {
			failures[r.life]++
			late = late || r.at.Sub(h.want[k].made) >= h.limits.RetryFor
		}
	}
	for _, n := range failures {
		if h.brief && n >= 3 && (late || h.reset) {
			return true
		}
	}
	return false
}

func (h *history) compare(k key, want change, d delivery) {
	got := change{d.Event, decode(h.t, d.Before), decode(h.t, d.After), want.made}
	if !reflect.DeepEqual(got, want) {
		h.t.Errorf("seed %d: %v was delivered as %v, want %v", h.seed, k, got, want)
	}
}

func decode(t *testing.T, text []byte) (v any) {
	if err := json.NewDecoder(strings.NewReader(string(text))).Decode(&v); err != nil {
		t.Error(err, string(text))
	}
	return v
}
