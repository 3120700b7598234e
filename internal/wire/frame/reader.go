package frame

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

const (
	// MaxMessage is the most bytes of a message from a client.
	MaxMessage = 16 << 20
	// maxSegment is the most bytes of one segment.
	maxSegment = 64 << 10
	// maxCount is the most segments that a client may announce: those of MaxMessage,
	// with some to spare.
	maxCount = 1100
	// readerBytes is the buffer that a connection has for as long as it lives. Nearly
	// all that SDKs send fits into it.
	readerBytes = 512
)

// ReaderOptions say what a Reader needs beside the connection.
type ReaderOptions struct {
	// Buffered is what was read from the connection before. It comes first.
	Buffered []byte
	// Budget bounds the memory of all messages that are being read; nil for no bound.
	Budget Budget
	// Ping is called for each ping, by the goroutine that calls Next. It is to be
	// answered with AppendPong. The payload may be used during the call only.
	Ping func(payload []byte)
}

// A Reader returns the messages that a client sends. It sends nothing itself. Use it by
// one goroutine.
type Reader struct {
	src  *bufio.Reader
	ping func(payload []byte)
	held held // the message so far, if it is not in src
	// missing is the number of segments that the message still needs.
	missing int
	// surplus says that the last message was whole one segment before its announced
	// end: see isWhole.
	surplus bool
	err     error // what ended it
}

// NewReader returns a Reader of what comes from a connection.
func NewReader(conn io.Reader, opts ReaderOptions) *Reader {
	if len(opts.Buffered) > 0 {
		conn = io.MultiReader(bytes.NewReader(opts.Buffered), conn)
	}
	r := &Reader{src: bufio.NewReaderSize(conn, readerBytes), ping: opts.Ping}
	r.held.budget = opts.Budget
	return r
}

// Next returns the next message. It is valid UTF-8, at least one byte and at most
// MaxMessage long, and may be used, and changed, until the next call of Next or Close.
//
// The error is an Error if the client does not keep to the protocol, a CloseError if it
// has closed the connection, io.EOF if the connection ends between two messages, or
// what the connection said. After it Next returns the same error again: also a
// deadline cannot be tried again, since part of a frame may be lost.
func (r *Reader) Next() ([]byte, error) {
	r.held.free()
	for r.err == nil {
		text, err := r.text()
		if err != nil {
			r.fail(err)
			break
		}
		message, err := r.join(text)
		if err == nil && message != nil && !utf8.Valid(message) {
			err = &Error{CodeText, "a message is not UTF-8"}
		}
		if err != nil {
			r.fail(err)
			break
		}
		if message != nil {
			return message, nil
		}
	}
	return nil, r.err
}

// Partial returns how many bytes are held of a message whose end has not come: while it is
// not 0, the client owes the rest. The connection's Read may ask for it.
func (r *Reader) Partial() int { return len(r.held.bytes) }

// Close gives back the memory of the last message, and of one that is not complete.
func (r *Reader) Close() { r.fail(io.ErrClosedPipe) }

func (r *Reader) fail(err error) {
	r.held.free()
	if r.err == nil {
		r.err = err
	}
}

// join decides what the text of a frame is. It returns the message that it completes,
// nil if there is none.
func (r *Reader) join(text []byte) ([]byte, error) {
	if r.missing > 0 {
		r.missing--
		r.surplus = r.missing == 1 && isWhole(r.held.bytes)
		if r.missing > 0 && !r.surplus {
			return nil, nil
		}
		r.missing = 0
		if len(r.held.bytes) == 0 {
			return nil, errEmpty
		}
		return r.held.bytes, nil
	}
	count, isCount, err := parseCount(text)
	surplus := r.surplus
	r.surplus = false
	switch {
	case err != nil:
		return nil, err
	case isCount:
		r.missing = count // 0 is a keep-alive
		r.held.free()
		return nil, nil
	case surplus && len(bytes.TrimSpace(text)) == 0:
		r.held.free()
		return nil, nil
	case len(text) == 0:
		return nil, errEmpty
	}
	return text, nil
}

var errEmpty = &Error{CodeData, "a message is empty"}

// parseCount reads the number of segments, if the text is one.
func parseCount(text []byte) (count int, isCount bool, err error) {
	digits := bytes.TrimPrefix(text, []byte{'-'})
	for _, b := range digits {
		if b < '0' || b > '9' {
			return 0, false, nil
		}
		count = min(count*10+int(b-'0'), maxCount+1)
	}
	switch {
	case len(digits) == 0:
		return 0, false, nil
	case len(digits) < len(text) || count > maxCount:
		return 0, false, &Error{CodeTooBig, "a message of so many segments is not read"}
	}
	return count, true, nil
}

// isWhole reports whether a text from the C++ SDK is a message already, though one more
// segment was announced. That SDK cuts at 16,384 bytes, and announces one segment too many
// if the length is a multiple of that. Nothing but space can come after a whole object,
// so it is right to not wait.
func isWhole(text []byte) bool {
	const cut = 16384
	if len(text) == 0 || len(text)%cut != 0 || text[0] != '{' || text[len(text)-1] != '}' {
		return false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i == len(text)-1
			}
		case '"':
			i = stringEnd(text, i+1)
		}
	}
	return false
}

// stringEnd returns where the quote is that ends a JSON string.
func stringEnd(text []byte, i int) int {
	for ; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// text returns the text of the next data frame, of all its fragments. It is in src or at the
// end of held.
func (r *Reader) text() ([]byte, error) {
	header, err := r.dataHeader(ws.OpText)
	if err != nil {
		return nil, err
	}
	if r.missing == 0 && header.Fin && header.Length <= readerBytes {
		return r.short(header)
	}
	start := len(r.held.bytes)
	for {
		if err := r.hold(header, start); err != nil {
			return nil, err
		}
		if header.Fin {
			return r.held.bytes[start:], nil
		}
		if header, err = r.dataHeader(ws.OpContinuation); err != nil {
			return nil, err
		}
	}
}

// short returns the payload of a short frame where it is, in the buffer of src.
func (r *Reader) short(header ws.Header) ([]byte, error) {
	payload, err := r.src.Peek(int(header.Length))
	if err != nil {
		return nil, unexpected(err)
	}
	ws.Cipher(payload, header.Mask, 0)
	_, err = r.src.Discard(len(payload)) // it stays in the buffer until src is read again
	return payload, err
}

// hold reads the payload of a frame, or fragment, of the text that begins at start.
func (r *Reader) hold(header ws.Header, start int) error {
	// A client may announce the largest number there is, to which nothing can be added.
	if before := int64(len(r.held.bytes) - start); r.missing > 0 && header.Length > maxSegment-before {
		return &Error{CodeTooBig, "a segment is too large"}
	}
	if header.Length > MaxMessage-int64(len(r.held.bytes)) {
		return &Error{CodeTooBig, "a message is too large"}
	}
	for read := 0; int64(read) < header.Length; {
		room, err := r.held.room(int(header.Length) - read)
		if err != nil {
			return err
		}
		n, err := io.ReadFull(r.src, room)
		if err != nil {
			return unexpected(err)
		}
		ws.Cipher(room, header.Mask, read)
		read += n
	}
	return nil
}

// unexpected is the error of a connection that ends inside a message.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
