package lane

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// outBytes is how much of an answer is gathered before it is sent: what a record of
// TLS holds.
const outBytes = 16 << 10

// outs holds the memory that answers are gathered in.
var outs = sync.Pool{New: func() any { b := make([]byte, 0, outBytes); return &b }}

// A response is the http.ResponseWriter of a connection. Other than that of net/http
// it does not guess a Content-Type, and sends no announcements (1xx).
//
// Without a Content-Length, an answer is gathered until it is over, so that its
// length can be told, or until there is too much of it, which is then sent in
// chunks.
type response struct {
	conn    *conn
	header  http.Header
	status  int     // 0 until it is known
	out     *[]byte // what was not sent yet
	begun   bool    // the head is in out, or was sent
	chunked bool
	length  int64 // of the body, if begun and not chunked
	written int64 // of the body
	hasty   bool  // the handler has set a deadline of its own
	last    bool  // the connection ends with it
	done    bool  // all of it was sent
	failed  error // of sending: what comes behind it must not be sent either
}

func (w *response) reset(c *conn) {
	header := w.header
	if header == nil {
		header = make(http.Header, 16)
	}
	clear(header)
	*w = response{conn: c, header: header, out: outs.Get().(*[]byte)}
}

// release gives the memory back.
func (w *response) release() {
	if cap(*w.out) <= 2*outBytes {
		*w.out = (*w.out)[:0]
		outs.Put(w.out)
	}
	w.out = nil
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	w.status = status
	if _, known := w.header["Content-Length"]; known || !w.hasBody() {
		w.begin()
	}
}

// hasBody reports whether an answer of this status has a body.
func (w *response) hasBody() bool {
	return w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) { return write(w, p) }

// WriteString spares io.WriteString a copy.
func (w *response) WriteString(s string) (int, error) { return write(w, s) }

func write[T string | []byte](w *response, p T) (int, error) {
	w.WriteHeader(http.StatusOK)
	if len(p) == 0 {
		return 0, nil
	}
	if !w.hasBody() {
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p)) // also of what cannot be sent: the answer is wrong then
	if w.begun && !w.chunked && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if !w.begun && len(*w.out)+len(p) > outBytes {
		if err := w.startChunks(); err != nil {
			return 0, err
		}
	}
	if w.chunked {
		return len(p), chunk(w, p)
	}
	return len(p), gather(w, p)
}

// gather appends to what is to be sent, and sends it as often as it is full.
func gather[T string | []byte](w *response, p T) error {
	for len(p) > 0 {
		if len(*w.out) >= outBytes {
			if err := w.send(); err != nil {
				return err
			}
		}
		n := min(len(p), outBytes-len(*w.out))
		*w.out = append(*w.out, p[:n]...)
		p = p[n:]
	}
	return nil
}

// startChunks begins an answer that is too long to wait for its end.
func (w *response) startChunks() error {
	gathered := slices.Clone(*w.out)
	*w.out = (*w.out)[:0]
	w.chunked = true
	w.begin()
	if len(gathered) == 0 {
		return nil
	}
	return chunk(w, gathered)
}

func chunk[T string | []byte](w *response, p T) error {
	*w.out = strconv.AppendInt(*w.out, int64(len(p)), 16)
	*w.out = append(*w.out, "\r\n"...)
	if err := gather(w, p); err != nil {
		return err
	}
	*w.out = append(*w.out, "\r\n"...)
	return nil
}

// send sends what was gathered. After a failure it sends nothing more: a client that
// takes its time and then reads again would take what comes next for what it missed.
func (w *response) send() error {
	c := w.conn
	if w.failed != nil || len(*w.out) == 0 {
		return w.failed
	}
	if !w.hasty {
		deadline, ok := c.writing.next(c.lane.opts.Now(), c.lane.opts.Write)
		if ok {
			w.failed = c.raw.SetWriteDeadline(deadline)
		}
	}
	if w.failed == nil {
		_, w.failed = c.raw.Write(*w.out)
	}
	*w.out = (*w.out)[:0]
	return w.failed
}

var errLength = errors.New("the answer is shorter or longer than it was said to be")

// finish sends what is left of the answer.
func (w *response) finish() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case !w.begun:
		w.beginGathered()
	case w.chunked:
		*w.out = append(*w.out, "0\r\n\r\n"...)
	}
	if err := w.send(); err != nil {
		return err
	}
	if w.hasBody() && !w.chunked && w.written != w.length {
		return errLength
	}
	w.done = true
	return nil
}

