package bench_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/bench"
)

// TestUsers runs each kind of request of users once with each credential, and all that
// is different with one of them.
func TestUsers(t *testing.T) {
	t.Parallel()
	names := []string{"record-get-secret", "room-get-hs256", "leaf-put-rs256-uniform", "record-put-hs256", "patch-rs256", "shallow-hs256", "range-few-rs256",
		"range-fits-secret", "query-mix-hs256", "query-mix-rs256", "push-hs256", "room-push-rs256", "get-10mb-hs256", "put-10mb-rs256", "h2-leaf-get-rs256",
		"handshake-full", "handshake-resumed", "queue-hs256", "mixed-rs256"}
	if raceEnabled { // what the others do is the same, and takes minutes
		names = []string{"record-get-secret", "h2-leaf-get-rs256", "handshake-resumed"}
	}
	o := small(t, names...)
	report, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	expectEmpty(t, o.Dir)
	if len(report.Results) != len(names) {
		t.Fatalf("there are %d results, want %d", len(report.Results), len(names))
	}
	for _, r := range report.Results {
		if r.Bare == nil || !plausible(r.Livetree) || !plausible(*r.Bare) || r.BestCase {
			t.Errorf("%s: %+v, want figures of both, and no best case", r.Name, r)
		}
	}
}

// TestChosenUsers: a suite and patterns stand for scenarios, each once.
func TestChosenUsers(t *testing.T) {
	all, err := bench.Chosen([]string{bench.UserScenarios, "leaf-get-*"}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, work := range []string{"leaf-get", "record-get", "leaf-put", "record-put", "patch", "push", "shallow", "range", "query", "mixed", "queue", "get-10mb", "put-10mb", "h2-leaf-get"} {
		for _, as := range []string{"secret", "hs256", "rs256"} {
			if !slices.Contains(all, work+"-"+as) {
				t.Errorf("no user does %s with %s", work, as)
			}
		}
	}
	sorted := slices.Sorted(slices.Values(all))
	if len(slices.Compact(sorted)) != len(all) || slices.Contains(all, "leaf-get") {
		t.Errorf("users are %q, want each once, and no best case", all)
	}
	if some, err := bench.Chosen([]string{"*-rs256-uniform"}, false); err != nil || len(some) == 0 || len(some) >= len(all) {
		t.Errorf("a pattern stands for %q (%v)", some, err)
	}
	for _, name := range []string{"nothing-*", "[", "leaf"} {
		if _, err := bench.Chosen([]string{name}, false); err == nil || !strings.Contains(err.Error(), "there is no scenario") {
			t.Errorf("%q: %v, want that there is none", name, err)
		}
	}
}

// TestGoals: goals are in order, and those of a report can be read again.
func TestGoals(t *testing.T) {
	for _, sc := range bench.Scenarios() {
		if sc.Goal.CPU[0] < sc.Goal.CPU[1] {
			t.Errorf("%s: %v, want the most that is accepted first", sc.Name, sc.Goal.CPU)
		}
		text, err := json.Marshal(sc.Goal)
		var again bench.Goal
		if err != nil || json.Unmarshal(text, &again) != nil || again != sc.Goal {
			t.Errorf("%s: the goal %s (%v) is read as %+v", sc.Name, text, err, again)
		}
	}
}

// TestWrite: more writers share a sync, and a sync takes as long as it is told to.
func TestWrite(t *testing.T) {
	t.Parallel()
	o := small(t)
	var told strings.Builder
	o.Row = func(text string) { told.WriteString(text) }
	o.Requests = 200
	found, err := bench.Write(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	expectEmpty(t, o.Dir)
	if len(found.Writers) != 12 || found.Tables() != told.String() {
		t.Fatalf("there are %d steps, want 12; the table is\n%s\nand it was told\n%s", len(found.Writers), found.Tables(), told.String())
	}
	for _, s := range found.Writers {
		if !plausible(s.Livetree) || !plausible(s.Bare) || s.LivetreeGroup < 1 || s.BareGroup < 1 || s.LivetreeGroup > float64(s.Writers+1) || s.BareGroup > float64(s.Writers) {
			t.Errorf("%+v, want rates, times, and groups of 1 to all writers", s)
		}
		if s.SyncTookMicros < s.SyncMicros || s.SyncTookMicros <= 0 {
			t.Errorf("syncs take %.0f us, want %.0f at least", s.SyncTookMicros, s.SyncMicros)
		}
		if s.SyncMicros > 0 && s.Bare.P50Micros < s.SyncMicros {
			t.Errorf("writes of the bare server take %.0f us, and its syncs %.0f", s.Bare.P50Micros, s.SyncMicros)
		}
	}
}

// TestWarming: what small reads take is measured when the cache is full, and in one scenario just after a start.
func TestWarming(t *testing.T) {
	for _, test := range []struct {
		name     string
		requests int
		ours     bool
		want     int
	}{
		{"leaf-get-secret", 4000, true, 40_000},
		{"leaf-get-secret", 4000, false, 4000},
		{"record-get-hs256-uniform", 50_000, true, 200_000},
		{"h2-leaf-get-rs256", 300_000, true, 300_000},
		{"leaf-get-start-secret", 4000, true, 4000},
		{"room-get-secret", 4000, true, 40_000},
		{"room-push-secret", 4000, true, 4000},
		{"leaf-get", 4000, true, 800},
	} {
		if got := bench.Warming(test.name, test.requests, test.ours); got != test.want {
			t.Errorf("%s: %d requests are not counted where a round has %d (ours: %v), want %d", test.name, got, test.requests, test.ours, test.want)
		}
	}
}

// TestPasses: where each place may be asked for once until something is done there, a round has as many passes as it takes.
func TestPasses(t *testing.T) {
	for _, test := range []struct {
		name         string
		requests     int
		passes, each int
	}{
		{"shallow-secret", 1000, 4, 285},
		{"shallow-edited-rs256", 285, 1, 285},
		{"shallow-secret", 100, 1, 100},
		{"leaf-get-secret", 20_000, 1, 20_000},
	} {
		if passes, each := bench.Split(test.name, test.requests); passes != test.passes || each != test.each {
			t.Errorf("%s: %d requests are %d passes of %d, want %d of %d", test.name, test.requests, passes, each, test.passes, test.each)
		}
	}
}
