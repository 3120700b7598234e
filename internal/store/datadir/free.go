package datadir

import "github.com/cockroachdb/pebble/v2/vfs"

// FreeIn returns how much space is left on the disk of a directory, and whether the system says so.
func FreeIn(dir string) (free uint64, known bool) {
	usage, err := vfs.Default.GetDiskUsage(dir)
	return usage.AvailBytes, err == nil
}
