package frame

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/exchange"
)

// ErrRefused is what Accept and Upgrade return for a request that they have answered with an error.
var ErrRefused = errors.New("not a websocket request")

// Upgrade makes a websocket of the connection that a request came on. It is Accept that
// also sends the answer, which must be written by the deadline: a client may have left so
// many earlier answers unread that this one does not fit.
func Upgrade(w http.ResponseWriter, r *http.Request, deadline time.Time) (net.Conn, []byte, error) {
	a, err := Accept(w, r)
	if err != nil {
		return nil, nil, err
	}
	if err := a.send(deadline); err != nil {
		a.Conn.Close()
		return nil, nil, fmt.Errorf("answer the upgrade: %w", err)
	}
	return a.Conn, a.Buffered, nil
}

// An Accepted is a connection that is a websocket as soon as the answer is sent.
type Accepted struct {
	// Conn is the connection. It has no deadline, and no buffer that it does not need.
	Conn net.Conn
	// Buffered are the bytes that were read from it already: they come first.
	Buffered []byte
	// Answer is to be sent before anything else, perhaps together with that.
	Answer []byte
}

// Accept takes over the connection that a request came on, to make a websocket of it.
//
// If the request does not ask for a websocket, it is answered here and the error is
// ErrRefused. With any other error the connection is closed.
//
// Android reads the answer byte by byte and fails on an empty value; iOS fails on a
// subprotocol that it has not asked for; others on an extension that was not offered.
// So the answer is the least that there can be, and the headers that are set on w are
// not sent.
func Accept(w http.ResponseWriter, r *http.Request) (Accepted, error) {
	if status, text := check(r); status != 0 {
		refuse(w, r, status, text)
		return Accepted{}, ErrRefused
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return Accepted{}, fmt.Errorf("take over the connection: %w", err)
	}
	a := Accepted{Conn: conn, Answer: answer(r.Header.Get(keyHeader)), Buffered: make([]byte, rw.Reader.Buffered())}
	if _, err = io.ReadFull(rw, a.Buffered); err != nil {
		conn.Close()
		return Accepted{}, fmt.Errorf("take over the connection: %w", err)
	}
	return a, nil
}

const (
	keyHeader     = "Sec-Websocket-Key"     // as net/http spells the names
	versionHeader = "Sec-Websocket-Version" // of headers
	version       = "13"
	// keyGUID is what the protocol adds to a key.
	keyGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
)

// check returns the status and the text of the refusal, or 0.
func check(r *http.Request) (status int, text string) {
	switch {
	case r.ProtoMajor != 1 || r.ProtoMinor < 1 ||
		!hasToken(r.Header["Upgrade"], "websocket") || !hasToken(r.Header["Connection"], "upgrade"):
		return http.StatusUpgradeRequired, "this address is for websockets"
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, "a websocket is opened by GET"
	case r.Header.Get(versionHeader) != version:
		return http.StatusUpgradeRequired, "websockets of version 13 are understood"
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return http.StatusBadRequest, "the request for a websocket has no body"
	}
	if key, err := base64.StdEncoding.DecodeString(r.Header.Get(keyHeader)); err != nil || len(key) != 16 {
		return http.StatusBadRequest, "Sec-WebSocket-Key must be 16 bytes in base64"
	}
	return 0, ""
}

// hasToken reports whether a list of words, over one header or several, has a word.
func hasToken(values []string, word string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(textproto.TrimString(part), word) {
				return true
			}
		}
	}
	return false
}

func refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	header := w.Header()
	switch {
	case status == http.StatusUpgradeRequired && r.ProtoMajor == 1: // HTTP/2 knows no such header
		header.Set("Upgrade", "websocket")
		header.Set(versionHeader, version)
	case status == http.StatusMethodNotAllowed:
		header.Set("Allow", http.MethodGet)
	}
	exchange.Fail(w, status, text)
}

// answer returns what is said to a client with a key.
func answer(key string) []byte {
	sum := sha1.Sum([]byte(key + keyGUID)) // as the websocket protocol says; it protects nothing
	return []byte("HTTP/1.1 101 Switching Protocols\r\n" +
		"Upgrade: websocket\r\n" +
		"Connection: Upgrade\r\n" +
		"Sec-WebSocket-Accept: " + base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n")
}

// send sends the answer, by a deadline.
func (a *Accepted) send(deadline time.Time) error {
	if err := a.Conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := a.Conn.Write(a.Answer); err != nil {
		return err
	}
	return a.Conn.SetDeadline(time.Time{})
}
