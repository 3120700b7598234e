//go:build !linux

package rest

func (p peer) watch() {}

// gone is known only by the next write.
func (p peer) gone() bool { return false }
