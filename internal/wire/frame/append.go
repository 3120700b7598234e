package frame

import (
	"encoding/binary"
	"strconv"

	"github.com/gobwas/ws"
)

// Append appends the frames of a message: one, or the number of segments and the
// segments. The message is a JSON object in valid UTF-8, of at most MaxUnits.
func Append(dst, message []byte) []byte {
	return appendText(dst, message, newPlan(Units(message)))
}

// appendText appends the frames of a whole text that is cut as planned.
func appendText(dst, text []byte, p plan) []byte {
	dst, text = appendFirst(dst, text, p)
	dst = appendHeader(dst, ws.OpText, len(text))
	return append(dst, text...)
}

// appendFirst appends the number of segments, if there are several, and all of them but
// the last. It returns the text of the last one.
func appendFirst(dst, text []byte, p plan) (frames, last []byte) {
	if p.segments == 1 {
		return dst, text
	}
	dst = appendCount(dst, p.segments)
	at := 0 // in units
	for i := range p.segments - 1 {
		n := prefix(text, p.end(i)-at)
		at += Units(text[:n])
		dst = appendHeader(dst, ws.OpText, n)
		dst = append(dst, text[:n]...)
		text = text[n:]
	}
	return dst, text
}

func appendCount(dst []byte, segments int) []byte {
	var digits [20]byte
	count := strconv.AppendInt(digits[:0], int64(segments), 10)
	dst = appendHeader(dst, ws.OpText, len(count))
	return append(dst, count...)
}

// appendHeader appends the header of a whole frame from the server: not masked, and its
// length in as few bytes as there can be. It does what ws.WriteHeader does, without a
// writer that would be allocated for each frame.
func appendHeader(dst []byte, op ws.OpCode, length int) []byte {
	const fin = 0x80
	switch {
	case length <= 125:
		return append(dst, fin|byte(op), byte(length))
	case length <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, fin|byte(op), 126), uint16(length))
	}
	return binary.BigEndian.AppendUint64(append(dst, fin|byte(op), 127), uint64(length))
}

// maxControl is the most bytes of a ping, a pong or a close frame.
const maxControl = ws.MaxControlFramePayloadSize

// AppendPong appends the answer to a ping.
func AppendPong(dst, payload []byte) []byte {
	payload = payload[:min(len(payload), maxControl)]
	return append(appendHeader(dst, ws.OpPong, len(payload)), payload...)
}

// AppendClose appends the frame that ends a connection. A long reason is cut.
func AppendClose(dst []byte, code int, reason string) []byte {
	text := []byte(reason)
	if most := maxControl - 2; len(text) > most {
		text = text[:most]
		text = text[:wholeLength(text)]
	}
	dst = appendHeader(dst, ws.OpClose, 2+len(text))
	dst = binary.BigEndian.AppendUint16(dst, uint16(code))
	return append(dst, text...)
}

// EndUnits is the room that a Prepared message leaves for its end.
const EndUnits = 24

// A Prepared message is all of a message but its end. It is made once; each of the
// connections that it goes to appends an end of its own, as the tag of a query:
//
//	{"t":"d","d":{"a":"d","b":{"p":"a","d":1   and   ,"t":17}}}
//
// It is a slice of bytes so that it can be kept where the frames of other messages are:
// the offset of the last segment, the finished frames, and the text of the last segment.
type Prepared []byte

const offsetBytes = 4

// Prepare returns a message without its end. It is in valid UTF-8 and has at most
// MaxUnits - EndUnits.
func Prepare(beginning []byte) Prepared {
	p := newPlan(Units(beginning) + EndUnits)
	frames := make([]byte, offsetBytes, offsetBytes+len(beginning)+(p.segments+1)*ws.MaxHeaderSize)
	frames, last := appendFirst(frames, beginning, p)
	binary.BigEndian.PutUint32(frames, uint32(len(frames)))
	return append(frames, last...)
}

// Append appends the frames of the message with an end of at most EndUnits.
func (p Prepared) Append(dst, end []byte) []byte {
	dst = append(dst, p.first()...)
	return p.appendLast(dst, end)
}

// Cut returns the frames of the message with an end of at most EndUnits: all but the last one,
// which are a part of p and not to be changed, and the last.
func (p Prepared) Cut(end []byte) (first, last []byte) { return p.first(), p.appendLast(nil, end) }

// first returns the finished frames.
func (p Prepared) first() []byte { return p[offsetBytes:binary.BigEndian.Uint32(p)] }

// appendLast appends the frame of the last segment.
func (p Prepared) appendLast(dst, end []byte) []byte {
	last := p[binary.BigEndian.Uint32(p):]
	dst = appendHeader(dst, ws.OpText, len(last)+len(end))
	return append(append(dst, last...), end...)
}
