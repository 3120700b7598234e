//go:build unix

package owneronly

import "syscall"

// Umask makes all files that the process makes from now on private.
func Umask() { syscall.Umask(others) }
