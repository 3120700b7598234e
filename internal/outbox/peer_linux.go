package outbox

import (
	"golang.org/x/sys/unix"
)

// ackMillis is how long a peer may leave what was sent unacknowledged. Without it
// a machine that vanished would be noticed after a quarter of an hour.
const ackMillis = 45_000

// watch has the system end the connection when the peer does not answer.
func (p peer) watch() {
	_ = p.conn.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, ackMillis)
	})
}

// gone reports whether the peer has closed the connection. A stream's client has
// nothing to say: what it sends, such as the goodbye of TLS, is thrown away.
func (p peer) gone() bool {
	if p.conn == nil {
		return false
	}
	gone := false
	err := p.conn.Read(func(fd uintptr) bool {
		var buffer [512]byte
		for range 16 {
			n, _, err := unix.Recvfrom(int(fd), buffer[:], unix.MSG_DONTWAIT)
			if err == unix.EINTR {
				continue
			}
			if err == unix.EAGAIN {
				return true // nothing was sent: it is there
			}
			if err != nil || n == 0 {
				gone = true
				return true
			}
		}
		gone = true // a client that floods us is no client of a stream
		return true
	})
	return gone || err != nil
}
