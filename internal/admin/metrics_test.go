package admin_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

var rewrite = flag.Bool("rewrite", false, "write the table of docs/metrics.md anew")

const (
	metricsDocument = "../../docs/metrics.md"
	dashboard       = "../../docs/grafana-dashboard.json"
)

// A family is what the page tells of a metric beside its values.
type family struct {
	kind, help string
	labels     []string // sorted, without le
}

// fullPage returns the page of a stand on which everything has happened that
// makes a metric appear.
func fullPage(t *testing.T) string {
	t.Helper()
	var lag store.Durations
	lag.Observe(time.Millisecond)
	counts := func() map[string]uint64 { return map[string]uint64{"reason": 1} }
	s := newStand(t, func(o *admin.Options) {
		o.Cluster = fakeCluster{}
		o.Sources = admin.Sources{
			Streams: func() admin.StreamStats {
				return admin.StreamStats{Open: 3, Closed: counts(), Lag: lag.Counts()}
			},
			Clients: func() admin.ClientStats {
				return admin.ClientStats{Open: 2, Closed: counts(), SDKs: counts(), Operations: map[string]map[string]uint64{"realtime-read": counts()}}
			},
			Passed:       func() admin.PassedStats { return admin.PassedStats{Open: 1, Requests: 2} },
			Archive:      func() archiver.Status { return archiver.Status{} },
			HookStats:    func() []deliver.Stat { return []deliver.Stat{{Database: "shop", Hook: "orders"}} },
			AuthFailures: counts,
			Rejected:     counts,
		}
	})
	s.database("shop")
	s.requests.Observe(admin.Operation{Took: time.Millisecond, Route: "data", Verb: "GET", Status: 200, BytesIn: 1, BytesOut: 2})
	status, page := s.get("/metrics")
	if status != 200 {
		t.Fatalf("/metrics = %d %s", status, page)
	}
	return page
}

var (
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	helpLine   = regexp.MustCompile(`(?m)^# HELP (\S+) (.*)$`)
	sampleLine = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? \S+$`)
	labelName  = regexp.MustCompile(`([a-z_]+)="`)
	partSuffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// families reads a page.
func families(page string) map[string]family {
	all := map[string]family{}
	for _, m := range typeLine.FindAllStringSubmatch(page, -1) {
		all[m[1]] = family{kind: m[2]}
	}
	for _, m := range helpLine.FindAllStringSubmatch(page, -1) {
		f := all[m[1]]
		f.help = m[2]
		all[m[1]] = f
	}
	for _, m := range sampleLine.FindAllStringSubmatch(page, -1) {
		name := m[1]
		if _, ok := all[name]; !ok {
			name = partSuffix.ReplaceAllString(name, "")
		}
		f := all[name]
		for _, label := range labelName.FindAllStringSubmatch(m[2], -1) {
			if label[1] != "le" && !slices.Contains(f.labels, label[1]) {
				f.labels = append(f.labels, label[1])
				slices.Sort(f.labels)
			}
		}
		all[name] = f
	}
	return all
}

// table writes families as docs/metrics.md does.
func table(all map[string]family) string {
	var text strings.Builder
	text.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", name, f.kind, strings.Join(f.labels, ", "), f.help)
	}
	return text.String()
}

