package frame

import (
	"encoding/binary"
	"strconv"

	"github.com/gobwas/ws"
)

// A Splitter takes frames apart that were made by this package: for a client that is not
// told through a websocket, but is to be sent the same bytes as all others. The zero
// value is between two messages. Use it by one goroutine.
type Splitter struct {
	frame   []byte // what has come of the current frame
	missing int    // segments that the message still needs
}

// A Part is what a frame holds.
type Part struct {
	Text []byte // part of a message, in whole characters; nil if the frame has none
	Last bool   // the message ends with it
	// Close is the code of a close frame; 0 for another frame.
	Close int
}

// Between reports whether no message has begun.
func (s *Splitter) Between() bool { return len(s.frame) == 0 && s.missing == 0 }

// Next reads up to the end of a frame. It returns how many bytes it has read, and what is in
// the frame. The Part is empty if the frame is not complete, and if there is nothing in
// it to be told. It may be used until the next call.
func (s *Splitter) Next(p []byte) (n int, part Part) {
	for len(s.frame) < s.want() {
		if n == len(p) {
			return n, Part{}
		}
		more := min(s.want()-len(s.frame), len(p)-n)
		s.frame = append(s.frame, p[n:n+more]...)
		n += more
	}
	part = s.open()
	if s.frame = s.frame[:0]; cap(s.frame) > keptFrame {
		s.frame = nil // the part still refers to it
	}
	return n, part
}

// keptFrame is how large the memory of a frame may be that is kept for the next.
const keptFrame = 4 << 10

// want returns how long the frame must be, as far as is known.
func (s *Splitter) want() int {
	if len(s.frame) < 2 {
		return 2
	}
	head, length := headLength(s.frame)
	if len(s.frame) < head {
		return head
	}
	return head + length
}

// headLength returns the lengths of the header and of the payload, which is 0 if the header
// is not complete.
func headLength(frame []byte) (head, payload int) {
	switch short := frame[1] & 0x7f; short {
	case 126:
		if len(frame) >= 4 {
			payload = int(binary.BigEndian.Uint16(frame[2:]))
		}
		return 4, payload
	case 127:
		if len(frame) >= 10 {
			payload = int(binary.BigEndian.Uint64(frame[2:]))
		}
		return 10, payload
	default:
		return 2, int(short)
	}
}

// open returns what is in the frame, which is complete.
func (s *Splitter) open() Part {
	head, _ := headLength(s.frame)
	payload := s.frame[head:]
	switch ws.OpCode(s.frame[0] & 0xf) {
	case ws.OpClose:
		return Part{Close: int(binary.BigEndian.Uint16(payload))}
	case ws.OpText:
	default:
		return Part{} // a pong
	}
	if s.missing > 0 {
		s.missing--
		return Part{Text: payload, Last: s.missing == 0}
	}
	if payload[0] != '{' {
		if count, err := strconv.Atoi(string(payload)); err == nil {
			s.missing = count
			return Part{}
		}
	}
	return Part{Text: payload, Last: true}
}
