package bench

import (
	"slices"
	"time"
)

// percentile returns the smallest of the times that at least a part p of them, from
// 0 to 1, do not exceed. The times are sorted. Of none it is 0.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	// The nearest rank: the tiny amount keeps 0.99 of 100 at the 99th.
	rank := int(p*float64(len(sorted)) + 1 - 1e-9)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the middle one, or the mean of the two in the middle. Of none it
// is 0.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return sorted[middle-1]/2 + sorted[middle]/2
}

func spread(list []float64) Spread {
	if len(list) == 0 {
		return Spread{}
	}
	return Spread{Median: median(list), Low: slices.Min(list), High: slices.Max(list)}
}

// ratios divides the figures of the same rounds. A round in which the other took
// nothing that could be counted is left out.
func ratios(ours, bare []float64) []float64 {
	var list []float64
	for i := range min(len(ours), len(bare)) {
		if bare[i] > 0 {
			list = append(list, ours[i]/bare[i])
		}
	}
	return list
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
