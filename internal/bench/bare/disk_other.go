//go:build !linux

package bare

import (
	"os"
	"time"
)

func syncData(file *os.File) error { return file.Sync() }

func allocate(*os.File, int64, int64) error { return nil }

// Stand takes as long as it is told, as a sync does that waits for a disk.
func Stand(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // a disk that is slow
}
