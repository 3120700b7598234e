package wiretest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a client waits for the server before a test has failed.
const patience = 60 * time.Second

// Dialing says how a client connects. Only the address is needed.
type Dialing struct {
	Address string // host and port
	Target  string // "/.ws?v=5" unless given
	Host    string // of the Host header; the address unless given
	Header  http.Header
	TLS     *tls.Config // nil for plain TCP
	// TakesOver says that the connection takes over one by long polling.
	TakesOver bool
}

// A Client is a websocket to a server. What it is sent goes through Strict and a
// Conversation; the test fails at the first violation. One goroutine may
// read while another one sends.
type Client struct {
	t      testing.TB
	conn   net.Conn
	strict *Strict
	last   int64 // number of the last request

	mu   sync.Mutex
	talk Conversation
}

// Dial connects, and fails the test if the server does not answer as it must.
func Dial(t testing.TB, d Dialing) *Client {
	t.Helper()
	c, err := Try(t, d)
	if err != nil {
		t.Fatalf("dial %s: %v", d.Address, err)
	}
	return c
}

// A Refused is the answer of a server that does not upgrade.
type Refused struct {
	Status int
	Header http.Header
	Body   string
}

func (r *Refused) Error() string { return fmt.Sprintf("status %d: %s", r.Status, r.Body) }

// Try connects. The error is a Refused if the server answered with another status.
func Try(t testing.TB, d Dialing) (*Client, error) {
	conn, err := net.DialTimeout("tcp", d.Address, patience)
	if err != nil {
		return nil, err
	}
	if d.TLS != nil {
		conn = tls.Client(conn, d.TLS)
	}
	t.Cleanup(func() { conn.Close() })
	return Open(t, conn, d)
}

// Open upgrades a connection.
func Open(t testing.TB, conn net.Conn, d Dialing) (*Client, error) {
	c := &Client{t: t, conn: conn, talk: Conversation{TakesOver: d.TakesOver}}
	c.expectSoon()
	if _, err := io.WriteString(conn, d.request()); err != nil {
		return nil, err
	}
	src := bufio.NewReader(conn)
	head, err := readHead(src)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		answer, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(head), src)), nil)
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return nil, errors.Join(&Refused{answer.StatusCode, answer.Header, string(body)}, err)
	}
	if err := CheckAnswer(head); err != nil {
		return nil, err
	}
	c.strict = NewStrict(src)
	return c, nil
}

func (d Dialing) request() string {
	target, host := d.Target, d.Host
	if target == "" {
		target = "/.ws?v=5"
	}
	if host == "" {
		host = d.Address
	}
	var text strings.Builder
	text.WriteString("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
	_ = d.Header.Write(&text) // a Builder takes everything
	return text.String() + "\r\n"
}

// readHead reads up to the empty line.
func readHead(src *bufio.Reader) (string, error) {
	var head strings.Builder
	for {
		line, err := src.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" || head.Len() > 16<<10 {
			return head.String(), err
		}
	}
}

func (c *Client) expectSoon() {
	_ = c.conn.SetReadDeadline(time.Now().Add(patience)) //nolint:forbidigo // the clock of the connection
}

// Next returns the next message. The test fails at a violation, and when there is none.
func (c *Client) Next() string {
	c.t.Helper()
	message, err := c.NextOrEnd()
	if err != nil {
		c.t.Fatalf("the server has ended the connection: %v", err)
	}
	return message
}

// NextOrEnd returns the next message, or the error with which the connection ended: a Closed if
// the server has said why. The test fails at a violation.
func (c *Client) NextOrEnd() (string, error) {
	c.t.Helper()
	c.expectSoon()
	message, err := c.strict.Next()
	if err == nil {
		c.mu.Lock()
		err = c.talk.Got(message)
		c.mu.Unlock()
	}
	var violation *Violation
	if errors.As(err, &violation) {
		c.t.Fatal(err)
	}
	return message, err
}

// Expect fails the test unless the next messages are these.
func (c *Client) Expect(messages ...string) {
	c.t.Helper()
	for _, want := range messages {
		if got := c.Next(); got != want {
			c.t.Fatalf("the server sent\n%s\nwant\n%s", got, want)
		}
	}
}

