package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// detach has a process end with this one, whatever ends it, and keeps the
// terminal's signals from it: we stop it when we are asked to stop.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Time returns what the system has counted for a process.
func Time(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED, see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("the processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// Resident returns the memory that a process has, and the most that it had
// since ForgetPeak.
func Resident(pid int) (current, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	return statusBytes(string(text), "VmRSS:"), statusBytes(string(text), "VmHWM:"), nil
}

// statusBytes finds a size in a file like /proc/self/status; 0 if it is not there.
func statusBytes(text, name string) int64 {
	_, rest, _ := strings.Cut("\n"+text, "\n"+name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kibibytes, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kibibytes << 10
}

// ForgetPeak makes the memory that a process has now the most that it had.
func ForgetPeak(pid int) {
	// Where that is not allowed the peak is that of its whole life.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// MachineMemory and MachineLoad return what the system says of itself.
func MachineMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return statusBytes(string(text), "MemTotal:")
}

func MachineLoad() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	load, _ := strconv.ParseFloat(strings.Fields(string(text) + " 0")[0], 64)
	return load
}
