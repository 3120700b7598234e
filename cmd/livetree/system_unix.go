//go:build linux || darwin

package main

import "golang.org/x/sys/unix"

// diskRoom returns the bytes that are free for us, and all, on the disk of a
// directory.
func diskRoom(dir string) (free, total uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}

// openFiles returns how many files a process may have open.
func openFiles() (uint64, bool) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return limit.Cur, err == nil
}
