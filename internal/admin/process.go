package admin

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
)

// process is what the Go runtime and the system say of this process.
type process struct {
	goroutines, rssBytes, heapBytes, memoryLimit, gcCycles uint64
	gcCPUSeconds, cpuSeconds                               float64
}

// readProcess reads the numbers; it does not stop the world.
func readProcess() process {
	samples := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/gc/gomemlimit:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/user:cpu-seconds"},
	}
	metrics.Read(samples)
	p := process{
		goroutines:   samples[0].Value.Uint64(),
		heapBytes:    samples[1].Value.Uint64(),
		rssBytes:     samples[2].Value.Uint64(),
		memoryLimit:  samples[3].Value.Uint64(),
		gcCycles:     samples[4].Value.Uint64(),
		gcCPUSeconds: samples[5].Value.Float64(),
		cpuSeconds:   samples[6].Value.Float64(),
	}
	if pages, ok := residentPages(); ok {
		p.rssBytes = pages * uint64(os.Getpagesize())
	}
	return p
}

// residentPages asks Linux. Elsewhere what the runtime has mapped stands in.
func residentPages() (uint64, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	return pages, err == nil
}