// TestMetricsAreDocumented compares the page with docs/metrics.md, which lists
// every metric with its type, labels and meaning.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(metricsDocument)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "| metric |")
	if !ok {
		t.Fatal("docs/metrics.md has no table of metrics")
	}
	got := table(families(fullPage(t)))
	_, after, _ := strings.Cut(rest, "|\n\n")
	if *rewrite {
		if err := os.WriteFile(metricsDocument, []byte(before+got+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	listed := strings.TrimSuffix("| metric |"+rest, "\n\n"+after) + "\n"
	for line := range strings.Lines(got) {
		if !strings.Contains(listed, line) {
			t.Errorf("docs/metrics.md lacks, or has otherwise: %s", strings.TrimSpace(line))
		}
	}
	for line := range strings.Lines(listed) {
		if !strings.Contains(got, line) {
			t.Errorf("docs/metrics.md lists what the page has not: %s", strings.TrimSpace(line))
		}
	}
}

// TestMetricsHaveTheirPrefix also holds the names to the custom of Prometheus.
func TestMetricsHaveTheirPrefix(t *testing.T) {
	for name, f := range families(fullPage(t)) {
		if !strings.HasPrefix(name, "livetree_") {
			t.Errorf("%s has not the prefix livetree_", name)
		}
		if f.help == "" || !strings.HasSuffix(f.help, ".") {
			t.Errorf("%s says %q, want a sentence", name, f.help)
		}
		if total := strings.HasSuffix(name, "_total"); total != (f.kind == "counter") {
			t.Errorf("%s is a %s", name, f.kind)
		}
	}
}

// TestDashboardNamesOnlyMetricsThatExist reads every query of the dashboard.
func TestDashboardNamesOnlyMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	all := families(fullPage(t))
	queries := exprs(document)
	if len(queries) < 20 {
		t.Errorf("the dashboard has %d queries: are they still found?", len(queries))
	}
	for _, query := range queries {
		for _, problem := range queryProblems(query, all) {
			t.Errorf("%s in the query %s", problem, query)
		}
	}
}

// TestDashboardCheckFindsProblems: the check above is able to fail.
func TestDashboardCheckFindsProblems(t *testing.T) {
	all := families(fullPage(t))
	for query, want := range map[string]int{
		`rate(livetree_requests_total{status="200"}[5m])`:                                  0,
		`histogram_quantile(0.9, sum by (le) (rate(livetree_request_seconds_bucket[5m])))`: 0,
		`rate(livetree_request_total[5m])`:                                                 1,
		`rate(livetree_requests_total{code="200"}[5m])`:                                    1,
		`sum by (path) (livetree_requests_total)`:                                          1,
		`livetree_streams_bucket`:                                                          1,
		`up`:                                                                               1,
	} {
		if got := queryProblems(query, all); len(got) != want {
			t.Errorf("%s has the problems %q, want %d", query, got, want)
		}
	}
}

// exprs returns the queries of a dashboard.
func exprs(value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if query, ok := value[name].(string); ok && (name == "expr" || strings.Contains(query, "livetree_")) {
				found = append(found, query)
				continue
			}
			found = append(found, exprs(value[name])...)
		}
	case []any:
		for _, inner := range value {
			found = append(found, exprs(inner)...)
		}
	}
	return found
}

var (
	queryMetric = regexp.MustCompile(`livetree_[a-z0-9_]+`)
	queryLabels = regexp.MustCompile(`\{([^}]*)\}`)
	queryLabel  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	queryBy     = regexp.MustCompile(`(?:by|without)\s*\(([^)]*)\)`)
)

// queryProblems tells of metrics and labels of a query that the page has not.
func queryProblems(query string, all map[string]family) []string {
	var problems []string
	known := map[string]bool{"instance": true, "job": true}
	names := queryMetric.FindAllString(query, -1)
	if len(names) == 0 {
		problems = append(problems, "no metric of ours")
	}
	for _, name := range names {
		f, ok := all[name]
		if base := partSuffix.ReplaceAllString(name, ""); !ok && all[base].kind == "histogram" {
			f, ok = all[base], true
			known["le"] = true
		}
		if !ok {
			problems = append(problems, "unknown metric "+name)
		}
		for _, label := range f.labels {
			known[label] = true
		}
	}
	var used []string
	for _, m := range queryLabels.FindAllStringSubmatch(query, -1) {
		for _, label := range queryLabel.FindAllStringSubmatch(m[1], -1) {
			used = append(used, label[1])
		}
	}
	for _, m := range queryBy.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			used = append(used, strings.TrimSpace(label))
		}
	}
	for _, label := range used {
		if !known[label] {
			problems = append(problems, "unknown label "+label)
		}
	}
	return problems
}

// TestLabelsAreBounded: whatever clients send, and however many databases there
// are, the number of series does not grow without end.
func TestLabelsAreBounded(t *testing.T) {
	s := newStand(t, nil)
	for i := range 60 {
		s.database(fmt.Sprintf("db-%d", i))
	}
	for i := range 1000 {
		s.requests.Observe(admin.Operation{
			Route: fmt.Sprintf("route%d", i), Verb: fmt.Sprintf("VERB%d", i), Status: 600 + i,
			Path: fmt.Sprintf("/path/%d", i), Database: fmt.Sprintf("database%d", i),
		})
	}
	_, page := s.get("/metrics")
	if n := strings.Count(page, "\nlivetree_database_position{"); n != 50 {
		t.Errorf("%d databases have series of their own, want 50", n)
	}
	if !strings.Contains(page, "\nlivetree_databases 60\n") {
		t.Error("livetree_databases is not 60")
	}
	if n := strings.Count(page, "\nlivetree_requests_total{"); n != 1 || !strings.Contains(page, `livetree_requests_total{route="other",status="none",verb="other"} 1000`) {
		t.Errorf("requests have %d series, want one for all others", n)
	}
	for _, word := range []string{"path/", "VERB", "route1", "database1"} {
		if strings.Contains(page, word) {
			t.Errorf("the page holds %q of a request", word)
		}
	}
}

