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

// A Link is a websocket to a server, which may end at any time: what goes wrong is an
// error. What the server sends goes through Strict and a Conversation. One goroutine may
// read while another one sends.
type Link struct {
	conn   net.Conn
	strict *Strict

	mu   sync.Mutex
	talk Conversation
}

// A Refused is the answer of a server that does not upgrade.
type Refused struct {
	Status int
	Header http.Header
	Body   string
}

func (r *Refused) Error() string { return fmt.Sprintf("status %d: %s", r.Status, r.Body) }

// Connect makes a connection and upgrades it. The error is a Refused if the server
// answered with another status.
func Connect(d Dialing) (*Link, error) {
	conn, err := net.DialTimeout("tcp", d.Address, patience)
	if err != nil {
		return nil, err
	}
	if d.TLS != nil {
		conn = tls.Client(conn, d.TLS)
	}
	link, err := Upgrade(conn, d)
	if err != nil {
		conn.Close()
	}
	return link, err
}

// Upgrade upgrades a connection.
func Upgrade(conn net.Conn, d Dialing) (*Link, error) {
	l := &Link{conn: conn, talk: Conversation{TakesOver: d.TakesOver}}
	l.expectSoon()
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
	l.strict = NewStrict(src)
	return l, nil
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

func (l *Link) expectSoon() {
	_ = l.conn.SetReadDeadline(time.Now().Add(patience)) //nolint:forbidigo // the clock of the connection
}

// Next returns the next message. The error is a Violation, a Closed if the server has said
// why it ends, or that of the connection.
func (l *Link) Next() (string, error) {
	l.expectSoon()
	message, err := l.strict.Next()
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return message, l.talk.Got(message)
}

// Send sends a message as JavaScript does: in segments if it is long.
func (l *Link) Send(message string) error {
	l.note(message)
	var all []byte
	for _, text := range Segments(message) {
		all = Text(text).Append(all)
	}
	return l.Write(all)
}

// note has the conversation know of a message.
func (l *Link) note(message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.talk.Sent(message)
}

// Write sends bytes as they are.
func (l *Link) Write(all []byte) error {
	_, err := l.conn.Write(all)
	return err
}

// Unanswered returns the numbers of the requests without a reply.
func (l *Link) Unanswered() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.talk.Unanswered()
}

// Close ends the connection without a word.
func (l *Link) Close() { l.conn.Close() }

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
