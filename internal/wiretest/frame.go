package wiretest

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The kinds of websocket frames.
const (
	OpContinuation = 0x0
	OpText         = 0x1
	OpBinary       = 0x2
	OpClose        = 0x8
	OpPing         = 0x9
	OpPong         = 0xa
)

// A Frame is one websocket frame, as it should be or not.
type Frame struct {
	Op       byte
	Fragment bool // FIN is not set
	Reserved byte // three bits
	Masked   bool
	Padded   bool // its length takes more bytes than it needs; only for frames that are read
	Payload  []byte
}

// Text returns the frame of a client with a text.
func Text(text string) Frame { return Frame{Op: OpText, Masked: true, Payload: []byte(text)} }

var mask = [4]byte{0x37, 0xfa, 0x21, 0x3d}

// Append appends the bytes of the frame.
func (f Frame) Append(dst []byte) []byte {
	first := f.Op | f.Reserved<<4
	if !f.Fragment {
		first |= 0x80
	}
	var masked byte
	if f.Masked {
		masked = 0x80
	}
	switch n := len(f.Payload); {
	case n < 126:
		dst = append(dst, first, masked|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, first, masked|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, first, masked|127), uint64(n))
	}
	if !f.Masked {
		return append(dst, f.Payload...)
	}
	dst = append(dst, mask[:]...)
	for i, b := range f.Payload {
		dst = append(dst, b^mask[i%4])
	}
	return dst
}

// maxPayload bounds the frames that are read: the server's may have 64 KiB.
const maxPayload = 32 << 20

// ReadFrame reads a frame. The payload is not masked any more.
func ReadFrame(r io.Reader) (Frame, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return Frame{}, err
	}
	f := Frame{Op: head[0] & 0xf, Fragment: head[0]&0x80 == 0, Reserved: head[0] >> 4 & 7, Masked: head[1]&0x80 != 0}
	length := uint64(head[1] & 0x7f)
	var err error
	switch length {
	case 126:
		_, err = io.ReadFull(r, head[:2])
		length = uint64(binary.BigEndian.Uint16(head[:2]))
		f.Padded = length < 126
	case 127:
		_, err = io.ReadFull(r, head[:8])
		length = binary.BigEndian.Uint64(head[:8])
		f.Padded = length < 1<<16
	}
	if err != nil {
		return Frame{}, cutOff(err)
	}
	if length > maxPayload {
		return Frame{}, fmt.Errorf("a frame of %d bytes", length)
	}
	var key [4]byte
	if f.Masked {
		if _, err := io.ReadFull(r, key[:]); err != nil {
			return Frame{}, cutOff(err)
		}
	}
	f.Payload = make([]byte, length)
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		return Frame{}, cutOff(err)
	}
	for i := range f.Payload {
		f.Payload[i] ^= key[i%4]
	}
	return f, nil
}

// cutOff is the error of a connection that ends inside a frame.
func cutOff(err error) error {
	if err == io.EOF { //nolint:errorlint // io.ReadFull returns it as it is
		return io.ErrUnexpectedEOF
	}
	return err
}
