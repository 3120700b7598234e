package burst

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// Runtime is the heap of this process.
type Runtime struct{}

// read returns a number that Go tells of itself.
func read(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	if metrics.Read(sample); sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(min(sample[0].Value.Uint64(), math.MaxInt64))
}

// Live implements [Heap].
func (Runtime) Live() int64 { return read("/gc/heap/live:bytes") }

// Scanned implements [Heap].
func (Runtime) Scanned() int64 { return read("/gc/scan/heap:bytes") }

// Percent implements [Heap].
func (Runtime) Percent() int {
	if percent := read("/gc/gogc:percent"); percent <= math.MaxInt32 {
		return int(percent)
	}
	return -1
}

// SetPercent implements [Heap].
func (Runtime) SetPercent(percent int) { debug.SetGCPercent(percent) }

// Free implements [Heap].
func (Runtime) Free() { debug.FreeOSMemory() }
