package conformance_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/livetree/livetree/internal/wiretest"
)

// A peer is a connection to the server, as an SDK has it.
type peer interface {
	send(message string)
	sendFrames(l spoken) (problem string)
	next() (string, error)
	end()   // in order
	leave() // without a word
}

// A socket is a connection by websocket.
type socket struct{ *wiretest.Client }

func (s socket) send(message string)   { s.Send(message) }
func (s socket) next() (string, error) { return s.NextOrEnd() }
func (s socket) end()                  { s.Close(1000) }

func (s socket) leave() {
	if c, ok := s.Conn().(*net.TCPConn); ok {
		_ = c.SetLinger(0) // it resets the connection, where that is possible
	}
	_ = s.Conn().Close() // it may be closed
}

func (s socket) sendFrames(l spoken) string {
	switch l.verb {
	case "@frame":
		s.SendFrames(wiretest.Text(l.text))
	case "@cut":
		s.SendAs(l.text, cutBytes(l.text)...)
	}
	return ""
}

// A polling is a connection by long polling.
type polling struct {
	*wiretest.Poller
	fetch      wiretest.Fetch
	parameters string
}

func (p polling) send(message string)   { p.Send(message) }
func (p polling) next() (string, error) { return p.Next() }
func (p polling) leave()                { p.Stop() }

// end does what a page does that is closed.
func (p polling) end() {
	p.Stop()
	answer, err := p.fetch(fmt.Sprintf("/.lp?disconn=t&id=%s&pw=%s%s", p.ID, p.Password, p.parameters))
	if err == nil {
		_ = answer.Body.Close() // it is empty
	}
}

func (p polling) sendFrames(l spoken) string { return l.verb + " is for websockets" }

// cutBytes returns the frames of a message as the SDK for C++ makes them: cut by bytes,
// with one segment too many announced if the last one is full.
func cutBytes(message string) []wiretest.Frame {
	const size = 16384
	frames := []wiretest.Frame{wiretest.Text(strconv.Itoa(len(message)/size + 1))}
	for chunk := range slices.Chunk([]byte(message), size) {
		frames = append(frames, wiretest.Frame{Op: wiretest.OpText, Masked: true, Payload: chunk})
	}
	return frames
}
