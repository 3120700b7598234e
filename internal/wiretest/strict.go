package wiretest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// A Violation is something that a server must not send.
type Violation struct{ Text string }

func (v *Violation) Error() string { return "the server must not send this: " + v.Text }

func violation(format string, args ...any) error { return &Violation{fmt.Sprintf(format, args...)} }

// A Closed is the server's close frame.
type Closed struct {
	Code   int // 0 if there is none
	Reason string
}

func (c *Closed) Error() string { return fmt.Sprintf("closed by the server: %d %s", c.Code, c.Reason) }

// Strict reads the messages of a server, and fails on any frame that one of the SDKs
// cannot read. Use it by one goroutine.
type Strict struct {
	src    *bufio.Reader
	pinged atomic.Int64 // pings that are not answered
	closed bool
}

// NewStrict returns a reader of what a server sends after the upgrade.
func NewStrict(src io.Reader) *Strict { return &Strict{src: bufio.NewReader(src)} }

// Pinged notes that the client has sent a ping. Any goroutine may call it.
func (s *Strict) Pinged() { s.pinged.Add(1) }

// Next returns the next message. The error is a Violation, a Closed, or that of the
// connection.
func (s *Strict) Next() (string, error) {
	text, err := s.text()
	if err != nil {
		return "", err
	}
	count, isCount, err := readCount(text)
	if err != nil {
		return "", err
	}
	if !isCount {
		return text, nil
	}
	var message strings.Builder
	for i := range count {
		segment, err := s.text()
		if err != nil {
			return "", fmt.Errorf("segment %d of %d: %w", i+1, count, err)
		}
		message.WriteString(segment)
	}
	return message.String(), nil
}

// readCount tells what JavaScript takes for a number of segments.
func readCount(text string) (count int, isCount bool, err error) {
	number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case strings.TrimSpace(text) == "" || err == nil && number == 0:
		return 0, false, violation("the frame %q: JavaScript takes it for a count of 0 and is deaf from then on", text)
	case err != nil:
		return 0, false, nil
	case !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(text):
		return 0, false, violation("the count %q", text)
	case len(text) > 4:
		return 0, false, violation("the count %s: iOS reads four characters of it", text)
	}
	return int(number), true, nil
}

// text returns the payload of the next text frame.
func (s *Strict) text() (string, error) {
	for {
		f, err := ReadFrame(s.src)
		if err != nil {
			return "", err
		}
		if err := s.check(f); err != nil {
			return "", err
		}
		switch f.Op {
		case OpText:
			return string(f.Payload), nil
		case OpClose:
			s.closed = true
			return "", readClose(f.Payload)
		}
	}
}

// check holds a frame to what all SDKs read.
func (s *Strict) check(f Frame) error {
	switch {
	case s.closed:
		return violation("a frame after the close frame")
	case f.Masked:
		return violation("a masked frame")
	case f.Reserved != 0:
		return violation("reserved bits without an extension: Android and iOS close")
	case f.Padded:
		return violation("a length in more bytes than it needs: Java closes")
	case f.Fragment || f.Op == OpContinuation:
		return violation("a fragment: Java does not join them")
	case f.Op == OpBinary:
		return violation("a binary frame: iOS ignores it")
	case f.Op == OpPing:
		return violation("a ping: Java throws")
	case f.Op == OpPong:
		if s.pinged.Add(-1) < 0 {
			return violation("a pong without a ping: Java throws")
		}
	case f.Op != OpText && f.Op != OpClose:
		return violation("a frame of kind %d", f.Op)
	}
	if f.Op != OpText {
		if len(f.Payload) > 125 {
			return violation("a control frame of %d bytes", len(f.Payload))
		}
		return nil
	}
	return checkText(f.Payload)
}

func checkText(payload []byte) error {
	units := 0
	for _, r := range string(payload) {
		units++
		if r > 0xffff {
			units++
		}
	}
	switch {
	case len(payload) == 0:
		return violation("an empty frame: JavaScript takes it for a count of 0 and is deaf from then on")
	case len(payload) > 65536:
		return violation("a frame of %d bytes: Java reads 65,536", len(payload))
	case units > 16384:
		return violation("a frame of %d units: a segment has 16,384", units)
	case !utf8.Valid(payload):
		return violation("a frame that is not UTF-8: segments are cut between characters")
	}
	return nil
}

func readClose(payload []byte) error {
	if len(payload) == 0 {
		return &Closed{}
	}
	if len(payload) == 1 || !utf8.Valid(payload[2:]) {
		return violation("the close frame %q", payload)
	}
	code := int(binary.BigEndian.Uint16(payload))
	if code < 1000 || code >= 1004 && code <= 1006 || code > 1011 && code < 3000 || code >= 5000 {
		return violation("the close code %d: iOS takes it for an error", code)
	}
	return &Closed{code, string(payload[2:])}
}

// CheckAnswer holds the answer to an upgrade, up to its empty line, to what Android reads
// byte by byte, and others more or less.
func CheckAnswer(head string) error {
	lines := strings.Split(head, "\r\n")
	if len(lines) < 3 || lines[len(lines)-1] != "" || lines[len(lines)-2] != "" {
		return violation("an answer that does not end with an empty line: %q", head)
	}
	if !strings.HasPrefix(lines[0], "HTTP/1.1 101 ") {
		return violation("the status line %q", lines[0])
	}
	want := map[string]string{"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": ""}
	for _, line := range lines[1 : len(lines)-2] {
		name, value, ok := strings.Cut(line, ": ")
		expected, known := want[name]
		switch {
		case !ok || value == "" || len(line) >= 1000:
			return violation("the header %q: an empty value or a long line ends Android's reader", line)
		case !known:
			return violation("the header %q: nothing that was not asked for", line)
		case expected != "" && value != expected:
			return violation("the header %q, want %q", line, expected)
		}
		delete(want, name)
	}
	for name := range want {
		return violation("an answer without %s", name)
	}
	return nil
}
