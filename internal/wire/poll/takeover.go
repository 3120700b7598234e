package poll

import (
	"errors"

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
	to    Socket // the client sends by it; the server will, after the current message
	moved Socket // both send by it
	// replying says that TakeOver sends something by tried or to, so Send must not.
	replying bool

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
// The line closes the socket, unless the error is ErrTaken: then it was not used.
func (l *Line) TakeOver(socket Socket) error {
	if !l.try(socket) {
		return ErrTaken
	}
	err := l.reply(socket, message.AppendSwitch(nil))
	for err == nil {
		var text []byte
		if text, err = socket.Next(); err == nil {
			err = l.hear(socket, text)
		}
	}
	l.lose(socket, err)
	return err
}

// try makes a socket the one that is tried. One that was tried before is cut.
func (l *Line) try(socket Socket) bool {
	l.mu.Lock()
	former, free := l.takeOver.tried, l.err == nil && l.takeOver.to == nil && l.takeOver.moved == nil
	if free {
		l.takeOver.tried = socket
	}
	l.mu.Unlock()
	if free && former != nil {
		former.Cut()
	}
	return free
}

// hear takes a message that came by a socket.
func (l *Line) hear(socket Socket, text []byte) error {
	if !l.isSwitched() {
		switch m, err := message.Parse(text); {
		case err != nil:
			return &frame.Error{Code: frame.CodeData, Reason: err.Error()}
		case m.Control == message.Ping:
			return l.reply(socket, message.AppendPong(nil))
		case m.Control != message.NoControl:
			return nil
		}
	}
	// A request may be here before the polls that were sent earlier.
	select {
	case <-l.takeOver.switched:
	case <-l.done:
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

func (l *Line) isSwitched() bool {
	select {
	case <-l.takeOver.switched:
		return true
	default:
		return false
	}
}

// reply sends a message by a socket that does not carry everything yet.
func (l *Line) reply(socket Socket, text []byte) error {
	l.mu.Lock()
	if l.takeOver.moved != nil || l.err != nil {
		l.mu.Unlock()
		return nil // the client needs it no more
	}
	l.takeOver.replying = true
	l.mu.Unlock()
	err := socket.Send(frame.Append(nil, text))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeOver.replying = false
	if !l.sending {
		l.moveIfBetween()
	}
	return err
}

// move is called when the client has sent its last message by poll.
func (l *Line) move() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.takeOver.tried == nil {
		return
	}
	l.takeOver.to, l.takeOver.tried = l.takeOver.tried, nil
	close(l.takeOver.switched)
	if !l.sending {
		l.moveIfBetween()
	}
}

// moveIfBetween has everything sent by the socket from now on, if the client waits for that
// and no message is half sent. It is called with the lock held, by Send or while Send is not
// at work.
func (l *Line) moveIfBetween() {
	if l.takeOver.to == nil || l.takeOver.replying || !l.split.Between() || l.said {
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
		l.takeOver.tried = nil
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