// ExpectClose fails the test unless the server closes the connection with a code, after
// any messages.
func (c *Client) ExpectClose(code int) {
	c.t.Helper()
	for {
		_, err := c.NextOrEnd()
		var closed *Closed
		switch {
		case err == nil:
		case errors.As(err, &closed) && closed.Code == code:
			return
		default:
			c.t.Fatalf("the connection ended with %v, want code %d", err, code)
		}
	}
}

// Hello reads hello and returns the id of the session.
func (c *Client) Hello() string {
	c.t.Helper()
	message := parse(c.Next())
	d, _ := message.member("d").member("d").object()
	return d["s"].text()
}

// Send sends a message as JavaScript does: in segments if it is long.
func (c *Client) Send(message string) {
	c.t.Helper()
	if err := c.TrySend(message); err != nil {
		c.t.Fatalf("send to the server: %v", err)
	}
}

// TrySend is Send to a server that may be gone.
func (c *Client) TrySend(message string) error {
	c.mu.Lock()
	c.talk.Sent(message)
	c.mu.Unlock()
	var all []byte
	for _, text := range Segments(message) {
		all = Text(text).Append(all)
	}
	_, err := c.conn.Write(all)
	return err
}

// SendAs sends a message in frames that the test has made of it.
func (c *Client) SendAs(message string, frames ...Frame) {
	c.t.Helper()
	c.mu.Lock()
	c.talk.Sent(message)
	c.mu.Unlock()
	c.SendFrames(frames...)
}

// Segments returns the frames of a message as JavaScript cuts it. But for it, a character
// of two units stays whole.
func Segments(message string) []string {
	var list []string
	units, start := 0, 0
	for i, r := range message {
		size := 1
		if r > 0xffff {
			size = 2
		}
		if units+size > 16384 {
			list = append(list, message[start:i])
			units, start = 0, i
		}
		units += size
	}
	if list = append(list, message[start:]); len(list) == 1 {
		return list
	}
	return append([]string{strconv.Itoa(len(list))}, list...)
}

// Request sends a request with a body in JSON and returns its number, counted from 1.
func (c *Client) Request(action, body string) int64 {
	c.t.Helper()
	c.last++
	c.Send(fmt.Sprintf(`{"t":"d","d":{"r":%d,"a":%q,"b":%s}}`, c.last, action, body))
	return c.last
}

// Ask sends a request and returns what comes up to its reply: the other messages, and the
// reply's status and d.
func (c *Client) Ask(action, body string) (before []string, status, d string) {
	c.t.Helper()
	r := c.Request(action, body)
	for {
		message := c.Next()
		data := parse(message).member("d")
		if n, ok := data.member("r").integer(); !ok || n != r {
			before = append(before, message)
			continue
		}
		b := data.member("b")
		return before, b.member("s").text(), b.member("d").String()
	}
}

// TryAsk is Ask of a server that may be gone. It returns the status of the reply.
func (c *Client) TryAsk(action, body string) (status string, err error) {
	c.t.Helper()
	c.last++
	r := c.last
	if err := c.TrySend(fmt.Sprintf(`{"t":"d","d":{"r":%d,"a":%q,"b":%s}}`, r, action, body)); err != nil {
		return "", err
	}
	for {
		message, err := c.NextOrEnd()
		if err != nil {
			return "", err
		}
		data := parse(message).member("d")
		if n, ok := data.member("r").integer(); ok && n == r {
			return data.member("b").member("s").text(), nil
		}
	}
}

// Ping sends a websocket ping.
func (c *Client) Ping(payload string) {
	c.t.Helper()
	c.strict.Pinged()
	c.SendFrames(Frame{Op: OpPing, Masked: true, Payload: []byte(payload)})
}

// SendFrames sends frames as they are. A Conversation knows nothing of them.
func (c *Client) SendFrames(frames ...Frame) {
	c.t.Helper()
	var all []byte
	for _, f := range frames {
		all = f.Append(all)
	}
	c.Write(all)
}

// Write sends bytes as they are.
func (c *Client) Write(all []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(all); err != nil {
		c.t.Fatalf("send to the server: %v", err)
	}
}

// Unanswered returns the numbers of the requests without a reply.
func (c *Client) Unanswered() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.talk.Unanswered()
}

// Conn returns the connection, to be broken or left unread.
func (c *Client) Conn() net.Conn { return c.conn }

// Close sends a close frame with a code.
func (c *Client) Close(code int) {
	c.t.Helper()
	c.SendFrames(Frame{Op: OpClose, Masked: true, Payload: []byte{byte(code >> 8), byte(code)}})
}
