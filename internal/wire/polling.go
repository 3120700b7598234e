package wire

import (
	"errors"
	"net/http"
	"sync"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
	"github.com/livetree/livetree/internal/wire/poll"
)

// servePoll answers a request of a browser that polls. The first begins a session.
func (f *Front) servePoll(w http.ResponseWriter, r *http.Request) {
	if err := f.opts.Dev.CheckScript(r); err != nil {
		exchange.Fail(w, http.StatusForbidden, err.Error())
		return
	}
	at, err := f.database(r, r.URL.Query()["ns"])
	if err != nil {
		refuse(w, err)
		return
	}
	note(w, RoutePoll, at)
	err = f.lines.Serve(w, r, at.name, func(line *poll.Line) error {
		return f.beginPolling(w, r, line, at)
	})
	if err != nil {
		refuse(w, err)
	}
}

// beginPolling puts a session on a line.
func (f *Front) beginPolling(w http.ResponseWriter, r *http.Request, line *poll.Line, at found) error {
	old := f.endOld(at.name, r.URL.Query().Get("ls")) // first, because its place may be the one that is free
	session, err := f.newSession(at, r.Header, networkOf(r))
	if err != nil {
		return err
	}
	s := f.newSocket(session)
	if err := f.admit(s, old, networkOf(r)); err != nil {
		return err
	}
	s.line, s.takers = line, make(chan *socket)
	s.reader = polled{line}
	s.logVisit(w, r, RoutePoll, at.name)
	s.session.begin(s, hostOf(r))
	s.client.Go(s.read)
	s.client.Go(s.letTakeOver)
	s.client.Begin(line)
	return nil
}

// polled are the messages that come by a line.
type polled struct{ *poll.Line }

// Partial implements messages: the line bounds by itself what it holds, and for how long.
func (polled) Partial() int { return 0 }

// Close implements messages. The line is ended by the side that sends, which may have
// something left to say.
func (polled) Close() {}

// serveTaker opens a websocket that is to take over a session by long polling. A client
// whose session is not there, or goes by a websocket already, goes on with its polls. It
// needs no place of its own: a line is tried by one websocket at a time.
func (f *Front) serveTaker(w http.ResponseWriter, r *http.Request, at found, id string) {
	if err := f.opts.Clients.Standing(); err != nil {
		refuse(w, err)
		return
	}
	s := f.newSocket(&session{front: f, memory: f.memory.of(networkOf(r))})
	conn, buffered, err := frame.Upgrade(w, r, s.now().Add(upgradeTime))
	if err != nil {
		return
	}
	s.attach(conn, buffered)
	if session := f.find(at.name, id); session != nil {
		if polls, ok := session.way().(*socket); ok && polls.line != nil && polls.line.ByPoll() {
			s.busy, s.polls, s.taking = polls.busy, polls, &taking{s.newWay(), s}
			select {
			case polls.takers <- s:
				return
			case <-polls.line.Done():
			}
		}
	}
	defer s.conn.Close()
	defer s.reader.Close()
	reset := frame.Append(nil, message.AppendReset(nil, hostOf(r)))
	_ = s.newWay().Send(frame.AppendClose(reset, frame.CodeNormal, "")) // it is told once
}

// newWay returns the way over the connection of a websocket.
func (s *socket) newWay() *outbox.Conn {
	return s.session.front.opts.Clients.NewConn(s.conn, outbox.ConnOptions{Heard: true})
}

// letTakeOver runs the websockets that are to take the line over, until it ends.
func (s *socket) letTakeOver() {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case taker := <-s.takers:
			all.Go(func() {
				defer taker.reader.Close()
				defer taker.survive(func() { taker.conn.Close() })
				err := s.line.TakeOver(taker.taking) // Next returns it, too
				if errors.Is(err, poll.ErrTaken) {
					taker.conn.Close()
				}
			})
		case <-s.line.Done():
			return
		}
	}
}

// answerPing answers a ping of a websocket that is to take over, or has.
func (s *socket) answerPing(pong []byte) {
	if sent, err := s.polls.line.Reply(s.taking, pong); !sent && err == nil {
		s.polls.queuePong(pong)
	}
}

// A taking is a websocket that takes over, as the line sees it.
type taking struct {
	*outbox.Conn
	socket *socket
}

// Next implements poll.Socket.
func (t taking) Next() ([]byte, error) {
	text, err := t.socket.reader.Next()
	if err == nil {
		t.socket.whole()
	}
	return text, err
}
