package cli

import "fmt"

// Size writes a number of bytes for people.
func Size(bytes uint64) string {
	size, unit := float64(bytes), 0
	names := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	for size >= 1024 && unit < len(names)-1 {
		size, unit = size/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", size, names[unit])
}
