package frame

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// dataHeader returns the header of the next data frame, which must have the given code.
// Control frames before it are taken care of.
func (r *Reader) dataHeader(want ws.OpCode) (ws.Header, error) {
	for {
		header, err := r.header(want)
		if err != nil || !header.OpCode.IsControl() {
			return header, err
		}
		if err := r.control(header); err != nil {
			return header, err
		}
	}
}

// header reads and checks the header of any frame.
func (r *Reader) header(want ws.OpCode) (ws.Header, error) {
	if _, err := r.src.Peek(1); err != nil {
		if want == ws.OpContinuation || r.missing > 0 {
			err = unexpected(err)
		}
		return ws.Header{}, err
	}
	header, err := ws.ReadHeader(r.src)
	switch {
	case errors.Is(err, ws.ErrHeaderLengthMSB):
		return header, protocolError("a frame has a negative length")
	case err != nil:
		return header, unexpected(err)
	case header.Rsv != 0:
		return header, protocolError("a frame has reserved bits")
	case !header.Masked:
		return header, protocolError("a frame is not masked")
	case header.OpCode.IsReserved():
		return header, protocolError("a frame is of an unknown kind")
	case header.OpCode.IsControl():
		if header.Length > maxControl || !header.Fin {
			return header, protocolError("a control frame is too long or fragmented")
		}
	case header.OpCode == ws.OpBinary && want == ws.OpText:
		return header, &Error{CodeData, "binary frames are not understood"}
	case header.OpCode != want:
		return header, protocolError("fragments are out of order")
	}
	return header, nil
}

// control takes care of a control frame.
func (r *Reader) control(header ws.Header) error {
	payload, err := r.short(header)
	switch {
	case err != nil:
		return err
	case header.OpCode == ws.OpClose:
		return closed(payload)
	case header.OpCode == ws.OpPing && r.ping != nil:
		r.ping(payload)
	}
	return nil
}

// closed returns the error that stands for a close frame.
func closed(payload []byte) error {
	if len(payload) == 0 {
		return &CloseError{Code: codeNone}
	}
	if len(payload) == 1 {
		return protocolError("a close frame has half a code")
	}
	code, reason := binary.BigEndian.Uint16(payload), payload[2:]
	switch {
	case !isCloseCode(code):
		return protocolError("a close frame has a code that may not be sent")
	case !utf8.Valid(reason):
		return &Error{CodeText, "the reason of a close frame is not UTF-8"}
	}
	return &CloseError{Code: int(code), Reason: string(reason)}
}

// isCloseCode reports whether a client may send the code.
func isCloseCode(code uint16) bool {
	switch {
	case code < 1000, code >= 5000:
		return false
	case code < 3000:
		return code <= 1003 || code >= 1007 && code <= 1014
	}
	return true
}

func protocolError(reason string) error { return &Error{CodeProtocol, reason} }
