package report

import (
	"fmt"
	"strings"
)

// Tables returns, for a terminal, what is about growth and stalls.
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
	return b.String()
}

// GrowthHead is the head of the table of growth; Row makes its rows.
func GrowthHead() string {
	return fmt.Sprintf("%-10s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n",
		"LEAVES", "FILL/S", "GET CPU", "GET P50", "BLOCKS", "PUT CPU", "PUT P50", "QUERY CPU", "OPEN", "MEMORY", "DISK")
}

// Row returns the row of a step.
func (s GrowthStep) Row() string {
	return fmt.Sprintf("%-10d %9s %9s %9s %9.2f %9s %9s %9s %9s %9s %9s\n", s.Leaves, countText(s.FillPerSecond),
		timeText(s.Get.CPUMicros), timeText(s.Get.P50Micros), s.GetBlocks, timeText(s.Put.CPUMicros), timeText(s.Put.P50Micros),
		timeText(s.Query.CPUMicros), timeText(s.OpenMillis*1000), bytesText(s.OpenRSSBytes), bytesText(float64(s.DiskBytes)))
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
