//go:build unix

package trust_test

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// Types and flags of frames of HTTP/2, RFC 9113.
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePing         = 6
	frameContinuation = 9

	endStream  = 1
	endHeaders = 4
)

// frame returns one frame.
func frame(kind, flags byte, stream uint32, payload string) string {
	head := make([]byte, 9)
	binary.BigEndian.PutUint32(head, uint32(len(payload))<<8|uint32(kind))
	head[4] = flags
	binary.BigEndian.PutUint32(head[5:], stream)
	return string(head) + payload
}

// getHeaders returns the headers of a GET, in the simplest form of HPACK.
func getHeaders(path string) string { return headersOf("\x82", path) }

// putHeaders returns those of a PUT.
func putHeaders(path string) string { return headersOf("\x02\x03PUT", path) }

func headersOf(method, path string) string {
	return method + "\x87\x01\x01h\x04" + string(rune(len(path))) + path
}

// speakTwo opens a connection of HTTP/2 with settings and sends frames over it.
// What comes back is read and thrown away.
func (h *hostile) speakTwo(settings, frames string) (net.Conn, error) {
	return h.speakTwoTo(io.Discard, settings, frames)
}

// speakTwoTo is speakTwo with a writer for what comes back.
func (h *hostile) speakTwoTo(sink io.Writer, settings, frames string) (net.Conn, error) {
	conn, err := tls.DialWithDialer(h.dialer(), "tcp", h.addr, &tls.Config{RootCAs: h.trusted, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(sink, conn) }() // until it is closed
	if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return conn, err
	}
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(frameSettings, 0, 0, settings)+frames)
	return conn, err
}

// eachStream returns frames for streams of a client, of which the ids are odd.
func eachStream(count int, frames func(id uint32) string) string {
	var all strings.Builder
	for i := range count {
		all.WriteString(frames(uint32(2*i + 1)))
	}
	return all.String()
}

// noWindow sets the initial window of streams to nothing.
const noWindow = "\x00\x04\x00\x00\x00\x00"

// endlessHeaders returns the head of a request that is continued so many times.
func endlessHeaders(continuations int) string {
	more := frame(frameContinuation, 0, 1, strings.Repeat("\x00\x01x\x01y", 3000))
	return frame(frameHeaders, endStream, 1, getHeaders("/a.json")) + strings.Repeat(more, continuations)
}

// streamsPerAttacker is how many requests are on one connection. There may be 100:
// TestUnreadAnswersOverHTTP2 has as many.
const streamsPerAttacker = 5

// takenBack is how many requests are sent on one connection and taken back at once:
// more than may be there at a time.
const takenBack = 500

// cancel returns the frame that takes a request back.
func cancel(id uint32) string { return frame(frameReset, 0, id, "\x00\x00\x00\x08") }

var attacksOverHTTP2 = []attack{
	{name: "reads that are taken back at once", open: func(h *hostile) (net.Conn, error) {
		return h.speakTwo("", eachStream(takenBack, func(id uint32) string {
			return frame(frameHeaders, endStream|endHeaders, id, getHeaders("/large.json")) + cancel(id)
		}))
	}},
	{name: "writes that are taken back at once", open: func(h *hostile) (net.Conn, error) {
		return h.speakTwo("", eachStream(takenBack, func(id uint32) string {
			return frame(frameHeaders, endHeaders, id, putHeaders("/taken/back.json")) + frame(frameData, endStream, id, `"back"`) + cancel(id)
		}))
	}},
	{name: "heads that are continued without end", open: func(h *hostile) (net.Conn, error) { return h.speakTwo("", endlessHeaders(30)) }},
	{name: "streams without a window", share: streamsPerAttacker, open: func(h *hostile) (net.Conn, error) {
		return h.speakTwo(noWindow, eachStream(streamsPerAttacker, func(id uint32) string {
			return frame(frameHeaders, endStream|endHeaders, id, getHeaders("/large.json"))
		}))
	}},
	{name: "pings", open: func(h *hostile) (net.Conn, error) {
		return h.speakTwo("", strings.Repeat(frame(framePing, 0, 0, "12345678"), 1000))
	}},
	{name: "settings", open: func(h *hostile) (net.Conn, error) {
		return h.speakTwo("", strings.Repeat(frame(frameSettings, 0, 0, noWindow), 1000))
	}},
}

// TestHeadIsBoundedOverHTTP2: a head that goes on in more and more frames is not
// read to its end.
func TestHeadIsBoundedOverHTTP2(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--dev", "--dev-host", "h")
	trusted, err := p.trusted()
	if err != nil {
		t.Fatal(err)
	}
	// More than the buffers of both sides can hold.
	conn, err := (&hostile{addr: p.address(), trusted: trusted}).speakTwo("", endlessHeaders(3000))
	if err == nil {
		t.Error("40 MiB of a head are read")
	}
	if conn != nil {
		conn.Close()
	}
	newClient(t, p, 2).must(t, request{method: "PUT", target: "/a.json", body: "1"})
}
