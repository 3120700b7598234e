package admin

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestBusiestPathsAreFound among far more paths than are counted: a path that is
// frequent enough is never lost, and its count is off by no more than it says.
func TestBusiestPathsAreFound(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRecording()
	truth := map[string]int{}
	for range 100_000 {
		path := fmt.Sprintf("/rare/%d", random.IntN(50_000))
		if n := random.IntN(100); n < 30 {
			path = fmt.Sprintf("/busy/%d", n/10) // ten in a hundred each
		}
		truth[path]++
		r.add(Operation{Path: path, Verb: "GET", Status: 200, Route: "data", Took: time.Millisecond})
	}
	if n := len(r.busiest.counters); n != maxPaths || len(r.busiest.order) != maxPaths {
		t.Errorf("%d paths are counted, want %d", n, maxPaths)
	}
	report := r.report(time.Second, maxPaths)
	for i, p := range report.Busiest {
		if want := truth[p.Path]; i < 3 && want < 5000 || p.Count < want || p.Count-p.MaxError > want {
			t.Errorf("%s was counted %d times, at most %d too many; it was %d", p.Path, p.Count, p.MaxError, want)
		}
		if p.Millis != 1 {
			t.Errorf("%s took %v ms on average, want 1", p.Path, p.Millis)
		}
	}
	if report.Requests != 100_000 || len(r.samples) != maxSamples || len(r.slowest) != maxSlowest {
		t.Errorf("%d requests, %d samples, %d slowest", report.Requests, len(r.samples), len(r.slowest))
	}
}

func TestSlowestAreKept(t *testing.T) {
	r := newRecording()
	for _, i := range rand.Perm(1000) {
		r.add(Operation{Path: fmt.Sprint("/", i), Route: "data", Took: time.Duration(i) * time.Millisecond})
	}
	r.add(Operation{Path: "/stream", Route: "stream", Took: time.Hour})
	report := r.report(time.Second, 10)
	for i, slow := range report.Slowest {
		if want := fmt.Sprint("/", 999-i); slow.Path != want || slow.Millis != float64(999-i) {
			t.Errorf("the slowest request number %d is %s with %v ms, want %s", i, slow.Path, slow.Millis, want)
		}
	}
	if got := report.Latency; got["p50"] != 499 || got["p99"] != 989 || got["max"] != 999 {
		t.Errorf("the latency is %v", got)
	}
}

func TestGeneratedKeysAreOnePath(t *testing.T) {
	for path, want := range map[string]string{
		"/a/-OaBcDeFgHiJkLmNoPqR/b": "/a/$key/b",
		"/a/-short":                 "/a/-short",
		"/a/b":                      "/a/b",
		"/":                         "/",
	} {
		if got := pattern(path); got != want {
			t.Errorf("pattern(%s) = %s, want %s", path, got, want)
		}
	}
	long := "/" + string(make([]byte, 5000))
	if got := shortPath(long); len(got) > maxPathBytes+len("…") {
		t.Errorf("a path of %d bytes is kept with %d", len(long), len(got))
	}
}

func TestNothingIsKeptUnlessSomebodyRecords(t *testing.T) {
	requests := NewRequests()
	for range maxRecordings {
		if _, ok := requests.record(); !ok {
			t.Fatal("a recording is refused")
		}
	}
	if _, ok := requests.record(); ok {
		t.Errorf("there are more than %d recordings", maxRecordings)
	}
	for _, r := range *requests.recordings.Load() {
		requests.stop(r)
	}
	if n := len(*requests.recordings.Load()); n != 0 {
		t.Errorf("%d recordings are left", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		requests.Observe(Operation{Path: "/a", Route: "data", Verb: "GET", Status: 200})
	}); n > 0 {
		t.Errorf("an operation that nobody records allocates %v times", n)
	}
}

// TestReportStandsStill while a request that began earlier is still added.
func TestReportStandsStill(t *testing.T) {
	r := newRecording()
	r.add(Operation{Path: "/a", Verb: "GET", Status: 200, Route: "data"})
	report := r.report(time.Second, 10)
	r.add(Operation{Path: "/b", Verb: "PUT", Status: 500, Route: "data"})
	if len(report.Verbs) != 1 || len(report.Statuses) != 1 || report.Verbs["GET"] != 1 || report.Statuses[200] != 1 {
		t.Errorf("a report changes after it was made: %v %v", report.Verbs, report.Statuses)
	}
}
