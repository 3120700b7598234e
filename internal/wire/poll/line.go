package poll

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

const (
	// goneAfter is how long a client may be without a poll. It starts one every 25
	// seconds. A line that has ended is remembered for as long, to say so.
	goneAfter = 60 * time.Second
	// brokenOffAfter is that after a poll which the client has broken off while it was held.
	// Another may be on its way.
	brokenOffAfter = 5 * time.Second
	// held is how long a poll is held.
	held = 20 * time.Second
	// unreportedAfter is goneAfter for a client whose page that reports its end was not loaded: it
	// has just begun, and nobody would tell that it is left between two polls. Browsers may put
	// off what pages do that nobody looks at, for 15 seconds at most.
	unreportedAfter = 16 * time.Second
	// strangerGoneAfter is goneAfter for a client that anybody can be.
	strangerGoneAfter = 10 * time.Second
	// blocked is how long a Send waits for a client to take what there is for it.
	blocked = 10 * time.Second
)

// errCut is what Send returns when nothing can be sent any more.
var errCut = errors.New("the client has gone")

// A Line is the connection of one client by polls, or that by which it has been
// replaced. It is the outbox.Way to the client.
type Line struct {
	lines        *Lines
	id, password string
	database     string
	split        frame.Splitter // of Send
	done         chan struct{}  // closed when nothing is sent or received any more
	// Each has room for one signal: a segment has come, there is room for Send, there is
	// more for the poll that is being filled.
	arrived, roomAgain, more chan struct{}
	timer                    *time.Timer // until the client counts as gone
	slow                     *time.Timer // until the rest of a message must be here

	mu      sync.Mutex
	up      up
	down    down
	polls   int      // that are open
	waiting *waiting // the one that is held
	filling bool     // a poll is being filled
	said    bool     // nothing more goes into down
	met     bool     // the client is no stranger
	reports bool     // the page that reports the end was asked for
	broken  bool     // an answer was not completed, or what was in down is lost
	sending bool     // Send is at work
	err     error    // why it is done

	takeOver takeOver
}

func newLine(lines *Lines, database string, budget frame.Budget) *Line {
	l := &Line{
		lines: lines, id: newSecret(), password: newSecret(), database: database,
		done: make(chan struct{}), arrived: make(chan struct{}, 1), roomAgain: make(chan struct{}, 1), more: make(chan struct{}, 1),
		takeOver: newTakeOver(),
	}
	l.up.budget = budget
	l.slow = time.AfterFunc(partTime, l.tooSlow)
	l.slow.Stop()
	l.timer = time.AfterFunc(strangerGoneAfter, l.silent)
	return l
}

var _ outbox.Way = (*Line)(nil)

// signal lets a goroutine look again, without waiting for it.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take adds what a poll brings.
func (l *Line) take(segments []segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range segments {
		if l.err != nil {
			return
		}
		whole := l.up.whole
		if err := l.up.add(s); err != nil {
			l.finish(err)
			return
		}
		l.await(whole != l.up.whole)
	}
	signal(l.arrived)
}

// Next returns the next message of the client, by whatever it came. It may be used until
// the next call, by one goroutine at a time. After io.EOF the client has gone; a
// frame.Error says with which code it is to be closed.
func (l *Line) Next() ([]byte, error) {
	l.giveBack()
	for {
		l.mu.Lock()
		text, err := l.up.take(), l.err
		l.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case text != nil && !isLastByOld(text):
			return text, nil
		case text != nil: // the rest comes and goes by the websocket
			l.move()
			continue
		}
		select {
		case <-l.arrived:
		case text := <-l.takeOver.messages:
			l.takeOver.lent = true
			return text, nil
		case <-l.done:
		}
	}
}

// isLastByOld reports whether a message is the last one by poll. What cannot be read is
// the session's to refuse.
func isLastByOld(text []byte) bool {
	m, err := message.Parse(text)
	return err == nil && m.Control == message.LastByOld
}

