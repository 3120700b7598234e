//go:build !linux

package outbox

func (p peer) watch() {}

// gone is known only by the next write.
func (p peer) gone() bool { return false }
