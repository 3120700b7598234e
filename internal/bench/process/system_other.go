//go:build !linux

package process

import (
	"os/exec"
	"time"
)

func detach(*exec.Cmd) {}

func Time(int) (time.Duration, error) { return 0, ErrNotLinux }

func Resident(int) (current, peak int64, err error) { return 0, 0, ErrNotLinux }

func ForgetPeak(int) {}

func MachineMemory() int64 { return 0 }

func MachineLoad() float64 { return 0 }

type Group struct{}

func NewGroup(int64) (*Group, error) { return nil, ErrNotLinux }

func (*Group) Add(int) error { return nil }

func (*Group) Remove() error { return nil }
