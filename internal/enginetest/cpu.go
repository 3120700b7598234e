package enginetest

import (
	"syscall"
	"testing"
)

// CPUMicros returns how long this process has used processors.
func CPUMicros(t testing.TB) int64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return (usage.Utime.Nano() + usage.Stime.Nano()) / 1000
}
