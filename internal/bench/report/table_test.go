package report_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/bench/report"
)

// TestRow: a row says whether its goal is missed, met, or met by far, and what else there
// is to know.
func TestRow(t *testing.T) {
	yes, no := true, false
	goal := report.Goal{CPU: [2]float64{2, 1.5}}
	for _, test := range []struct {
		result report.Result
		want   string
	}{
		{report.Result{Name: "a", Goal: goal, Met: &no, CPURatio: &report.Spread{Median: 2.5}}, " 2.00! "},
		{report.Result{Name: "a", Goal: goal, Met: &yes, CPURatio: &report.Spread{Median: 1.75}}, " 2.00 "},
		{report.Result{Name: "a", Goal: goal, Met: &yes, CPURatio: &report.Spread{Median: 1.5}}, " 2.00+ "},
		{report.Result{Name: "a", BestCase: true}, "  best case\n"},
		{report.Result{Name: "a", Livetree: report.Figures{Blocks: 1.25}}, "  1.2 blocks from disk\n"},
		{report.Result{Name: "a", Livetree: report.Figures{Blocks: 0.01}}, " -\n"},
	} {
		if got := test.result.Row(); !strings.Contains(got, test.want) {
			t.Errorf("the row is %q, want %q in it", got, test.want)
		}
	}
}

// TestRangeSentence: what is held to another scenario of the run is told below the table.
func TestRangeSentence(t *testing.T) {
	r := report.Report{Requests: report.UsualRequests, Results: []report.Result{
		{Name: "range-few-hs256", Livetree: report.Figures{CPUMicros: 100}}, {Name: "range-fits-hs256", Livetree: report.Figures{CPUMicros: 250}}}}
	if got, want := r.Sentence(), "With hs256 a range of all users takes 2.50 times that of few where the cache holds them; the goal is 1.5.\n"; !strings.HasSuffix(got, want) {
		t.Errorf("the report says %q, want %q", got, want)
	}
}
