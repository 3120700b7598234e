package bench_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/bench"
	"github.com/livetree/livetree/internal/bench/report"
)

var rewrite = flag.Bool("rewrite", false, "write the expected files anew")

// sample is a report of three results: a goal that is met, one that is not, none.
func sample() bench.Report {
	scenario := func(name string, goal bench.Goal) bench.Scenario {
		return bench.Scenario{Name: name, About: "GET of <a leaf>", Goal: goal}
	}
	return bench.Report{
		Version: "v1.2.3", Started: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 61.5, Rounds: 3, Requests: 20_000, Connections: 16,
		Machine: bench.Machine{OS: "linux", Arch: "amd64", Go: "go1.99", Cores: 2, MemoryBytes: 8 << 30, Load: [2]float64{0.5, 2}},
		Results: []bench.Result{
			bench.ResultOf(scenario("met", bench.Goal{CPU: [2]float64{2.5, 1.5}, Rate: [2]float64{0.5, 0.9}, PeakBytes: 32 << 20}), 3),
			bench.ResultOf(scenario("missed", bench.Goal{CPU: [2]float64{1.5, 1.2}}), 3),
			bench.ResultOf(scenario("free", bench.Goal{}), 1),
		},
		Growth: []bench.GrowthStep{
			{Leaves: 1000, FillPerSecond: 5000, OpenMillis: 12, DiskBytes: 1 << 20, Get: bench.Figures{CPUMicros: 12}, Range: bench.Figures{CPUMicros: 90}},
			{Leaves: 10_000, FillPerSecond: 5000, OpenMillis: 15, DiskBytes: 2 << 20, Get: bench.Figures{CPUMicros: 14}, WriteAmplification: 2.5},
		},
		Writers:   []bench.WritersStep{{Writers: 16, SyncMicros: 2000, SyncTookMicros: 2100, LivetreeGroup: 9.5, BareGroup: 10, Livetree: bench.Figures{Rate: 5000}}},
		Tight:     []bench.TightStep{{MemoryBytes: 512 << 20, Factor: 2, DiskBytes: 1 << 30, GetBlocks: 0.5, PeakBytes: 300 << 20}},
		Databases: &bench.Databases{Count: 10, OpenMillis: 12},
		Stalls:    []bench.Stalled{{Name: "calm", About: "nothing else", Millis: 5000, Reads: bench.Waits{Count: 1, P50Micros: 2, P99Micros: 3, MaxMicros: 4}}},
	}
}

// expectFile compares a text with testdata, or replaces it with -rewrite.
func expectFile(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s differs (%v), -rewrite replaces it; got\n%s", file, err, got)
	}
}

// TestReport holds what programs and people read. A field of the JSON must not be
// renamed: reports are kept, and compared.
func TestReport(t *testing.T) {
	var json bytes.Buffer
	if err := sample().WriteJSON(&json); err != nil {
		t.Fatal(err)
	}
	expectFile(t, "report.json", json.String())
	text := report.TableHead()
	for _, r := range sample().Results {
		text += r.Row()
	}
	expectFile(t, "report.txt", text+sample().Sentence()+sample().Tables())
}

func TestChart(t *testing.T) {
	var page bytes.Buffer
	if err := sample().WriteChart(&page); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for want, times := range map[string]int{
		`class="met"`: 1, `class="missed"`: 1, `class="free"`: 1, `stroke="#000"`: 2, `stroke="#999"`: 2, // marks of two goals
		"<polyline": 3, ">GET<": 1, ">start<": 1, ">query<": 0, // what was measured
		"&lt;a leaf&gt;": 6, "<a leaf>": 0, "<script": 0, "src=": 0, "href=": 0,
	} {
		if got := strings.Count(text, want); got != times {
			t.Errorf("the page has %d of %q, want %d", got, want, times)
		}
	}
	_, rest, _ := strings.Cut(text, "<svg")
	drawing, _, found := strings.Cut(rest, "</svg>")
	decoder := xml.NewDecoder(strings.NewReader("<svg" + drawing + "</svg>"))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || !found {
			t.Fatalf("the drawing is no XML: %v", err)
		}
	}
	var empty bytes.Buffer
	if err := (bench.Report{}).WriteChart(&empty); err != nil || strings.Contains(empty.String(), "<svg") {
		t.Errorf("a report without results: %v, %s", err, empty.String())
	}
}