// value returns a sample of the page.
func value(t *testing.T, page, sample string) float64 {
	t.Helper()
	_, text, ok := strings.Cut(page, "\n"+sample+" ")
	if !ok {
		t.Fatalf("the page has no %s", sample)
	}
	var v float64
	if _, err := fmt.Sscan(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMetricsCountWhatHappens(t *testing.T) {
	s := newStand(t, nil)
	d := s.database("shop")
	_, before := s.get("/metrics")
	slow := func() { s.advance(2 * time.Second) }
	s.holdSync.Store(&slow)
	if err := s.write(d); err != nil {
		t.Fatal(err)
	}
	s.requests.Observe(admin.Operation{Took: 20 * time.Millisecond, Route: "data", Verb: "PUT", Status: 503, BytesIn: 7, BytesOut: 11})
	s.requests.ObserveUnindexed("shop", "/a", "n")
	_, after := s.get("/metrics")
	for sample, grows := range map[string]float64{
		"livetree_commits_total":                       1,
		"livetree_commit_groups_total":                 1,
		"livetree_last_commit":                         1,
		"livetree_fsync_seconds_count":                 1,
		"livetree_fsync_seconds_sum":                   2,
		"livetree_fsync_slow_total":                    1,
		"livetree_commit_seconds_count":                1,
		`livetree_writes_total{outcome="committed"}`:   1,
		`livetree_writes_total{outcome="denied"}`:      0,
		`livetree_database_position{database="shop"}`:  1,
		`livetree_rejected_total{reason="overload"}`:   1,
		"livetree_unindexed_queries_total":             1,
		"livetree_fsync_waiting_seconds":               0,
		`livetree_fsync_seconds_bucket{le="1.048576"}`: 0,
		`livetree_fsync_seconds_bucket{le="2.097152"}`: 1,
		"livetree_uptime_seconds":                      2,
	} {
		if got := value(t, after, sample) - value(t, before, sample); got != grows {
			t.Errorf("%s grew by %v, want %v", sample, got, grows)
		}
	}
	for sample, want := range map[string]float64{
		`livetree_requests_total{route="data",status="503",verb="PUT"}`:       1,
		`livetree_request_seconds_bucket{route="data",verb="PUT",le="0.01"}`:  0,
		`livetree_request_seconds_bucket{route="data",verb="PUT",le="0.025"}`: 1,
		`livetree_body_bytes_total{direction="in"}`:                           7,
		`livetree_body_bytes_total{direction="out"}`:                          11,
		`livetree_disk_state{state="ok"}`:                                     1,
		`livetree_disk_state{state="full"}`:                                   0,
		`livetree_info{version="v1.2.3"}`:                                     1,
		`livetree_views`:                                                      1,
	} {
		if got := value(t, after, sample); got != want {
			t.Errorf("%s is %v, want %v", sample, got, want)
		}
	}
	for _, sample := range []string{"livetree_goroutines", "livetree_rss_bytes", "livetree_heap_bytes", "livetree_wal_bytes"} {
		if value(t, after, sample) <= 0 {
			t.Errorf("%s is not positive", sample)
		}
	}
}

// TestMetricsCountMemos: of four reads of the same large node, the second is remembered.
func TestMetricsCountMemos(t *testing.T) {
	s := newStand(t, nil)
	d := s.database("shop")
	large := fmt.Sprintf(`{"a":%q,"b":1}`, strings.Repeat("x", 100_000))
	node, err := tree.Decode(strings.NewReader(large), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(t.Context(), engine.Request{Write: tree.Put(tree.Path{}, node), Who: auth.Identity{Admin: true}}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		view := d.View()
		printer, err := view.Shallow(tree.Path{})
		view.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(printer.PrintTo(io.Discard), printer.Close()); err != nil {
			t.Fatal(err)
		}
	}
	_, page := s.get("/metrics")
	if hits, misses := value(t, page, "livetree_memo_hits_total"), value(t, page, "livetree_memo_misses_total"); hits != 2 || misses != 2 {
		t.Errorf("four reads are %v hits and %v misses, want 2 and 2", hits, misses)
	}
}
