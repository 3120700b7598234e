//go:build !linux && !darwin

package machine

// Memory returns how much memory the process may use, 0 if that is not known.
func Memory() int64 { return 0 }
