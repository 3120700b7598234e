package cli

import (
	"fmt"
	"time"
)

// clocks are how a time of the day is written.
var clocks = []string{"15:04", "15:04:05"}

// ParseMoment reads a moment of the past: a time with its date, 2026-11-15T14:05:00Z; how long
// ago it was, 10m; or a time of the day, 14:05, which is the last such time where now is.
func ParseMoment(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	for _, form := range clocks {
		if at, err := time.Parse(form, text); err == nil {
			year, month, day := now.Date()
			last := time.Date(year, month, day, at.Hour(), at.Minute(), at.Second(), 0, now.Location())
			if last.After(now) {
				last = time.Date(year, month, day-1, at.Hour(), at.Minute(), at.Second(), 0, now.Location())
			}
			return last, nil
		}
	}
	var ago Duration
	if ago.Set(text) == nil && ago > 0 {
		return now.Add(-time.Duration(ago)), nil
	}
	return time.Time{}, fmt.Errorf("%q is no moment: it must be a time such as 2026-11-15T14:05:00Z, a time of the day such as 14:05, or how long ago it was, such as 10m", text)
}