// Send implements outbox.Way: it takes frames. It waits while too much is kept for the
// client.
func (l *Line) Send(p []byte) error {
	l.mu.Lock()
	l.sending = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sending = false
		l.moveIfBetween()
	}()
	for len(p) > 0 {
		socket, err := l.room()
		if err != nil {
			return err
		}
		if socket != nil {
			return socket.Send(p)
		}
		n, part := l.split.Next(p)
		p = p[n:]
		l.mu.Lock()
		if part.Text != nil && !l.said {
			l.down.add(part.Text, part.Last)
			l.nudge()
		}
		l.moveIfBetween()
		l.mu.Unlock()
	}
	return nil
}

// room waits until something can be sent: by the websocket that is returned, or by polls.
func (l *Line) room() (Socket, error) {
	var timeout <-chan time.Time
	for {
		l.mu.Lock()
		socket, err, full := l.takeOver.moved, l.err, l.down.isFull()
		l.mu.Unlock()
		switch {
		case socket != nil:
			return socket, nil // it may still be told why it ends
		case err != nil:
			return nil, errCut
		case !full:
			return nil, nil
		case timeout == nil:
			timer := time.NewTimer(blocked)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-l.roomAgain:
		case <-l.done:
		case <-timeout:
			return nil, os.ErrDeadlineExceeded
		}
	}
}

// Meet says that the client is no stranger. From then on it may be longer without a poll.
func (l *Line) Meet() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.met {
		return
	}
	l.met = true
	l.extend()
}

// pageAsked says that the client has asked for the page that reports its end.
func (l *Line) pageAsked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.reports {
		l.reports = true
		l.extend()
	}
}

// extend gives a client that has no poll now as long as it may have. The lock is held.
func (l *Line) extend() {
	if l.polls == 0 && l.err == nil {
		l.timer.Reset(l.lasts())
	}
}

// lasts returns how long the client may be without a poll. The lock is held.
func (l *Line) lasts() time.Duration {
	switch {
	case !l.met:
		return strangerGoneAfter
	case !l.reports && l.err == nil && l.takeOver.to == nil && l.takeOver.moved == nil:
		return unreportedAfter
	}
	return goneAfter
}

// ByPoll reports whether the client is told by polls, and not by a websocket that has
// taken over.
func (l *Line) ByPoll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeOver.moved == nil
}

// Done is closed when the line has ended: nothing is sent or received any more.
func (l *Line) Done() <-chan struct{} { return l.done }

// Gone implements outbox.Way.
func (l *Line) Gone() bool {
	l.mu.Lock()
	socket, err := l.takeOver.moved, l.err
	l.mu.Unlock()
	return err != nil || socket != nil && socket.Gone()
}

// Close implements outbox.Way. What was sent is still told to the next polls, unless it is
// much and there is no poll, and that this is the end.
func (l *Line) Close() { l.end(false, Socket.Close) }

// Cut implements outbox.Way.
func (l *Line) Cut() { l.end(true, Socket.Cut) }

// leave is called when the client has said that it leaves.
func (l *Line) leave() {
	l.mu.Lock()
	gone := l.takeOver.to != nil || l.takeOver.moved != nil
	l.mu.Unlock()
	if gone {
		// The SDK takes the page of the polls away when a websocket has taken over.
		return
	}
	l.Cut()
	l.timer.Stop()
	l.lines.remove(l)
}

// end ends the line, and the websockets that go with it. What no poll has taken may be
// lost.
func (l *Line) end(lost bool, endSocket func(Socket)) {
	l.mu.Lock()
	l.finish(io.EOF)
	// A client that does not poll, and begins one line after the other, would otherwise have what
	// is kept for all of them.
	lost = lost || l.polls == 0 && l.down.bytes > maxKept
	if lost && !l.down.isEmpty() {
		l.broken = true
		l.down.parts, l.down.bytes = nil, 0
	}
	sockets := l.takeOver.sockets()
	l.mu.Unlock()
	for _, socket := range sockets {
		endSocket(socket)
	}
}

// finish notes that nothing is sent or received any more, with the lock held.
func (l *Line) finish(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.said = true
	l.up.drop()
	l.slow.Stop()
	close(l.done)
	l.nudge()
}
