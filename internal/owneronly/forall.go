package owneronly

import (
	"os"
	"runtime"
)

// IsForAll reports whether every user of the machine can read a file. It does not know on Windows, where modes say nothing.
func IsForAll(name string) bool {
	info, err := os.Stat(name)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0
}
