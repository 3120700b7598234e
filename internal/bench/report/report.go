// Package report has what a benchmark found out: as JSON that is kept and compared, as
// tables for a terminal, and as a page with charts.
//
// A Report has results of scenarios, each with its goal; or steps of growth, or what
// stood in the way of requests. It measures nothing.
package report

import (
	"encoding/json"
	"io"
	"time"
)

// UsualRequests is how many a round has. With fewer, figures say less.
const UsualRequests = 20_000

// A Report is all that a run found out. Its JSON is meant to be kept, and compared
// with that of another run.
type Report struct {
	Version     string        `json:"version"`
	Started     time.Time     `json:"started"`
	Seconds     float64       `json:"seconds"`
	Machine     Machine       `json:"machine"`
	Target      string        `json:"target,omitempty"`
	Rounds      int           `json:"rounds"`
	Requests    int           `json:"requests"`
	Connections int           `json:"connections"`
	Results     []Result      `json:"results,omitempty"`
	Growth      []GrowthStep  `json:"growth,omitempty"`
	Databases   *Databases    `json:"databases,omitempty"`
	Stalls      []Stalled     `json:"stalls,omitempty"`
	Writers     []WritersStep `json:"writers,omitempty"`
	Tight       []TightStep   `json:"tight,omitempty"`
}

// A Machine is what a run ran on. Load is the mean number of processes that wanted
// to run in the minute before and in the last of the run: a run on a machine that
// has other work says less.
type Machine struct {
	OS          string     `json:"os"`
	Arch        string     `json:"arch"`
	Go          string     `json:"go"`
	Cores       int        `json:"cores"`
	MemoryBytes int64      `json:"memory_bytes,omitempty"`
	Load        [2]float64 `json:"load"`
}

// WriteJSON writes the report.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// A Result is what became of a scenario.
type Result struct {
	Name        string `json:"name"`
	About       string `json:"about"`
	Requests    int    `json:"requests,omitempty"` // of one round
	Connections int    `json:"connections"`
	// BestCase says that no user is served as this is: it has no credential, and little data.
	BestCase bool `json:"best_case,omitempty"`
	// CPURatio is the processor time per request as a multiple of that of the bare
	// server in the same round; RateRatio that of the rate.
	CPURatio  *Spread `json:"cpu_ratio,omitempty"`
	RateRatio *Spread `json:"rate_ratio,omitempty"`
	// P50Ratio, P99Ratio and ExtraCPUMicros are there where a goal is about them.
	P50Ratio       *Spread  `json:"p50_ratio,omitempty"`
	P99Ratio       *Spread  `json:"p99_ratio,omitempty"`
	ExtraCPUMicros *Spread  `json:"extra_cpu_us,omitempty"`
	Livetree       Figures  `json:"livetree"`
	Bare           *Figures `json:"bare,omitempty"`
	// Other says what Bare is the figures of, if not of the bare server.
	Other string `json:"other,omitempty"`
	Goal  Goal   `json:"goal,omitzero"`
	// Met says whether the goal is, if there is one that could be measured.
	Met *bool `json:"met,omitempty"`
}

// Figures are those of one server: medians of the rounds, per request or, of
// events, per stream and event.
type Figures struct {
	CPUMicros  float64 `json:"cpu_us,omitempty"`
	Rate       float64 `json:"per_second,omitempty"`
	P50Micros  float64 `json:"p50_us,omitempty"`
	P99Micros  float64 `json:"p99_us,omitempty"`
	Allocs     float64 `json:"allocs,omitempty"`
	AllocBytes float64 `json:"alloc_bytes,omitempty"`
	// Blocks are how many were read from disk: what the cache did not hold.
	Blocks float64 `json:"blocks,omitempty"`
	// RSSBytes is the memory at the end, PeakBytes how much it grew at most.
	RSSBytes  float64 `json:"rss_bytes,omitempty"`
	PeakBytes float64 `json:"peak_bytes,omitempty"`
	// IdleBytes is what an idle stream has in use of heap and stacks, IdleRSSBytes
	// what the process grew by for it.
	IdleBytes    float64 `json:"idle_bytes,omitempty"`
	IdleRSSBytes float64 `json:"idle_rss_bytes,omitempty"`
}

// IsMet returns whether all goals are, nil if there are none.
func (r Result) IsMet() *bool {
	met, any := true, false
	hold := func(hasGoal, reached bool) {
		any = any || hasGoal
		met = met && (!hasGoal || reached)
	}
	hold(r.Goal.CPU[0] > 0 && r.CPURatio != nil, r.CPURatio != nil && r.CPURatio.Median <= r.Goal.CPU[0])
	hold(r.Goal.Rate[0] > 0 && r.RateRatio != nil, r.RateRatio != nil && r.RateRatio.Median >= r.Goal.Rate[0])
	hold(r.P50Ratio != nil, r.P50Ratio != nil && r.P50Ratio.Median <= r.Goal.P50[0])
	hold(r.P99Ratio != nil, r.P99Ratio != nil && r.P99Ratio.Median <= r.Goal.P99[0])
	hold(r.ExtraCPUMicros != nil, r.ExtraCPUMicros != nil && r.ExtraCPUMicros.Median <= r.Goal.ExtraCPU[0])
	hold(r.Goal.ExtraPeakBytes > 0, r.Bare != nil && r.Livetree.PeakBytes-r.Bare.PeakBytes <= r.Goal.ExtraPeakBytes)
	hold(r.Goal.IdleBytes[0] > 0, max(r.Livetree.IdleBytes, r.Livetree.IdleRSSBytes) <= r.Goal.IdleBytes[0])
	hold(r.Goal.PeakBytes > 0, r.Livetree.PeakBytes <= r.Goal.PeakBytes)
	if !any {
		return nil
	}
	return &met
}

// A Goal is what a scenario is held to: the first figure is the most (of a rate,
// the least) that is accepted, the second what is aimed at. Zero is no goal.
type Goal struct {
	CPU       [2]float64 `json:"cpu_ratio,omitzero"`
	Rate      [2]float64 `json:"rate_ratio,omitzero"`
	IdleBytes [2]float64 `json:"idle_bytes,omitzero"`
	PeakBytes float64    `json:"peak_bytes,omitzero"`
	// P50 and P99 are of times, as a multiple of those of the other server. ExtraCPU and
	// ExtraPeakBytes are what the processor and the memory may take beyond it.
	P50            [2]float64 `json:"p50_ratio,omitzero"`
	P99            [2]float64 `json:"p99_ratio,omitzero"`
	ExtraCPU       [2]float64 `json:"extra_cpu_us,omitzero"`
	ExtraPeakBytes float64    `json:"extra_peak_bytes,omitzero"`
}

// A Spread is a figure of several rounds: the median, and the least and greatest.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}
