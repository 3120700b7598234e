package frame

import (
	"errors"
	"fmt"
	"io"

	"github.com/gobwas/ws"
)

// ErrUnits is what a Stream returns if the text does not have the announced length.
var ErrUnits = errors.New("the text has not the length that was announced")

// A Stream writes a message that is too large to be held in memory. The number of its
// units is said before, so it is printed twice: to a Counter, then to a Stream. It
// holds one segment at a time, less than 80 KiB.
//
// Use it by one goroutine. After an error the connection is of no use: the client has
// been told of segments that will not come.
type Stream struct {
	to      io.Writer
	plan    plan
	segment int    // the current one, counted from 0
	units   int    // of the message, up to whole
	frame   []byte // room for a header, then the text of the segment
	whole   int    // how much of frame is counted in units; then comes part of a character
	err     error
}

// headerRoom is where the header of a segment is put when its length is known.
const headerRoom = ws.MaxHeaderSize

// NewStream returns a stream of a message with so many units. Nothing is written yet.
func NewStream(to io.Writer, units int) (*Stream, error) {
	if units < 1 || units > MaxUnits {
		return nil, fmt.Errorf("a message of %d units cannot be sent", units)
	}
	return &Stream{to: to, plan: newPlan(units), frame: make([]byte, headerRoom), whole: headerRoom}, nil
}

// Write takes the next piece of the text. Pieces may be cut anywhere.
func (s *Stream) Write(piece []byte) (int, error) {
	for rest := piece; len(rest) > 0 && s.err == nil; {
		n := min(len(rest), segmentUnits)
		s.take(rest[:n])
		rest = rest[n:]
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(piece), nil
}

// take adds a piece, which may reach into the next segment.
func (s *Stream) take(piece []byte) {
	s.frame = append(s.frame, piece...)
	for s.err == nil {
		fresh := s.frame[s.whole:]
		n := prefix(fresh, s.plan.end(s.segment)-s.units)
		s.units += Units(fresh[:n])
		s.whole += n
		if wholeLength(fresh[n:]) == 0 {
			return // the rest of a character has to come, or there is none
		}
		if s.segment == s.plan.segments-1 {
			s.err = ErrUnits
			return
		}
		s.flush()
	}
}

// Close writes the last segment. The writer is not closed.
func (s *Stream) Close() error {
	if s.err == nil && (s.units != s.plan.units || s.whole != len(s.frame)) {
		s.err = ErrUnits
	}
	if s.err == nil {
		s.flush()
	}
	if err := s.err; err != nil {
		return err
	}
	s.err = io.ErrClosedPipe
	return nil
}

// flush writes the whole characters that are held as one segment, and before the first
// segment how many there are.
func (s *Stream) flush() {
	if s.segment == 0 && s.plan.segments > 1 {
		if _, s.err = s.to.Write(appendCount(nil, s.plan.segments)); s.err != nil {
			return
		}
	}
	var room [headerRoom]byte
	header := appendHeader(room[:0], ws.OpText, s.whole-headerRoom)
	start := headerRoom - len(header)
	copy(s.frame[start:], header)
	if _, s.err = s.to.Write(s.frame[start:s.whole]); s.err != nil {
		return
	}
	s.frame = append(s.frame[:headerRoom], s.frame[s.whole:]...)
	s.whole = headerRoom
	s.segment++
}
