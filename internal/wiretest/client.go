package wiretest

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

// A Client is a Link of a test, which fails at the first violation.
type Client struct {
	t    testing.TB
	link *Link
	last int64 // number of the last request
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

// Try connects. The error is a Refused if the server answered with another status.
func Try(t testing.TB, d Dialing) (*Client, error) {
	link, err := Connect(d)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { link.Close() })
	return &Client{t: t, link: link}, nil
}

// Open upgrades a connection, which is closed by whoever has made it.
func Open(t testing.TB, conn net.Conn, d Dialing) (*Client, error) {
	link, err := Upgrade(conn, d)
	return &Client{t: t, link: link}, err
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
	message, err := c.link.Next()
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
	c.sent(c.link.Send(message))
}

// TrySend is Send to a server that may be gone.
func (c *Client) TrySend(message string) error {
	c.t.Helper()
	return c.link.Send(message)
}

// SendAs sends a message in frames that the test has made of it.
func (c *Client) SendAs(message string, frames ...Frame) {
	c.t.Helper()
	c.link.note(message)
	c.SendFrames(frames...)
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
	c.link.strict.Pinged()
	c.SendFrames(Frame{Op: OpPing, Masked: true, Payload: []byte(payload)})
}

// Pending returns how many pings were not answered.
func (c *Client) Pending() int { return int(c.link.strict.pinged.Load()) }

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
	c.sent(c.link.Write(all))
}

func (c *Client) sent(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("send to the server: %v", err)
	}
}

// Unanswered returns the numbers of the requests without a reply.
func (c *Client) Unanswered() []int64 {
	return c.link.Unanswered()
}

// Conn returns the connection, to be broken or left unread.
func (c *Client) Conn() net.Conn { return c.link.conn }

// Close sends a close frame with a code.
func (c *Client) Close(code int) {
	c.t.Helper()
	c.SendFrames(Frame{Op: OpClose, Masked: true, Payload: []byte{byte(code >> 8), byte(code)}})
}
