package machine

import "golang.org/x/sys/unix"

// Memory returns how much memory the process may use, 0 if that is not known.
func Memory() int64 {
	physical, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(physical)
}
