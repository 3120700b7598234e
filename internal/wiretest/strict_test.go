package wiretest_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/wiretest"
)

// served returns the bytes of frames of a server.
func served(frames ...wiretest.Frame) []byte {
	var all []byte
	for _, f := range frames {
		all = f.Append(all)
	}
	return all
}

func text(s string) wiretest.Frame { return wiretest.Frame{Op: wiretest.OpText, Payload: []byte(s)} }

func TestStrictReadsWhatIsRight(t *testing.T) {
	t.Parallel()
	segment := strings.Repeat("漢", 16384)
	s := wiretest.NewStrict(bytes.NewReader(served(
		text(`{"a":1}`),
		text("2"), text(`{"a":"`+segment[:3*16378]), text(`"}`),
		wiretest.Frame{Op: wiretest.OpPong},
		text(segment),
		wiretest.Frame{Op: wiretest.OpClose, Payload: []byte("\x03\xe9bye")})))
	s.Pinged()
	for _, want := range []string{`{"a":1}`, `{"a":"` + segment[:3*16378] + `"}`, segment} {
		if got, err := s.Next(); got != want || err != nil {
			t.Fatalf("%.100q, %v, want %.100q", got, err, want)
		}
	}
	var closed *wiretest.Closed
	if _, err := s.Next(); !errors.As(err, &closed) || closed.Code != 1001 || closed.Reason != "bye" {
		t.Errorf("%v, want closed 1001 bye", err)
	}
}

func TestStrictFails(t *testing.T) {
	t.Parallel()
	closing := wiretest.Frame{Op: wiretest.OpClose}
	for want, frames := range map[string][]byte{
		"an empty frame":                {0x81, 0},
		`the frame "0"`:                 served(text("0")),
		`the frame "00"`:                served(text("00")),
		`the frame " "`:                 served(text(" ")),
		`the count "1.0"`:               served(text("1.0")),
		"the count 10000":               served(text("10000")),
		"a ping":                        served(wiretest.Frame{Op: wiretest.OpPing}),
		"a pong without a ping":         served(wiretest.Frame{Op: wiretest.OpPong}),
		"a fragment":                    served(wiretest.Frame{Op: wiretest.OpText, Fragment: true, Payload: []byte("{")}),
		"a fragment: Java":              served(wiretest.Frame{Op: wiretest.OpContinuation, Payload: []byte("{")}),
		"a binary frame":                served(wiretest.Frame{Op: wiretest.OpBinary, Payload: []byte("{}")}),
		"a masked frame":                served(wiretest.Text("{}")),
		"reserved bits":                 served(wiretest.Frame{Op: wiretest.OpText, Reserved: 4, Payload: []byte("{}")}),
		"a frame of kind 3":             served(wiretest.Frame{Op: 3}),
		"a length in more bytes":        {0x81, 126, 0, 2, '{', '}'},
		"a length in more bytes than":   {0x81, 127, 0, 0, 0, 0, 0, 0, 0, 2, '{', '}'},
		"a frame of 65537 bytes":        served(text(strings.Repeat("😀", 16384) + "x")),
		"a frame of 16385 units":        served(text(strings.Repeat("x", 16385))),
		"a frame of 16386 units":        served(text(strings.Repeat("😀", 8193))),
		"not UTF-8":                     served(text("2"), text("{\"\xf0\x9f"), text("\x98\x80\"}")),
		"not UTF-8: segments":           served(text("\xed\xa0\x80")),
		"a frame after the close frame": served(closing, closing),
		"a control frame of 126 bytes":  served(wiretest.Frame{Op: wiretest.OpClose, Payload: make([]byte, 126)}),
		"the close code 1005":           served(wiretest.Frame{Op: wiretest.OpClose, Payload: []byte("\x03\xed")}),
		"the close code 1013":           served(wiretest.Frame{Op: wiretest.OpClose, Payload: []byte("\x03\xf5")}),
		"the close frame":               served(wiretest.Frame{Op: wiretest.OpClose, Payload: []byte("\x03")}),
	} {
		s := wiretest.NewStrict(bytes.NewReader(frames))
		_, err := s.Next()
		var closed *wiretest.Closed
		if errors.As(err, &closed) {
			_, err = s.Next()
		}
		var violation *wiretest.Violation
		if !errors.As(err, &violation) || !strings.Contains(violation.Text, want) {
			t.Errorf("%.40q: %v, want %s", frames, err, want)
		}
	}
}

func TestCheckAnswer(t *testing.T) {
	t.Parallel()
	const good = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"
	if err := wiretest.CheckAnswer(good); err != nil {
		t.Errorf("%q: %v", good, err)
	}
	for _, change := range [][2]string{
		{"101", "200"},
		{"\r\n\r\n", "\r\n"},
		{"Upgrade: websocket\r\n", ""},
		{"Connection: Upgrade", "Connection: keep-alive, Upgrade"},
		{"Accept: x", "Accept: "},
		{"Accept: x\r\n", "Accept: x\r\nDate: today\r\n"},
		{"Accept: x\r\n", "Accept: x\r\nSec-WebSocket-Protocol: x\r\n"},
		{"Accept: x", "Accept: " + strings.Repeat("x", 1000)},
		{"Upgrade: websocket", "Upgrade:websocket"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if wiretest.CheckAnswer(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
}
