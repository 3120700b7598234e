package passon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire"
)

const (
	// answerTime is how long the home may take to answer a request for a websocket.
	answerTime = 15 * time.Second
	// writeTime is how long one write to a client may take.
	writeTime = 30 * time.Second
	// maxHead is how long the head of an answer may be.
	maxHead = 64 << 10
	// smallBuffer is what each direction of a connection has; while much is sent it is largeBuffer.
	smallBuffer = 4 << 10
	largeBuffer = 32 << 10
)

// switching is how the answer to a request for a websocket begins, if the home opens it.
const switching = "HTTP/1.1 101 "

// serve sends a request to the home and the answer to the client. A websocket is carried from then on, and serve returns before it
// ends.
func (p *Passing) serve(w http.ResponseWriter, r *http.Request, home net.Conn) {
	stop := context.AfterFunc(r.Context(), func() { _ = home.Close() })
	reader := bufio.NewReaderSize(home, smallBuffer)
	head, err := p.ask(r, home, reader)
	switch {
	case err != nil:
		_ = home.Close()
		unavailable(w)
	case !bytes.HasPrefix(head, []byte(switching)):
		defer home.Close()
		p.reply(w, r, io.MultiReader(bytes.NewReader(head), reader))
	case !stop(): // the client has gone
		_ = home.Close()
	default:
		if err := p.carry(w, home, head, reader); err != nil {
			_ = home.Close()
		}
	}
}

// ask sends a request without its body, which is empty, and returns the head of the answer as it is.
func (p *Passing) ask(r *http.Request, home net.Conn, reader *bufio.Reader) ([]byte, error) {
	out := r.Clone(r.Context())
	out.Body, out.ContentLength, out.TransferEncoding = nil, 0, nil
	if _, named := out.Header["User-Agent"]; !named {
		out.Header["User-Agent"] = []string{""} // or else another name is sent
	}
	if r.URL.Path == wire.PollPath {
		out.Close = true
		out.Header.Del("Connection")
	} else if err := home.SetDeadline(p.opts.Now().Add(answerTime)); err != nil {
		return nil, err
	}
	if err := out.Write(home); err != nil {
		return nil, err
	}
	return readHead(reader)
}

var errHead = errors.New("the head of an answer is too long")

// readHead reads up to the empty line.
func readHead(reader *bufio.Reader) (head []byte, err error) {
	for len(head) < maxHead {
		line, err := reader.ReadSlice('\n')
		head = append(head, line...)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if bytes.HasSuffix(head, []byte("\r\n\r\n")) {
			return head, nil
		}
	}
	return nil, errHead
}

// ofConnection are the headers that are about a connection, and not about what is answered.
var ofConnection = []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Trailer"}

// reply sends the answer of the home to the client.
func (p *Passing) reply(w http.ResponseWriter, r *http.Request, answer io.Reader) {
	said, err := http.ReadResponse(bufio.NewReaderSize(answer, smallBuffer), r)
	if err != nil {
		unavailable(w)
		return
	}
	defer said.Body.Close()
	for _, name := range ofConnection {
		said.Header.Del(name)
	}
	if r.ProtoMajor > 1 {
		said.Header.Del("Upgrade") // HTTP/2 knows no such header
	}
	release, ok := exchange.Hold(p.opts.Answers, r)
	defer release()
	if !ok {
		panic(http.ErrAbortHandler)
	}
	header := w.Header()
	for name, values := range said.Header {
		header[name] = values
	}
	w.WriteHeader(said.StatusCode)
	timed := timedWriter{w, http.NewResponseController(w), p.opts.Now}
	if _, err = io.Copy(timed, said.Body); err == nil {
		err = timed.within(timed.control.Flush)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // nobody may take a part for the whole
	}
}

// A timedWriter gives each write to a client its time. An answer may have much data, and take far longer.
type timedWriter struct {
	client  io.Writer
	control *http.ResponseController
	now     func() time.Time
}

// Write implements [io.Writer].
func (t timedWriter) Write(b []byte) (n int, err error) {
	err = t.within(func() error {
		n, err = t.client.Write(b)
		return err
	})
	return n, err
}

// within does what has its time, and lifts the deadline: HTTP/2 would end the request at it even if nothing is written then.
func (t timedWriter) within(do func() error) error {
	_ = t.control.SetWriteDeadline(t.now().Add(writeTime))
	defer func() { _ = t.control.SetWriteDeadline(time.Time{}) }()
	return do()
}

// A carrying is a websocket that is passed on.
type carrying struct{ client, home net.Conn }

func (c *carrying) close() {
	_ = c.home.Close()
	_ = c.client.Close()
}

var errClosed = errors.New("the server stops")

// carry takes the connection of the client over, and carries bytes both ways until either end closes. The head is the client's
// first, and what was read after it.
func (p *Passing) carry(w http.ResponseWriter, home net.Conn, head []byte, reader *bufio.Reader) error {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	outbox.EndWithPeer(conn) // the home cannot know: what it sends is taken here
	c := &carrying{client: conn, home: home}
	rest, _ := reader.Peek(reader.Buffered())
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	first, sent := append(head, rest...), bytes.Clone(early)
	if err = errors.Join(conn.SetDeadline(time.Time{}), home.SetDeadline(time.Time{})); err == nil {
		err = p.begin(c)
	}
	if err != nil {
		c.close()
		return err
	}
	go p.run(c, func() { p.copy(c.client, c.home, first) })
	go p.run(c, func() { p.copy(c.home, c.client, sent) })
	return nil
}

// begin counts a websocket, whose two directions Close waits for.
func (p *Passing) begin(c *carrying) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	p.open[c] = true
	p.carried.Add(2)
	return nil
}

// run carries one direction. When that ends, so does the other.
func (p *Passing) run(c *carrying, carry func()) {
	defer p.carried.Done()
	carry()
	c.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// copy carries what one end sends to the other, after some bytes that came before.
func (p *Passing) copy(to, from net.Conn, first []byte) {
	buffer := first
	n, err := len(first), error(nil)
	for {
		if n > 0 {
			_ = to.SetWriteDeadline(p.opts.Now().Add(writeTime))
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
		switch {
		case len(buffer) == smallBuffer && n == smallBuffer:
			buffer = make([]byte, largeBuffer)
		case len(buffer) != smallBuffer && n <= smallBuffer:
			buffer = make([]byte, smallBuffer)
		}
		n, err = from.Read(buffer)
	}
}
