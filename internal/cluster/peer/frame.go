package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A frame is a length of four bytes, a type of one, and what that type has. The length is that of all after it.
//
//	greet    version:1 purpose:1 address     the first frame of either end
//	ping     number:8
//	pong     number:8 clock:8                the number of the ping, and nanoseconds since 1970
//	call     id:8 total:4 length:1 kind body the first part of a call whose body has total bytes
//	part     id:8 body                       the next part of a call, of an answer or of a stream
//	cancel   id:8                            the caller has given up
//	answer   id:8 total:4 body               the first part of an answer; the end of a stream
//	refused  id:8 text                       the handler's error
//	unseen   id:8 text                       no handler has seen the call
type frameType byte

const (
	greet frameType = iota + 1
	ping
	pong
	call
	part
	cancel
	answer
	refused
	unseen
)

const (
	// partBytes is how much of a body is in one frame.
	partBytes = 64 << 10
	// maxFrame is how long a frame may be, without its length.
	maxFrame = partBytes + 512
	// wireVersion is that of the frames; the protocol's name has it as well.
	wireVersion = 1
	maxKind     = 64
	maxAddress  = 300
)

// What a connection is for.
const (
	forCalls  = 1
	forStream = 2
	forPipe   = 3
)

// errFrame says that a peer has sent what is no frame, or not one that belongs there.
var errFrame = errors.New("the peer does not keep to the protocol")

// frameReader reads one frame after the other.
type frameReader struct {
	r   *bufio.Reader
	buf []byte
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 16<<10)}
}

// next returns the next frame. What it holds is good until the next call.
func (r *frameReader) next() (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return frame{}, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length == 0 || length > maxFrame {
		return frame{}, fmt.Errorf("%w: a frame of %d bytes", errFrame, length)
	}
	if need := int(length) - 1; cap(r.buf) < need {
		r.buf = make([]byte, need, min(2*need, maxFrame))
	}
	content := r.buf[:length-1]
	if _, err := io.ReadFull(r.r, content); err != nil {
		return frame{}, err
	}
	return parseFrame(frameType(head[4]), content)
}

// A frame as it is read: what its type does not have is zero.
type frame struct {
	kind    frameType
	id      uint64 // also the number of a ping
	clock   int64
	total   uint32
	name    string // the kind of a call, the address of a greeting
	purpose byte
	body    []byte
}

func parseFrame(kind frameType, b []byte) (frame, error) {
	f := frame{kind: kind}
	bad := fmt.Errorf("%w: a frame of type %d and %d bytes", errFrame, kind, len(b))
	if kind == greet {
		if len(b) < 3 || len(b) > 2+maxAddress || b[0] != wireVersion {
			return frame{}, bad
		}
		f.purpose, f.name = b[1], string(b[2:])
		return f, nil
	}
	if kind < greet || kind > unseen || len(b) < 8 {
		return frame{}, bad
	}
	f.id, b = binary.BigEndian.Uint64(b), b[8:]
	switch kind {
	case ping, cancel:
		if len(b) != 0 {
			return frame{}, bad
		}
	case pong:
		if len(b) != 8 {
			return frame{}, bad
		}
		f.clock, b = int64(binary.BigEndian.Uint64(b)), nil
	case call, answer:
		if len(b) < 4 {
			return frame{}, bad
		}
		f.total, b = binary.BigEndian.Uint32(b), b[4:]
		if kind == call {
			if len(b) == 0 || b[0] == 0 || b[0] > maxKind || len(b) < 1+int(b[0]) {
				return frame{}, bad
			}
			f.name, b = string(b[1:1+b[0]]), b[1+int(b[0]):]
		}
	}
	f.body = b
	return f, nil
}

// encode returns a frame as it is sent.
func (f frame) encode() []byte { return f.appendTo(make([]byte, 0, 4+1+8+4+1+len(f.name)+len(f.body))) }

// appendTo appends a frame as it is sent to nothing: b is memory that may be used.
func (f frame) appendTo(b []byte) []byte {
	b = append(b[:0], 0, 0, 0, 0, byte(f.kind))
	switch f.kind {
	case greet:
		b = append(append(b, wireVersion, f.purpose), f.name...)
	case pong:
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, f.id), uint64(f.clock))
	case call:
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, f.id), f.total)
		b = append(append(b, byte(len(f.name))), f.name...)
	case answer:
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, f.id), f.total)
	default:
		b = binary.BigEndian.AppendUint64(b, f.id)
	}
	b = append(b, f.body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// trustBytes is how much of a body must have come before memory for all of it is taken.
const trustBytes = 1 << 20

// A body is received part by part.
type body struct {
	total int
	bytes []byte
}

// add takes the next part, and says whether it was the last.
func (b *body) add(part []byte) (whole bool, err error) {
	if len(b.bytes)+len(part) > b.total {
		return false, fmt.Errorf("%w: a body is longer than it was said to be", errFrame)
	}
	if len(part) == 0 && b.total != 0 {
		return false, fmt.Errorf("%w: an empty part", errFrame)
	}
	if len(b.bytes) >= trustBytes && cap(b.bytes) < b.total {
		// It is as long as it was said to be, then: growing step by step would take more than twice that.
		b.bytes = slices.Grow(b.bytes, b.total-len(b.bytes))
	}
	b.bytes = append(b.bytes, part...)
	return len(b.bytes) == b.total, nil
}
