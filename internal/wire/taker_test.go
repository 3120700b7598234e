package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// A fullConn always has what is read from it, as one has on which a client sends without a pause.
type fullConn struct {
	net.Conn
	from  io.Reader
	now   *time.Time
	until time.Time
}

func (c *fullConn) SetReadDeadline(t time.Time) error { c.until = t; return nil }
func (c *fullConn) Read(p []byte) (int, error) {
	if !c.until.IsZero() && !c.now.Before(c.until) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.from.Read(p)
}

// TestTakerThatSendsWithoutAPause: a browser whose websocket has taken over from its polls may write for longer than a message
// may take.
func TestTakerThatSendsWithoutAPause(t *testing.T) {
	const size, messages = 4300, 100
	var sent []byte
	for range messages {
		sent = append(sent, 0x81, 0x80|126)
		sent = binary.BigEndian.AppendUint16(sent, size)
		sent = append(sent, 0, 0, 0, 0)
		sent = append(sent, bytes.Repeat([]byte{'x'}, size)...)
	}
	for _, taken := range []bool{false, true} {
		now := time.Unix(1_800_000_000, 0)
		clock := func() time.Time { return now }
		f := &Front{opts: Options{Now: clock}, began: now, memory: newMemory(0)}
		s := &socket{session: &session{front: f, memory: f.memory.of(netip.Addr{})}, now: clock, busy: &atomic.Int64{}}
		s.attach(&fullConn{from: bytes.NewReader(sent), now: &now}, nil)
		for i := range messages {
			var err error
			if taken { // as poll.Line.TakeOver reads
				_, err = taking{socket: s}.Next()
			} else { // as socket.read does
				if _, err = s.reader.Next(); err == nil {
					s.whole()
				}
			}
			if err != nil {
				t.Errorf("taken over %v: message %d, after %v: %v", taken, i, now.Sub(f.began), err)
				break
			}
			now = now.Add(200 * time.Millisecond)
		}
	}
}
