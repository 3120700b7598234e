package store_test

import (
	"testing"
	"time"

	"github.com/livetree/livetree/internal/store"
)

func TestDurationsCountByBound(t *testing.T) {
	var d store.Durations
	took := []time.Duration{-time.Second, 0, time.Microsecond, time.Microsecond + 1, 4 * time.Microsecond,
		time.Second, time.Hour}
	var sum time.Duration
	for _, t := range took {
		d.Observe(t)
		sum += max(t, 0)
	}
	got := d.Counts()
	if got.Count != uint64(len(took)) || got.Sum != sum {
		t.Errorf("counted %d that took %v, want %d and %v", got.Count, got.Sum, len(took), sum)
	}
	for bound, n := range got.UpTo {
		want := uint64(0)
		for _, t := range took {
			if t.Seconds() <= bound {
				want++
			}
		}
		if n != want {
			t.Errorf("%d took at most %v s, want %d", n, bound, want)
		}
	}
}
