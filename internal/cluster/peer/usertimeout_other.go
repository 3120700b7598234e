//go:build !linux

package peer

import (
	"net"
	"time"
)

// limitUnanswered does nothing where the kernel has no such option.
func limitUnanswered(net.Conn, time.Duration) {}
