package machine

import (
	"os"

	"golang.org/x/sys/unix"
)

// Memory returns how much memory the process may use, 0 if that is not known.
func Memory() int64 {
	var info unix.Sysinfo_t
	physical := int64(0)
	if unix.Sysinfo(&info) == nil {
		physical = int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // it is smaller on some machines
	}
	return memoryIn(os.DirFS("/"), physical)
}
