package wire

import (
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/poll"
)

const (
	// silence is how long a client may say nothing while it is told nothing. SDKs say
	// something every 45 seconds.
	silence = 120 * time.Second
	// partTime and partRate are how long the rest of a message may take that has begun to
	// come: that time, and a second for so many bytes.
	partTime = 10 * time.Second
	partRate = 16 << 10
)

// A socket is the transport of a session over a websocket, or by long polling, which a
// poll.Line makes look the same. A goroutine of its own reads from it; what is written is
// written by the goroutines of outbox.
type socket struct {
	session *session
	client  outbox.Client
	conn    net.Conn // nil by long polling
	now     func() time.Time
	reader  messages
	line    *poll.Line   // nil if it began as a websocket
	visit   *visit       // for the access log; nil without one
	takers  chan *socket // websockets that are to take the line over
	// polls is what a websocket is to take over, and taking how it appears there; nil of
	// others.
	polls  *socket
	taking *taking
	// busy is when something was last read or written: how long after the front began, so that a
	// clock that is set does not count.
	busy  *atomic.Int64
	begun time.Time // when a message began to come whose end has not come; of the reader

	mu      sync.Mutex
	pongs   []byte  // frames that answer pings of the websocket
	leaving *ending // how the connection is to end; the first one counts
}

// messages returns what a client sends.
type messages interface {
	Next() ([]byte, error)
	// Partial returns how many bytes are held of a message that has not come to its end.
	Partial() int
	Close()
}

// newSocket returns the transport of a session that has not begun.
func (f *Front) newSocket(s *session) *socket {
	return &socket{session: s, now: f.opts.Now, busy: &atomic.Int64{}}
}

// wake implements transport.
func (s *socket) wake() { s.client.Wake() }

// meet implements transport.
func (s *socket) meet() {
	s.client.Meet()
	if s.line != nil {
		s.line.Meet()
	}
}

// isEnding implements transport.
func (s *socket) isEnding() bool { return s.client.Ending() != outbox.GoesOn }

// close implements transport.
func (s *socket) close(code int, reason outbox.Reason, text string) {
	s.leave(&ending{code: code, reason: reason, text: text})
	s.client.End(reason)
}

// leave says how the connection is to end.
func (s *socket) leave(e *ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving == nil {
		s.leaving = e
	}
}

// read hands what the client sends to the session until the connection ends. After a
// request that may have made its stack large it goes on in another goroutine: this one
// could wait long for the next message, and so much of its stack is in use then that the
// collector would never make it smaller.
func (s *socket) read() {
	goesOn := false
	defer func() {
		if !goesOn {
			s.reader.Close()
		}
	}()
	defer s.survive(func() {
		s.client.End(outbox.Damaged)
		s.client.Cut()
	})
	for {
		text, err := s.reader.Next()
		if err == nil {
			s.whole()
			s.visit.heard(len(text))
			err = s.session.receive(text)
		}
		if err != nil {
			s.lost(err)
			return
		}
		if s.session.effort.take() {
			goesOn = true
			s.client.Go(s.read)
			return
		}
	}
}

// survive keeps a defect that a client has found from ending the server: it ends that
// client alone. It is deferred.
func (s *socket) survive(end func()) {
	if cause := recover(); cause != nil {
		s.session.front.opts.Logger.Error("a session of an SDK panicked", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		end()
	}
}

// whole says that a message has come whose rest was owed.
func (s *socket) whole() {
	if !s.begun.IsZero() {
		s.begun = time.Time{}
		_ = s.conn.SetReadDeadline(time.Time{})
	}
}

// lost ends the connection because nothing more can be read from it.
func (s *socket) lost(err error) {
	if wrong, ok := errors.AsType[*frame.Error](err); ok {
		s.close(wrong.Code, outbox.ByClient, wrong.Reason)
		return
	}
	if closed, ok := errors.AsType[*frame.CloseError](err); ok {
		s.close(closed.Reply(), outbox.ByClient, "")
		return
	}
	if isUnreadable(err) {
		s.close(frame.CodeData, outbox.ByClient, err.Error())
		return
	}
	if errors.Is(err, frame.ErrSlow) {
		s.close(frame.CodePolicy, outbox.Slow, err.Error())
		return
	}
	s.client.End(outbox.ByClient)
	s.client.Cut() // nobody is there to take what is being sent
}

// A listening is the connection as the reader of its messages sees it: with a deadline
// while the client owes the rest of a message.
type listening struct{ *socket }

// Read implements io.Reader.
func (l listening) Read(p []byte) (int, error) {
	owed := 0
	if l.reader != nil { // not while it is made
		owed = l.reader.Partial()
	}
	if err := l.await(owed); err != nil {
		return 0, err
	}
	n, err := l.conn.Read(p)
	l.touch()
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		err = frame.ErrSlow
	}
	return n, err
}

// await sets the deadline for the rest of a message of which some bytes have come.
func (l listening) await(owed int) error {
	switch {
	case owed == 0 && l.begun.IsZero():
		return nil
	case owed == 0:
		l.begun = time.Time{}
		return l.conn.SetReadDeadline(time.Time{})
	case l.begun.IsZero():
		l.begun = l.now()
	}
	return l.conn.SetReadDeadline(l.begun.Add(partTime + time.Duration(owed)*time.Second/partRate))
}

// touch notes that the connection is alive.
func (s *socket) touch() { s.busy.Store(int64(s.elapsed())) }

// elapsed returns how long ago the front began.
func (s *socket) elapsed() time.Duration { return s.now().Sub(s.session.front.began) }

// isSilent reports whether nothing was read or written for too long.
// Polls come and go without a word; their line knows when they have stopped. A client that is
// not read from cannot say anything.
func (s *socket) isSilent() bool {
	if s.session.waits.Load() || s.line != nil && s.line.ByPoll() {
		return false
	}
	return s.elapsed()-time.Duration(s.busy.Load()) > silence
}

// maxPongBytes bounds the answers to pings that wait. SDKs send none.
const maxPongBytes = 4 << 10

// ping is called by the reader for a ping of the websocket.
func (s *socket) ping(payload []byte) {
	pong := frame.AppendPong(nil, payload)
	if s.polls != nil {
		s.answerPing(pong)
		return
	}
	s.queuePong(pong)
}

// queuePong has a frame sent that answers a ping.
func (s *socket) queuePong(pong []byte) {
	s.mu.Lock()
	if len(s.pongs) < maxPongBytes {
		s.pongs = append(s.pongs, pong...)
	}
	s.mu.Unlock()
	s.wake()
}
