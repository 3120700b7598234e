package bare

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// syncData makes what was written to a file durable, with no more than that takes.
func syncData(file *os.File) error { return unix.Fdatasync(int(file.Fd())) }

// allocate reserves space for a file, so that a sync need not write its length.
func allocate(file *os.File, offset, length int64) error {
	return unix.Fallocate(int(file.Fd()), 0, offset, length)
}

// Stand takes as long as it is told, and a thread, as a sync does that waits for a disk.
// Go's own timers can be a millisecond late while nothing else is to be done.
func Stand(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A thread is woken up to 50 microseconds late unless it asks for better; if that
	// fails it stays so.
	const slackNanos = 1000
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, slackNanos, 0, 0, 0)
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR {
		continue // what is left is slept now
	}
}
