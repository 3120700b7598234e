package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// A request is what is sent. Its slices are used again for the next one.
type request struct {
	who    int // the number of its sender
	method string
	target []byte // without the part that the side puts before it
	body   []byte
}

// set fills the request.
func (r *request) set(method, format string, args ...any) {
	r.method = method
	r.target = fmt.Appendf(r.target[:0], format, args...)
	r.body = r.body[:0]
}

// An answer is what came back. The body is kept only if that was asked for.
type answer struct {
	status int
	bytes  int64
	body   []byte
}

// A conn is a connection that carries one HTTP/1.1 request after the other. It
// knows only what our servers send, so that it takes little of the machine.
type conn struct {
	net.Conn
	credential
	reader *bufio.Reader
	out    []byte
}

// A credential is what every request of a sender carries: a parameter, or headers,
// each with its line end.
type credential struct{ parameter, headers string }

func newConn(c net.Conn, with credential) *conn {
	return &conn{Conn: c, credential: with, reader: bufio.NewReaderSize(c, 16<<10)}
}

// dial opens a connection, with TLS unless config is nil.
func dial(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
}

// open opens a connection to a side.
func (s *side) open(ctx context.Context) (*conn, error) {
	c, err := dial(ctx, s.addr, s.tls)
	if err != nil {
		return nil, err
	}
	return newConn(c, s.credentialOf(0)), nil
}

// do sends a request and reads the answer.
func (c *conn) do(s *side, r *request, keep bool) (answer, error) {
	b := append(c.out[:0], r.method...)
	b = append(b, ' ')
	b = append(b, s.prefix...)
	b = append(b, r.target...)
	if c.parameter != "" {
		separator := byte('?')
		if bytes.IndexByte(r.target, '?') >= 0 {
			separator = '&'
		}
		b = append(append(b, separator), c.parameter...)
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, s.addr...)
	b = append(b, "\r\n"...)
	b = append(b, c.headers...)
	if r.method != "GET" && r.method != "DELETE" {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(r.body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	const largeBody = 64 << 10 // from here a second write costs less than a copy
	if len(r.body) <= largeBody {
		b = append(b, r.body...)
	}
	c.out = b
	if _, err := c.Write(b); err != nil {
		return answer{}, err
	}
	if len(r.body) > largeBody {
		if _, err := c.Write(r.body); err != nil {
			return answer{}, err
		}
	}
	return c.read(keep)
}

var errAnswer = errors.New("the answer is no HTTP/1.1")

// read reads an answer.
func (c *conn) read(keep bool) (answer, error) {
	line, err := c.line()
	if err != nil {
		return answer{}, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return answer{}, errAnswer
	}
	var a answer
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return a, errAnswer
	}
	length, err := c.readHeaders()
	if err != nil {
		return a, err
	}
	var kept *bytes.Buffer
	into := io.Discard
	if keep || a.status >= 300 {
		kept = &bytes.Buffer{}
		into = kept
	}
	switch {
	case a.status == 204 || a.status == 304:
	case length < 0:
		a.bytes, err = c.chunks(into)
	default:
		a.bytes, err = io.CopyN(into, c.reader, length)
	}
	if kept != nil {
		a.body = kept.Bytes()
	}
	return a, err
}

// line reads a line without its end. It is valid until the next read.
func (c *conn) line() ([]byte, error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// readHeaders reads the headers and returns the length of the body, -1 if it comes in
// chunks.
func (c *conn) readHeaders() (length int64, err error) {
	for {
		line, err := c.line()
		if err != nil || len(line) == 0 {
			return length, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64); err != nil {
				return 0, errAnswer
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			length = -1
		}
	}
}

// chunks reads a body that comes in chunks.
func (c *conn) chunks(into io.Writer) (total int64, err error) {
	for {
		line, err := c.line()
		if err != nil {
			return total, err
		}
		size, err := strconv.ParseInt(string(line), 16, 64)
		if err != nil {
			return total, errAnswer
		}
		n, err := io.CopyN(into, c.reader, size)
		total += n
		if err != nil {
			return total, err
		}
		if _, err := c.line(); err != nil || size == 0 {
			return total, err
		}
	}
}
