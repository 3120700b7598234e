package peer

import (
	"net"
	"syscall"
	"time"
)

// Options of Linux: TCP_USER_TIMEOUT and TCP_NOTSENT_LOWAT.
const (
	tcpUserTimeout  = 18
	tcpNotSentLowat = 25
)

// notSent is how much may wait in the kernel to be sent: a ping waits behind it.
const notSent = 128 << 10

// limitUnanswered has the kernel give up a connection whose peer does not confirm what was sent, and queue little of it.
func limitUnanswered(c net.Conn, after time.Duration) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	// It is a help, not a promise: silence is noticed without it.
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(after.Milliseconds()))
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, notSent)
	})
}
