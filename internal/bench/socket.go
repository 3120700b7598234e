package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// A socket is a websocket as an SDK opens one. It knows only what our servers send,
// so that it takes little of the machine.
type socket struct {
	net.Conn
	reader *bufio.Reader
	out    []byte
	asked  int64 // number of the last request
}

var errSocket = errors.New("the server does not speak as to an SDK")

// openSocket opens a websocket, and returns it when the server has said hello.
func openSocket(ctx context.Context, addr string, config *tls.Config) (*socket, error) {
	c, err := dial(ctx, addr, config)
	if err != nil {
		return nil, err
	}
	const readerBytes = 512 // there may be ten thousand
	s := &socket{Conn: c, reader: bufio.NewReaderSize(c, readerBytes)}
	if err := s.greet(addr); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

func (s *socket) greet(addr string) error {
	if _, err := fmt.Fprintf(s, "GET /.ws?v=5&ns=default HTTP/1.1\r\nHost: %s\r\nUser-Agent: Firebase/5/12.0.0/bench/go\r\n"+
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", addr); err != nil {
		return err
	}
	for first := true; ; first = false {
		line, err := s.reader.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 101 ")):
			return fmt.Errorf("the upgrade is answered %q", bytes.TrimSpace(line))
		case len(bytes.TrimSpace(line)) == 0:
			hello, err := s.read()
			if err == nil && !bytes.HasPrefix(hello, []byte(`{"t":"c"`)) {
				err = fmt.Errorf("%w: %q instead of a hello", errSocket, hello)
			}
			return err
		}
	}
}

// The first two bytes of frames, and what the second says of the length.
const (
	textFrame  = 0x81
	closeFrame = 0x88
	masked     = 0x80
	length16   = 126
	length64   = 127
)

// ask sends a request: an action, and its body from a format.
func (s *socket) ask(action, format string, args ...any) error {
	const room = 8 // for the header and the mask
	s.asked++
	b := append(s.out[:0], make([]byte, room)...)
	b = fmt.Appendf(b, `{"t":"d","d":{"r":%d,"a":%q,"b":`, s.asked, action)
	b = append(fmt.Appendf(b, format, args...), "}}"...)
	s.out = b
	// A mask of zeros is one like others to the server, and leaves the text as it is.
	length, start := len(b)-room, 2
	b[2], b[3] = textFrame, masked|length16
	if length < length16 {
		b[2], b[3] = textFrame, masked|byte(length)
	} else {
		start = 0
		b[0], b[1] = textFrame, masked|length16
		binary.BigEndian.PutUint16(b[2:], uint16(length))
	}
	_, err := s.Write(b[start:])
	return err
}

// read reads a message and returns it, or its beginning. It is valid until the next
// read.
func (s *socket) read() ([]byte, error) {
	head, err := s.take(2)
	if err != nil {
		return nil, err
	}
	if head[0] == closeFrame {
		return nil, errors.New("the server has closed the websocket")
	}
	if head[0] != textFrame || head[1]&masked != 0 {
		return nil, fmt.Errorf("%w: a frame that begins with %x", errSocket, head)
	}
	length := int(head[1])
	switch length {
	case length16:
		if head, err = s.take(2); err == nil {
			length = int(binary.BigEndian.Uint16(head))
		}
	case length64:
		if head, err = s.take(8); err == nil {
			length = int(binary.BigEndian.Uint64(head))
		}
	}
	if err != nil {
		return nil, err
	}
	if length <= s.reader.Size() {
		return s.take(length)
	}
	beginning, err := s.reader.Peek(s.reader.Size())
	if err != nil {
		return nil, err
	}
	beginning = bytes.Clone(beginning)
	_, err = io.CopyN(io.Discard, s.reader, int64(length))
	return beginning, err
}

// take reads so many bytes, which are valid until the next read.
func (s *socket) take(n int) ([]byte, error) {
	b, err := s.reader.Peek(n)
	if err != nil {
		return nil, err
	}
	_, err = s.reader.Discard(n)
	return b, err
}

// reply reads messages up to an answer, and returns how many events came before it.
func (s *socket) reply() (events int, err error) {
	for {
		message, err := s.read()
		if err != nil {
			return events, err
		}
		if isReply(message) {
			if !bytes.Contains(message, []byte(`"s":"ok"`)) {
				return events, fmt.Errorf("a request is answered %s", message)
			}
			return events, nil
		}
		events++
	}
}

func isReply(message []byte) bool { return bytes.HasPrefix(message, []byte(`{"t":"d","d":{"r":`)) }
