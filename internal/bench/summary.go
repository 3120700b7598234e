package bench

import (
	"runtime"
	"time"

	"github.com/livetree/livetree/internal/bench/process"
	"github.com/livetree/livetree/internal/bench/report"
)

// What a run returns; see package report.
type (
	Report      = report.Report
	Result      = report.Result
	Machine     = report.Machine
	Figures     = report.Figures
	Goal        = report.Goal
	Spread      = report.Spread
	GrowthStep  = report.GrowthStep
	Databases   = report.Databases
	Stalled     = report.Stalled
	Waits       = report.Waits
	WritersStep = report.WritersStep
	TightStep   = report.TightStep
)

func newReport(o Options) Report {
	return Report{
		Version: o.Version, Started: now().UTC().Truncate(time.Second), Target: o.Target.URL,
		Rounds: o.Rounds, Requests: o.Requests, Connections: o.Connections,
		Machine: Machine{
			OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Cores: runtime.NumCPU(),
			MemoryBytes: process.MachineMemory(), Load: [2]float64{process.MachineLoad(), 0},
		},
	}
}

// endReport notes when a run ended, and what else the machine did then.
func endReport(r *Report) {
	r.Seconds = now().Sub(r.Started).Seconds()
	r.Machine.Load[1] = process.MachineLoad()
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
		Blocks:       middle(func(r round) float64 { return r.blocks }),
		IdleBytes:    middle(func(r round) float64 { return r.idleBytes }),
		IdleRSSBytes: middle(func(r round) float64 { return r.idleRSS }),
	}
}

// summarize makes a result of the rounds of each side, Livetree's first.
func summarize(sc Scenario, requests, connections int, rounds [][]round) Result {
	result := Result{Name: sc.Name, About: sc.About, Requests: requests, Connections: connections, Goal: sc.Goal, BestCase: sc.IsBestCase(), Livetree: figures(rounds[0])}
	if len(rounds) > 1 {
		bare := figures(rounds[1])
		result.Bare = &bare
		result.CPURatio = ratioOf(rounds, func(r round) float64 { return r.cpuMicros })
		result.RateRatio = ratioOf(rounds, func(r round) float64 { return r.rate })
		compare(&result, sc, rounds)
		result.Met = result.IsMet()
	}
	return result
}

// compare works out the figures that only some goals are about.
func compare(r *Result, sc Scenario, rounds [][]round) {
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
