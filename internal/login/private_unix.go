//go:build unix

package login

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private refuses a file that others can read or have written.
func private(file string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if uid := os.Geteuid(); ok && uid != 0 && int(stat.Uid) != uid {
		return fmt.Errorf("%s belongs to another user: remove it, and log in again", file)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others can read %s, which holds secrets: run chmod 600 on it, and replace the secrets if others use this machine", file)
	}
	return nil
}
