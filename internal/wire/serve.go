package wire

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

// retryAfterSeconds is the advice to a client that is refused for the moment.
const retryAfterSeconds = 1

// upgradeTime is how long the answer to an upgrade may take to be sent.
const upgradeTime = partTime

// serveSocket opens a websocket.
func (f *Front) serveSocket(w http.ResponseWriter, r *http.Request) {
	if err := f.opts.Dev.Check(r); err != nil {
		exchange.Fail(w, http.StatusForbidden, err.Error())
		return
	}
	query := r.URL.Query()
	at, err := f.database(r, query["ns"])
	if err != nil {
		refuse(w, err)
		return
	}
	note(w, RouteSocket, at)
	if id := query.Get("s"); id != "" {
		f.serveTaker(w, r, at, id)
		return
	}
	old := f.endOld(at.name, query.Get("ls")) // first, because its place may be the one that is free
	session, err := f.newSession(at, r.Header, networkOf(r))
	if err != nil {
		refuse(w, err)
		return
	}
	s := f.newSocket(session)
	if err := f.admit(s, old, networkOf(r)); err != nil {
		refuse(w, err)
		return
	}
	accepted, err := frame.Accept(w, r)
	if err != nil { // the client was told, if it could be
		s.client.Abandon()
		s.session.release()
		return
	}
	s.attach(accepted.Conn, accepted.Buffered)
	s.logVisit(w, r, RouteSocket, at.name)
	s.session.begin(s, hostOf(r))
	// Before the connection is read from, because it lifts the deadlines. The answer goes out
	// with the hello, in one write.
	way := f.opts.Clients.NewConn(s.conn, outbox.ConnOptions{Head: accepted.Answer, Heard: true})
	s.client.Go(s.read)
	s.client.Begin(way)
}

// admit takes a socket in, or releases its session.
func (f *Front) admit(s *socket, old *old, network netip.Addr) error {
	s.client.Network = network
	err := old.precede(s.session)
	if err == nil {
		err = f.opts.Clients.Admit(&s.client, outbox.Socket, s)
	}
	if err != nil {
		s.session.release()
	}
	return err
}

// attach has the socket read from a connection of which some bytes were read already.
func (s *socket) attach(conn net.Conn, buffered []byte) {
	s.conn = conn
	s.touch()
	s.reader = frame.NewReader(listening{s}, frame.ReaderOptions{
		Buffered: buffered, Budget: s.session.memory, Ping: s.ping,
	})
}

// networkOf returns what the memory of a client counts for.
func networkOf(r *http.Request) netip.Addr { return clientaddr.Network(clientaddr.Of(r).Addr()) }

// A found is the database that a request is for. It is nil if it is not there, and is made
// when a client asks something of it.
type found struct {
	db   *engine.Database
	name string
}

// database returns the database that a request is for.
func (f *Front) database(r *http.Request, ns []string) (found, error) {
	name, ok := f.opts.Hosts.DatabaseOf(ns, r.Host)
	if !ok {
		return found{}, fault.New(fault.NotFound, "the request names no database: use the parameter ns or a host name of its own")
	}
	name = strings.Clone(name) // a session keeps it, and not the head of the request that it is a part of
	db, err := f.opts.Catalog.Database(name)
	if f.opts.Create != nil && (fault.KindOf(err) == fault.NotFound || err == nil && db.Published().Position == 0) {
		return found{name: name}, nil // or its making was cut short by a kill
	}
	return found{db, name}, err
}

// refuse answers a request that opens nothing.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch fault.KindOf(err) {
	case fault.NotFound:
		status = http.StatusNotFound
	case fault.Invalid:
		status = http.StatusBadRequest
	case fault.Unavailable, fault.ReadOnly:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	}
	exchange.Fail(w, status, fault.Public(err))
}

// The routes of requests that open websockets, and of polls.
const (
	RouteSocket = "socket"
	RoutePoll   = "poll"
)

// note says what a request turned out to be, for those who observe it.
func note(w http.ResponseWriter, route string, at found) {
	if x := exchange.Of(w); x != nil && at.db != nil {
		x.Note(route, at.name)
	}
}

// isUnreadable reports whether an error is that of a message that cannot be read.
func isUnreadable(err error) bool { return err == message.ErrUnreadable } //nolint:errorlint // it is never wrapped
