package report

import (
	"fmt"
	"strings"
	"time"
)

// TableHead is the head of a table of results, for a terminal: Row makes its rows.
// The columns are, of the processor time and the rate, the ratio to the bare
// server and the goal; and then what Livetree took by itself.
func TableHead() string {
	return fmt.Sprintf("%-24s %20s %8s %6s %9s %9s %9s %9s %7s %9s\n",
		"SCENARIO", "CPU/BARE (SPREAD)", "GOAL", "RATE/B", "CPU", "PER S", "P50", "P99", "ALLOCS", "MEMORY")
}

// Row returns the row of a result.
func (r Result) Row() string {
	goal := "-"
	switch {
	case r.Goal.CPU[0] > 0:
		goal = fmt.Sprintf("%.2f", r.Goal.CPU[0])
	case r.Goal.IdleBytes[0] > 0:
		goal = bytesText(r.Goal.IdleBytes[0])
	}
	switch {
	case r.Met == nil:
	case !*r.Met:
		goal += "!"
	case r.CPURatio != nil && r.CPURatio.Median <= r.Goal.CPU[1]:
		goal += "+"
	}
	ratio, rate := "-", "-"
	if r.CPURatio != nil {
		ratio = fmt.Sprintf("%.2f (%.2f-%.2f)", r.CPURatio.Median, r.CPURatio.Low, r.CPURatio.High)
	}
	if r.RateRatio != nil {
		rate = fmt.Sprintf("%.2f", r.RateRatio.Median)
	}
	f := r.Livetree
	row := []string{goal, rate, timeText(f.CPUMicros), countText(f.Rate), timeText(f.P50Micros), timeText(f.P99Micros), countText(f.Allocs), bytesText(f.RSSBytes)}
	if f.IdleBytes != 0 {
		ratio = bytesText(f.IdleBytes) + " each"
		if r.Bare != nil && r.Bare.IdleBytes > 0 && r.Other == "" {
			row[1] = fmt.Sprintf("%.2f", f.IdleBytes/r.Bare.IdleBytes)
		} else {
			row[1] = "-"
		}
	}
	best := ""
	if r.BestCase {
		best = "  best case"
	}
	return fmt.Sprintf("%-24s %20s %8s %6s %9s %9s %9s %9s %7s %9s%s\n", r.Name, ratio,
		row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], best)
}

// Sentence says of a result what a reader of the table wants to know first.
func (r Report) Sentence() string {
	var missed []string
	goals := 0
	for _, result := range r.Results {
		if result.Met != nil {
			goals++
			if !*result.Met {
				missed = append(missed, result.Name)
			}
		}
	}
	text := fmt.Sprintf("%s in %s, %d rounds each; load %.1f before, %.1f after, on %d cores.\n", counted(len(r.Results), "scenario"),
		(time.Duration(r.Seconds) * time.Second).String(), r.Rounds, r.Machine.Load[0], r.Machine.Load[1], r.Machine.Cores)
	switch {
	case goals == 0:
	case len(missed) == 0:
		text += fmt.Sprintf("All %d goals are met.\n", goals)
	default:
		text += fmt.Sprintf("%d of %d goals are missed: %s.\n", len(missed), goals, strings.Join(missed, ", "))
	}
	for _, result := range r.Results {
		text += result.remark()
	}
	for _, as := range []string{"secret", "hs256", "rs256"} {
		if few, many := r.cpuOf("range-few-"+as), r.cpuOf("range-fits-"+as); few > 0 && many > 0 {
			text += fmt.Sprintf("With %s a range of all users takes %.2f times that of few where the cache holds them; the goal is 1.5.\n", as, many/few)
		}
	}
	if few, many := r.cpuOf("query-1000"), r.cpuOf("query-1000000"); few > 0 && many > 0 {
		text += fmt.Sprintf("A query of a million children takes %.2f times that of a thousand; the goal is 1.25.\n", many/few)
	}
	if few, many := r.cpuOf("queue-1000"), r.cpuOf("queue-1000000"); few > 0 && many > 0 {
		text += fmt.Sprintf("A queue takes %.2f times as much after a million jobs as after a thousand; the goal is 1.5.\n", many/few)
	}
	if r.Requests < UsualRequests {
		text += "The rounds were short: the figures show that all works, and little more.\n"
	}
	if r.Machine.Load[0] > float64(r.Machine.Cores) {
		text += "The machine had other work: rates and times say little, and ratios as much as their spread is narrow.\n"
	}
	return text
}

// remark says what the table has no column for; nothing if there is nothing.
func (r Result) remark() string {
	var parts []string
	ratio := func(name string, s *Spread, goal [2]float64) {
		if s != nil {
			parts = append(parts, fmt.Sprintf("%s %.2f (%.2f-%.2f, goal %.2f)", name, s.Median, s.Low, s.High, goal[0]))
		}
	}
	ratio("p50", r.P50Ratio, r.Goal.P50)
	ratio("p99", r.P99Ratio, r.Goal.P99)
	if s := r.ExtraCPUMicros; s != nil {
		parts = append(parts, fmt.Sprintf("%s more CPU (%s-%s, goal %s)", timeText(s.Median), timeText(s.Low), timeText(s.High), timeText(r.Goal.ExtraCPU[0])))
	}
	if r.Goal.ExtraPeakBytes > 0 && r.Bare != nil {
		parts = append(parts, fmt.Sprintf("%s more memory (goal %s)", bytesText(r.Livetree.PeakBytes-r.Bare.PeakBytes), bytesText(r.Goal.ExtraPeakBytes)))
	}
	if r.Goal.Rate[0] > 0 && r.Other != "" && r.RateRatio != nil {
		parts = append(parts, fmt.Sprintf("rate %.2f (%.2f-%.2f, goal %.2f)", r.RateRatio.Median, r.RateRatio.Low, r.RateRatio.High, r.Goal.Rate[0]))
	}
	if len(parts) == 0 {
		return ""
	}
	other := r.Other
	if other == "" {
		other = "the bare server"
	}
	return fmt.Sprintf("%s against %s: %s.\n", r.Name, other, strings.Join(parts, ", "))
}

// cpuOf returns what a scenario took per request, 0 if it was not run.
func (r Report) cpuOf(name string) float64 {
	for _, result := range r.Results {
		if result.Name == name {
			return result.Livetree.CPUMicros
		}
	}
	return 0
}

// counted returns a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// timeText returns a time of some microseconds for people.
func timeText(micros float64) string {
	switch {
	case micros == 0:
		return "-"
	case micros < 10:
		return fmt.Sprintf("%.2fus", micros)
	case micros < 1000:
		return fmt.Sprintf("%.0fus", micros)
	case micros < 1e6:
		return fmt.Sprintf("%.1fms", micros/1000)
	}
	return fmt.Sprintf("%.1fs", micros/1e6)
}

func countText(n float64) string {
	switch {
	case n == 0:
		return "-"
	case n < 100:
		return fmt.Sprintf("%.1f", n)
	case n < 100_000:
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.0fk", n/1000)
}

func bytesText(n float64) string {
	switch {
	case n == 0:
		return "-"
	case n < 1<<20 && n > -1<<20:
		return fmt.Sprintf("%.1fKiB", n/(1<<10))
	case n >= 10<<30:
		return fmt.Sprintf("%.0fGiB", n/(1<<30))
	}
	return fmt.Sprintf("%.1fMiB", n/(1<<20))
}