// beginGathered puts the head in front of a body that is there as a whole.
func (w *response) beginGathered() {
	gathered := *w.out
	var small [512]byte
	body := append(small[:0], gathered...)
	*w.out = gathered[:0]
	w.header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.begin()
	*w.out = append(*w.out, body...)
}

// begin puts the head into out.
func (w *response) begin() {
	w.begun = true
	out := *w.out
	if w.status == http.StatusOK {
		out = append(out, "HTTP/1.1 200 OK\r\n"...)
	} else {
		out = strconv.AppendInt(append(out, "HTTP/1.1 "...), int64(w.status), 10)
		out = append(append(append(out, ' '), http.StatusText(w.status)...), "\r\n"...)
	}
	if w.chunked {
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	}
	var array [maxHeaders]field
	dated := false
	for _, f := range sorted(array[:0], w.header) {
		dated = dated || f.name == "Date"
		for _, value := range f.values {
			out = w.appendHeader(out, f.name, value)
		}
	}
	if !w.last && w.conn.request.body.left > unreadBytes {
		w.last = true // nobody will read all of that
		out = append(out, "Connection: close\r\n"...)
	}
	if !dated {
		out = append(append(append(out, "Date: "...), w.conn.lane.dateText()...), "\r\n"...)
	}
	*w.out = append(out, "\r\n"...)
}

// A field is a header with its values.
type field struct {
	name   string
	values []string
}

// sorted appends the headers of an answer in the order of their names. There are about ten, for which
// the simplest way is the fastest.
func sorted(list []field, header http.Header) []field {
	for name, values := range header {
		i := len(list)
		list = append(list, field{})
		for ; i > 0 && list[i-1].name > name; i-- {
			list[i] = list[i-1]
		}
		list[i] = field{name, values}
	}
	return list
}

// lines makes one line of a value, as net/http does.
var lines = strings.NewReplacer("\n", " ", "\r", " ")

// appendHeader appends a header, and notes what it says about the answer.
func (w *response) appendHeader(out []byte, name, value string) []byte {
	switch name {
	case "Content-Type":
		if w.status == http.StatusNotModified {
			return out
		}
	case "Content-Length":
		if !w.hasBody() || w.chunked {
			return out
		}
		w.length, _ = strconv.ParseInt(value, 10, 64) // 0 if it is wrong: nothing can be written then
	case "Connection":
		w.last = w.last || strings.EqualFold(value, "close")
	}
	if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 {
		value = lines.Replace(value)
	}
	out = append(append(out, name...), ": "...)
	return append(append(out, value...), "\r\n"...)
}

// FlushError is what http.ResponseController calls.
func (w *response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if !w.begun {
		if err := w.startChunks(); err != nil {
			return err
		}
	}
	return w.send()
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// EnableFullDuplex is what http.ResponseController calls: an answer may always be
// sent before the body was read.
func (w *response) EnableFullDuplex() error { return nil }

// SetReadDeadline is what http.ResponseController calls. Of a body that is there as
// a whole nothing needs to be waited for.
func (w *response) SetReadDeadline(deadline time.Time) error {
	c := w.conn
	b := &c.request.body
	if b.hasty = !deadline.IsZero() && !b.isHere(); !b.hasty {
		return nil // there is a new one before anything is waited for
	}
	c.reading.until = time.Time{}
	return c.raw.SetReadDeadline(deadline)
}

// SetWriteDeadline is what http.ResponseController calls. Every write has a deadline
// here, so that only one that is much earlier makes a difference.
func (w *response) SetWriteDeadline(deadline time.Time) error {
	c := w.conn
	if deadline.IsZero() || deadline.Sub(c.lane.opts.Now()) > c.lane.opts.Write/4*3 {
		w.hasty = false
		return nil
	}
	w.hasty = true
	c.writing.until = time.Time{}
	return c.raw.SetWriteDeadline(deadline)
}

// Hijack implements http.Hijacker: connections are handed over before a handler
// sees a request to take them.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// A date is the text of one second.
type date struct {
	second int64
	text   string
}

// dateText returns the value of the Date header.
func (l *Lane) dateText() string {
	now := l.opts.Now()
	if d := l.date.Load(); d != nil && d.second == now.Unix() {
		return d.text
	}
	d := &date{second: now.Unix(), text: now.UTC().Format(http.TimeFormat)}
	l.date.Store(d)
	return d.text
}
