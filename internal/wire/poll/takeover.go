package poll

import (
	"errors"
	"time"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

// A Socket is a websocket that takes a line over.
type Socket interface {
	outbox.Way
	// Next returns the next message of the client. It may be used until the next call.
	Next() ([]byte, error)
}

// ErrTaken is what TakeOver returns for a line that has ended or goes by another websocket.
var ErrTaken = errors.New("there is nothing to take over")

// takeOver is the state of a line with a websocket. The line's lock guards the sockets.
type takeOver struct {
	tried Socket // it is open, and the client tries whether it works
	// dropped is closed when tried is given up for another one, or takes too long.
	dropped chan struct{}
	to      Socket // the client sends by it; the server will, after the current message
	moved   Socket // both send by it
	// replying is tried or to while something is sent by it here, so Send must not.
	replying Socket

	switched chan struct{} // closed when the client sends by the socket
	messages chan []byte   // from the socket to Next
	used     chan struct{} // from Next: it does not need the last of them any more
	lent     bool          // Next has returned one of them; only Next knows
}

func newTakeOver() takeOver {
	return takeOver{switched: make(chan struct{}), messages: make(chan []byte), used: make(chan struct{})}
}

// TakeOver tries a websocket and, when the client says so, has it carry everything. It reads
// from the socket until that ends, and returns why. Before the client has gone over,
// the end of the socket means nothing to the line; afterwards it is the end of the line,
// and the line's end that of the socket.
//
// The line closes the socket, unless the error is ErrTaken: then it was not used. It tries
// one socket at a time, and not for long, so it has one goroutine in here at most, beside
// those that are about to return.
func (l *Line) TakeOver(socket Socket) error {
	dropped := l.try(socket)
	if dropped == nil {
		return ErrTaken
	}
	late := time.AfterFunc(tryTime, func() { l.drop(socket) })
	defer late.Stop()
	_, err := l.Reply(socket, frame.Append(nil, message.AppendSwitch(nil)))
	// What a client says before its first request is for the line, also if the last poll was faster.
	for greets := true; err == nil; {
		var text []byte
		if text, err = socket.Next(); err != nil {
			break
		}
		if greets = greets && isControl(text); greets {
			err = greet(l, socket, text)
		} else {
			err = l.hear(socket, dropped, text)
		}
	}
	l.lose(socket, err)
	return err
}

// tryTime is how long a socket may be tried. SDKs give it up after a minute.
const tryTime = 90 * time.Second

// try makes a socket the one that is tried, in the place of one that was tried before. It
// returns what is closed when this one has to go; nil if there is nothing to take over.
func (l *Line) try(socket Socket) (dropped chan struct{}) {
	l.mu.Lock()
	if l.err != nil || l.takeOver.to != nil || l.takeOver.moved != nil {
		l.mu.Unlock()
		return nil
	}
	former := l.dropTried()
	dropped = make(chan struct{})
	l.takeOver.tried, l.takeOver.dropped = socket, dropped
	l.mu.Unlock()
	if former != nil {
		former.Cut()
	}
	return dropped
}

// drop gives a socket up, if it is still only tried.
func (l *Line) drop(socket Socket) {
	l.mu.Lock()
	isTried := l.takeOver.tried == socket
	if isTried {
		l.dropTried()
	}
	l.mu.Unlock()
	if isTried {
		socket.Cut()
	}
}

// dropTried has nothing tried any more, and returns the socket that was, which is to be cut.
// The lock is held.
func (l *Line) dropTried() Socket {
	former := l.takeOver.tried
	if former != nil {
		close(l.takeOver.dropped)
		if l.takeOver.replying == former {
			l.takeOver.replying = nil // which need not be waited for
		}
	}
	l.takeOver.tried, l.takeOver.dropped = nil, nil
	return former
}

// hear takes a message that came by a socket, which is not to be listened to once it is
// dropped.
func (l *Line) hear(socket Socket, dropped <-chan struct{}, text []byte) error {
	if !l.isSwitched() && isControl(text) {
		return greet(l, socket, text)
	}
	// A request may be here before the polls that were sent earlier.
	select {
	case <-l.takeOver.switched:
	case <-dropped:
	case <-l.done:
	}
	if !l.carries(socket) {
		return errCut
	}
	select {
	case l.takeOver.messages <- text:
	case <-l.done:
		return errCut
	}
	select {
	case <-l.takeOver.used:
		return nil
	case <-l.done:
		return errCut
	}
}

// isControl reports whether a message is one that is not for the session. One that cannot be read is not either.
func isControl(text []byte) bool {
	m, err := message.Parse(text)
	return err != nil || m.Control != message.NoControl
}

// greet takes such a message.
func greet(l *Line, socket Socket, text []byte) error {
	switch m, err := message.Parse(text); {
	case err != nil:
		return &frame.Error{Code: frame.CodeData, Reason: err.Error()}
	case m.Control == message.Ping:
		_, err := l.Reply(socket, frame.Append(nil, message.AppendPong(nil)))
		return err
	}
	return nil
}

func (l *Line) isSwitched() bool {
	select {
	case <-l.takeOver.switched:
		return true
	default:
		return false
	}
}

// carries reports whether the client sends by this socket now.
func (l *Line) carries(socket Socket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && (l.takeOver.to == socket || l.takeOver.moved == socket)
}

// Reply sends frames by a socket that does not carry everything yet. It is called by the
// goroutine that reads from the socket. It reports false if nothing was sent because the
// socket does carry everything: the client is told by Send.
func (l *Line) Reply(socket Socket, frames []byte) (sent bool, err error) {
	l.mu.Lock()
	switch {
	case l.err != nil:
		l.mu.Unlock()
		return true, nil // the client needs it no more
	case l.takeOver.moved == socket:
		l.mu.Unlock()
		return false, nil
	case l.takeOver.tried != socket && l.takeOver.to != socket:
		l.mu.Unlock()
		return false, errCut
	}
	l.takeOver.replying = socket
	l.mu.Unlock()
	err = socket.Send(frames)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.takeOver.replying == socket { // it may have been dropped meanwhile
		l.takeOver.replying = nil
	}
	if !l.sending {
		l.moveIfBetween()
	}
	return true, err
}

// move is called when the client has sent its last message by poll.
func (l *Line) move() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.takeOver.tried == nil {
		return
	}
	l.takeOver.to, l.takeOver.tried, l.takeOver.dropped = l.takeOver.tried, nil, nil
	close(l.takeOver.switched)
	if !l.sending {
		l.moveIfBetween()
	}
}

