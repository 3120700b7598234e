package datadir

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// durationBuckets is how many bounds a Durations has: powers of two from one
// microsecond to 17 seconds.
const durationBuckets = 25

// A Durations counts how long things took. The zero value is ready; it may be
// used by many goroutines.
type Durations struct {
	counts [durationBuckets + 1]atomic.Uint64 // the last is for what took longer
	nanos  atomic.Int64
}

// Observe counts one duration.
func (d *Durations) Observe(took time.Duration) {
	took = max(took, 0) // a clock that was set back
	micros := uint64((took + time.Microsecond - 1) / time.Microsecond)
	d.counts[min(bits.Len64(max(micros, 1)-1), durationBuckets)].Add(1)
	d.nanos.Add(int64(took))
}

// DurationCounts are what a Durations has counted.
type DurationCounts struct {
	Count uint64
	Sum   time.Duration
	// UpTo has for each bound, in seconds, how many took no longer.
	UpTo map[float64]uint64
}

// Counts returns what was counted so far. Counting goes on meanwhile, so that
// the sum may be a little ahead of the numbers.
func (d *Durations) Counts() DurationCounts {
	c := DurationCounts{UpTo: make(map[float64]uint64, durationBuckets)}
	for i := range durationBuckets {
		c.Count += d.counts[i].Load()
		c.UpTo[(time.Microsecond << i).Seconds()] = c.Count
	}
	c.Count += d.counts[durationBuckets].Load()
	c.Sum = time.Duration(d.nanos.Load())
	return c
}
