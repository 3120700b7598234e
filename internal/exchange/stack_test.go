package exchange

import (
	"sync"
	"testing"
)

// BenchmarkDeepen has goroutines that begin on a small stack do what needs a deep one, by steps as a request does.
func BenchmarkDeepen(b *testing.B) {
	for _, way := range []struct {
		name  string
		first func()
	}{{"by steps", func() {}}, {"at once", Deepen}} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var done sync.WaitGroup
				done.Go(func() {
					way.first()
					descend(stackBytes / 256)
				})
				done.Wait()
			}
		})
	}
}

// descend goes so many calls deep, each with some variables.
//
//go:noinline
func descend(n int) byte {
	var frame [128]byte
	if n == 0 {
		return frame[0]
	}
	frame[n] = descend(n - 1)
	return frame[n/2]
}
