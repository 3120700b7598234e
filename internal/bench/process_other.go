//go:build !linux

package bench

import (
	"os/exec"
	"time"
)

func detach(*exec.Cmd) {}

func processorTime(int) (time.Duration, error) { return 0, errNotLinux }

func residentBytes(int) (current, peak int64, err error) { return 0, 0, errNotLinux }

func forgetPeak(int) {}

func machineMemory() int64 { return 0 }

func machineLoad() float64 { return 0 }

type group struct{}

func newGroup(int64) (*group, error) { return nil, errNotLinux }

func (*group) add(int) error { return nil }

func (*group) remove() error { return nil }
