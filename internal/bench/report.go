package bench

import (
	"encoding/json"
	"io"
	"runtime"
	"time"
)

// A Report is all that a run found out. Its JSON is meant to be kept, and compared
// with that of another run.
type Report struct {
	Version     string       `json:"version"`
	Started     time.Time    `json:"started"`
	Seconds     float64      `json:"seconds"`
	Machine     Machine      `json:"machine"`
	Target      string       `json:"target,omitempty"`
	Rounds      int          `json:"rounds"`
	Requests    int          `json:"requests"`
	Connections int          `json:"connections"`
	Results     []Result     `json:"results,omitempty"`
	Growth      []GrowthStep `json:"growth,omitempty"`
	Databases   *Databases   `json:"databases,omitempty"`
	Stalls      []Stalled    `json:"stalls,omitempty"`
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

func newReport(o Options) Report {
	return Report{
		Version: o.Version, Started: now().UTC().Truncate(time.Second), Target: o.Target.URL,
		Rounds: o.Rounds, Requests: o.Requests, Connections: o.Connections,
		Machine: Machine{
			OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Cores: runtime.NumCPU(),
			MemoryBytes: machineMemory(), Load: [2]float64{machineLoad(), 0},
		},
	}
}

func (r *Report) end() {
	r.Seconds = now().Sub(r.Started).Seconds()
	r.Machine.Load[1] = machineLoad()
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
	// RSSBytes is the memory at the end, PeakBytes how much it grew at most.
	RSSBytes  float64 `json:"rss_bytes,omitempty"`
	PeakBytes float64 `json:"peak_bytes,omitempty"`
	// IdleBytes is what an idle stream has in use of heap and stacks, IdleRSSBytes
	// what the process grew by for it.
	IdleBytes    float64 `json:"idle_bytes,omitempty"`
	IdleRSSBytes float64 `json:"idle_rss_bytes,omitempty"`
}

// of returns one figure of all rounds.
func of(rounds []round, figure func(round) float64) []float64 {
	list := make([]float64, len(rounds))
	for i, r := range rounds {
		list[i] = figure(r)
	}
	return list
}

func figures(rounds []round) Figures {
	middle := func(figure func(round) float64) float64 { return median(of(rounds, figure)) }
	return Figures{
		CPUMicros:    middle(func(r round) float64 { return r.cpuMicros }),
		Rate:         middle(func(r round) float64 { return r.rate }),
		P50Micros:    middle(func(r round) float64 { return micros(r.p50) }),
		P99Micros:    middle(func(r round) float64 { return micros(r.p99) }),
		Allocs:       middle(func(r round) float64 { return r.allocs }),
		AllocBytes:   middle(func(r round) float64 { return r.allocBytes }),
		RSSBytes:     float64(rounds[len(rounds)-1].residentB),
		PeakBytes:    spread(of(rounds, func(r round) float64 { return float64(r.peakGrown) })).High,
		IdleBytes:    middle(func(r round) float64 { return r.idleBytes }),
		IdleRSSBytes: middle(func(r round) float64 { return r.idleRSS }),
	}
}

// summarize makes a result of the rounds of each side, Livetree's first.
func summarize(sc Scenario, requests, connections int, rounds [][]round) Result {
	result := Result{Name: sc.Name, About: sc.About, Requests: requests, Connections: connections, Goal: sc.Goal, Livetree: figures(rounds[0])}
	if len(rounds) > 1 {
		bare := figures(rounds[1])
		result.Bare = &bare
		result.CPURatio = ratioOf(rounds, func(r round) float64 { return r.cpuMicros })
		result.RateRatio = ratioOf(rounds, func(r round) float64 { return r.rate })
		result.compare(sc, rounds)
		result.Met = result.met()
	}
	return result
}

// compare works out the figures that only some goals are about.
func (r *Result) compare(sc Scenario, rounds [][]round) {
	if sc.sdk != nil {
		r.Other = sc.sdk.other
	}
	if sc.extra != nil {
		r.Other = "a Livetree without"
	}
	if sc.Goal.P50[0] > 0 {
		r.P50Ratio = ratioOf(rounds, func(r round) float64 { return micros(r.p50) })
	}
	if sc.Goal.P99[0] > 0 {
		r.P99Ratio = ratioOf(rounds, func(r round) float64 { return micros(r.p99) })
	}
	if sc.Goal.ExtraCPU[0] > 0 {
		var extra []float64
		for i := range rounds[0] {
			extra = append(extra, rounds[0][i].cpuMicros-rounds[1][i].cpuMicros)
		}
		s := spread(extra)
		r.ExtraCPUMicros = &s
	}
}

func ratioOf(rounds [][]round, figure func(round) float64) *Spread {
	list := ratios(of(rounds[0], figure), of(rounds[1], figure))
	if len(list) == 0 {
		return nil
	}
	s := spread(list)
	return &s
}

// met returns whether all goals are, nil if there are none.
func (r Result) met() *bool {
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
