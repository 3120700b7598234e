package frame

import (
	"errors"
	"fmt"
)

// The codes with which a websocket is closed.
const (
	CodeNormal   = 1000 // nothing is wrong
	CodeAway     = 1001 // the server is about to stop
	CodeProtocol = 1002 // the frames are not as the websocket protocol wants them
	CodeData     = 1003 // the message is of a kind that is not understood
	CodeText     = 1007 // the text is not UTF-8
	CodePolicy   = 1008 // the client does not keep to a rule of the server
	CodeTooBig   = 1009 // the message is too large
	CodeInternal = 1011 // the server cannot go on

	codeNone = 1005 // stands for a close frame without a code; never sent
)

// ErrSlow is why a connection ends on which a message comes too slowly.
var ErrSlow = errors.New("a message came too slowly")

// An Error says why what a client sent cannot be read, and with which code its
// connection is to be closed.
type Error struct {
	Code   int
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("websocket %d: %s", e.Code, e.Reason) }

// A CloseError says that the client has closed the connection.
type CloseError struct {
	Code   int // 1005 if the client gave none
	Reason string
}

func (e *CloseError) Error() string {
	return fmt.Sprintf("closed by the client: %d %q", e.Code, e.Reason)
}

// Reply returns the code with which the client's close frame is answered: its own, or
// CodeNormal if it gave none.
func (e *CloseError) Reply() int {
	if e.Code == codeNone {
		return CodeNormal
	}
	return e.Code
}
