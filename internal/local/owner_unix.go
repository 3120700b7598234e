//go:build unix

package local

import (
	"io/fs"
	"os"
	"syscall"
)

// isOurs reports whether a file belongs to this user. Root may use those of all.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	uid := os.Geteuid()
	return !ok || uid == 0 || stat.Uid == 0 || int(stat.Uid) == uid
}