// moveIfBetween has everything sent by the socket from now on, if the client waits for that
// and no message is half sent. It is called with the lock held, by Send or while Send is not
// at work.
func (l *Line) moveIfBetween() {
	if l.takeOver.to == nil || l.takeOver.replying != nil || !l.split.Between() || l.said {
		return
	}
	l.down.add(message.AppendLastByOld(nil), true)
	l.said = true
	l.takeOver.moved, l.takeOver.to = l.takeOver.to, nil
	signal(l.roomAgain)
	l.nudge()
}

// lose is called when a socket has ended. One that was only tried is cut; the others end
// with the line, which may have something left to say by them.
func (l *Line) lose(socket Socket, err error) {
	l.mu.Lock()
	wasTried := l.takeOver.tried == socket
	switch socket {
	case l.takeOver.tried:
		l.dropTried()
	case l.takeOver.to, l.takeOver.moved:
		l.finish(err)
	}
	l.mu.Unlock()
	if wasTried {
		socket.Cut()
	}
}

// sockets returns those that there are, with the lock held.
func (t *takeOver) sockets() []Socket {
	var list []Socket
	for _, socket := range []Socket{t.tried, t.to, t.moved} {
		if socket != nil {
			list = append(list, socket)
		}
	}
	return list
}

// giveBack is called by Next: the message that it has returned may be overwritten.
func (l *Line) giveBack() {
	if !l.takeOver.lent {
		return
	}
	l.takeOver.lent = false
	select {
	case l.takeOver.used <- struct{}{}:
	case <-l.done:
	}
}
