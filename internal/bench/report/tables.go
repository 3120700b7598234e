package report

import (
	"fmt"
	"strings"
)

// Tables returns, for a terminal, what is not about scenarios.
func (r Report) Tables() string {
	var b strings.Builder
	if len(r.Growth) > 0 {
		b.WriteString(GrowthHead())
	}
	for _, step := range r.Growth {
		b.WriteString(step.Row())
	}
	if r.Databases != nil {
		b.WriteString(r.Databases.Row())
	}
	if len(r.Stalls) > 0 {
		b.WriteString(StallsHead())
	}
	for _, s := range r.Stalls {
		b.WriteString(s.Row())
	}
	if len(r.Writers) > 0 {
		b.WriteString(WritersHead())
	}
	for _, s := range r.Writers {
		b.WriteString(s.Row())
	}
	if len(r.Tight) > 0 {
		b.WriteString(TightHead())
	}
	for _, s := range r.Tight {
		b.WriteString(s.Row())
	}
	return b.String()
}

// TightHead is the head of the table of a server with little memory; Row makes its rows.
func TightHead() string {
	return fmt.Sprintf("%-9s %6s %9s %8s %8s %8s %7s %8s %8s %7s %8s %8s %9s %9s %9s %7s %9s %9s %8s\n", "MEMORY", "DATA", "DISK", "FILL/S",
		"GET CPU", "P99", "BLOCKS", "UNIFORM", "P99", "BLOCKS", "PUT CPU", "P99", "QUERY CPU", "RANGE CPU", "P99", "BLOCKS", "FILL MOST", "MOST", "OPEN")
}

// Row returns the row of a step.
func (s TightStep) Row() string {
	return fmt.Sprintf("%-9s %5gx %9s %8s %8s %8s %7.2f %8s %8s %7.2f %8s %8s %9s %9s %9s %7.1f %9s %9s %8s\n", bytesText(float64(s.MemoryBytes)), s.Factor,
		bytesText(float64(s.DiskBytes)), bytesText(s.FillPerSecond), timeText(s.Get.CPUMicros), timeText(s.Get.P99Micros), s.GetBlocks,
		timeText(s.Uniform.CPUMicros), timeText(s.Uniform.P99Micros), s.UniformBlocks, timeText(s.Put.CPUMicros), timeText(s.Put.P99Micros),
		timeText(s.Query.CPUMicros), timeText(s.Range.CPUMicros), timeText(s.Range.P99Micros), s.RangeBlocks,
		bytesText(s.FillPeakBytes), bytesText(s.PeakBytes), timeText(s.OpenMillis*1000))
}

// WritersHead is the head of the table of writers; Row makes its rows. Of each figure
// the bare server's is behind that of Livetree.
func WritersHead() string {
	return fmt.Sprintf("%-8s %8s %8s %8s %6s %15s %17s %19s %19s\n",
		"SYNC", "WRITERS", "TOOK", "CPU/BARE", "RATE/B", "GROUP, BARE", "PER S, BARE", "P50, BARE", "P99, BARE")
}

// Row returns the row of a step.
func (s WritersStep) Row() string {
	disk := "disk"
	if s.SyncMicros > 0 {
		disk = timeText(s.SyncMicros)
	}
	ratio := func(r *Spread) string {
		if r == nil {
			return "-"
		}
		return fmt.Sprintf("%.2f", r.Median)
	}
	return fmt.Sprintf("%-8s %8d %8s %8s %6s %7.1f %7.1f %8s %8s %9s %9s %9s %9s\n", disk, s.Writers, timeText(s.SyncTookMicros),
		ratio(s.CPURatio), ratio(s.RateRatio), s.LivetreeGroup, s.BareGroup, countText(s.Livetree.Rate), countText(s.Bare.Rate),
		timeText(s.Livetree.P50Micros), timeText(s.Bare.P50Micros), timeText(s.Livetree.P99Micros), timeText(s.Bare.P99Micros))
}

// GrowthHead is the head of the table of growth; Row makes its rows.
func GrowthHead() string {
	return fmt.Sprintf("%-10s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n",
		"LEAVES", "FILL/S", "GET CPU", "GET P50", "BLOCKS", "PUT CPU", "PUT P50", "QUERY CPU", "RANGE CPU", "OPEN", "CHECK", "BACKUP", "DEBT", "MERGED", "WRITE AMP", "MEMORY", "DISK")
}

// Row returns the row of a step.
func (s GrowthStep) Row() string {
	return fmt.Sprintf("%-10d %9s %9s %9s %9.2f %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n", s.Leaves, countText(s.FillPerSecond),
		timeText(s.Get.CPUMicros), timeText(s.Get.P50Micros), s.GetBlocks, timeText(s.Put.CPUMicros), timeText(s.Put.P50Micros),
		timeText(s.Query.CPUMicros), timeText(s.Range.CPUMicros), timeText(s.OpenMillis*1000), timeText(s.CheckMillis*1000), timeText(s.BackupMillis*1000),
		bytesText(s.DebtBytes), timeText(s.MergeMillis*1000), countText(s.WriteAmplification), bytesText(s.OpenRSSBytes), bytesText(float64(s.DiskBytes)))
}

// Row says what databases take.
func (d Databases) Row() string {
	return fmt.Sprintf("%d databases: %s to start (%s with none), %s and %s each; %s each after a request; made %s/s\n", d.Count,
		timeText(d.OpenMillis*1000), timeText(d.EmptyMillis*1000), timeText(d.StartMicros), bytesText(d.IdleBytes),
		bytesText(d.OpenedMemory), countText(d.MakePerSec))
}

// StallsHead is the head of the table of stalls; Row makes its rows.
func StallsHead() string {
	return fmt.Sprintf("%-8s %9s %9s %9s %9s %9s %9s %9s\n", "WHILE", "TOOK", "READ P50", "P99", "MAX", "WRITE P50", "P99", "MAX")
}

// Row returns the row of a disturbance.
func (s Stalled) Row() string {
	return fmt.Sprintf("%-8s %9s %9s %9s %9s %9s %9s %9s  %s\n", s.Name, timeText(s.Millis*1000),
		timeText(s.Reads.P50Micros), timeText(s.Reads.P99Micros), timeText(s.Reads.MaxMicros),
		timeText(s.Writes.P50Micros), timeText(s.Writes.P99Micros), timeText(s.Writes.MaxMicros), s.About)
}
