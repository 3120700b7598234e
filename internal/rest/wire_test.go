package rest_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A wire is one connection of HTTP/1.1 to a server.
type wire struct {
	t testing.TB
	*tls.Conn
	in *bufio.Reader
}

// patience is how long a test waits for what should come at once, on a machine
// that has much else to do.
const patience = 3 * time.Minute

func (s *server) dial() *wire {
	s.t.Helper()
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	w := &wire{s.t, conn, bufio.NewReader(conn)}
	w.extend()
	return w
}

// extend gives the connection time for one more exchange.
func (w *wire) extend() {
	if err := w.SetDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
}

// send writes a request as wireText makes it.
func (w *wire) send(text string) {
	w.t.Helper()
	w.extend()
	if _, err := io.WriteString(w.Conn, wireText(text)); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// wireText returns a text in which newlines are CR LF up to the first empty
// line.
func wireText(text string) string {
	head, body, isWhole := strings.Cut(text, "\n\n")
	head = strings.ReplaceAll(head, "\n", "\r\n")
	if isWhole {
		head += "\r\n\r\n"
	}
	return head + body
}

// head reads the head of an answer.
func (w *wire) head() string {
	w.t.Helper()
	var head strings.Builder
	for {
		line, err := w.in.ReadString('\n')
		head.WriteString(line)
		if err != nil {
			w.t.Fatalf("read a head after %q: %v", head.String(), err)
		}
		if line == "\r\n" {
			return head.String()
		}
	}
}

// receive reads an answer. A request with HEAD is answered without a body.
func (w *wire) receive(method string) (head, body string) {
	w.t.Helper()
	head = w.head()
	status := head[len("HTTP/1.1 "):][:3]
	if method == "HEAD" || status == "204" || status == "304" || status[0] == '1' {
		return head, ""
	}
	from := io.Reader(w.in)
	if length := header(head, "Content-Length"); length != "" {
		n, err := strconv.Atoi(length)
		if err != nil {
			w.t.Fatal(err)
		}
		from = io.LimitReader(w.in, int64(n))
	} else if header(head, "Transfer-Encoding") == "chunked" {
		from = httputil.NewChunkedReader(w.in)
	}
	text, err := io.ReadAll(from)
	if err != nil {
		w.t.Fatalf("read the body after %q: %v", head, err)
	}
	if header(head, "Transfer-Encoding") == "chunked" {
		if _, err := w.in.Discard(2); err != nil { // the end of the last chunk
			w.t.Fatal(err)
		}
	}
	return head, string(text)
}

// ask sends a request and returns the status and the body of its answer.
func (w *wire) ask(text string) string {
	w.t.Helper()
	w.send(text)
	method, _, _ := strings.Cut(text, " ")
	head, body := w.receive(method)
	return strings.TrimSpace(head[len("HTTP/1.1 "):][:3] + " " + body)
}

// isClosed reports whether the server has ended the connection. It waits for
// that, so it is for cases in which either is known to come: bytes or the end.
func (w *wire) isClosed() bool {
	w.t.Helper()
	_, err := w.in.ReadByte()
	if err == nil {
		w.t.Fatal("there are bytes after the answer")
	}
	return errors.Is(err, io.EOF)
}

// header returns a header of a head in its exact spelling, empty if it is not
// there.
func header(head, name string) string {
	_, rest, ok := strings.Cut(head, "\r\n"+name+": ")
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}
