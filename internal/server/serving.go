package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/lane"
	"github.com/livetree/livetree/internal/passon"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/supervisor"
	"github.com/livetree/livetree/internal/wire"
)

const (
	// maxHeadBytes is the largest request line with headers that is read; a
	// larger one is answered 431. A path at its limits takes 73 KiB.
	maxHeadBytes = 128 << 10
	// headSlop is what net/http reads beyond Server.MaxHeaderBytes. With it the
	// limit is exact for the first request on an HTTP/1.1 connection. A later one
	// may have up to 4 KiB more, if they were read ahead; in HTTP/2 it is 3.7 KiB
	// less, of a sum that counts 32 bytes for each header.
	headSlop = 4096
	// maxHeaderLines is how many headers a request may have. In memory a short one takes a hundred times its length: those of a
	// head within its limit 2.6 MiB.
	maxHeaderLines = 256

	// maxStreamsPerConnection is how many requests a connection of HTTP/2 may have at a
	// time, and receiveBytes how much of their bodies may be there before they are read.
	maxStreamsPerConnection = 100
	receiveBytes            = 256 << 10
)

// servingLimits are the times and numbers of serving. Fields that are 0 get
// their defaults.
type servingLimits struct {
	opening    time.Duration // from accepting to the end of the TLS handshake
	maxOpening int           // connections in that state; beyond, the oldest is cut
	head       time.Duration // for reading the request line and the headers
	body       time.Duration // for a body over HTTP/1 that no handler reads
	write      time.Duration // how long a client may take nothing of what net/http sends
	idle       time.Duration // of a connection without requests
	fresh      time.Duration // how old one without any must be to be closed by drain

	maxConnections int // open at a time, on all ports
	perAddress     int // what an address gets of them when they run short; an eighth by default

	// The steps of drain, in their order. The time for requests includes that for
	// settling; what is left of 10 seconds is for the store.
	accept   time.Duration // how long connections are still accepted
	settle   time.Duration // how long idle connections are still kept
	requests time.Duration // what requests get after accepting has ended
	handlers time.Duration // what handlers get to return after they were cut
}

func (l servingLimits) withDefaults() servingLimits {
	setDefault(&l.opening, 10*time.Second)
	setDefault(&l.maxOpening, 6144) // above the storm of 5,000 that follows a restart
	setDefault(&l.head, DefaultHeadTimeout)
	setDefault(&l.body, rest.BodyWindow)
	setDefault(&l.write, rest.WriteIdle)
	setDefault(&l.idle, DefaultIdleTimeout)
	setDefault(&l.fresh, 5*time.Second) // as net/http has it
	setDefault(&l.maxConnections, DefaultMaxConnections)
	setDefault(&l.accept, DefaultDrainAccept)
	setDefault(&l.settle, 250*time.Millisecond)
	setDefault(&l.requests, DefaultDrainRequests)
	setDefault(&l.handlers, time.Second)
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// servingOptions configure serving. The limits, proxies, answers, observe, endAll and now may be
// left out.
type servingOptions struct {
	secure http.Handler // for HTTPS
	plain  http.Handler // for plain HTTP, on either port
	tls    *tls.Config
	logger *slog.Logger
	limits servingLimits
	// proxies say which clients their requests come from.
	proxies clientaddr.Proxies
	// answers is the memory that answers take until clients have taken them; nil for no bound.
	answers *budget.Budget
	// noLane leaves all of HTTP to net/http. The lanes are there, and have nothing to do.
	noLane bool
	// observe stands around all that is answered.
	observe func(http.Handler) http.Handler
	// door has the connections that other nodes of a cluster pass on, and passed answers them; nil for a single server.
	door   *passon.Door
	passed http.Handler
	// endAll is called by drain when no new connection is accepted, and
	// should end all streams before its context ends. A stream is a request that
	// would never end by itself.
	endAll func(context.Context)
	// now is the clock by which requests that are taken back are forgiven.
	now func() time.Time
	// supervisor may have opened the ports.
	supervisor *supervisor.Supervisor
}

// serving is the HTTP side of the server: its ports, and for HTTPS and plain HTTP a
// lane for what is ordinary and an http.Server for the rest.
//
// The order of calls is listen, serve, drain. After a failure before serve, close
// gives the ports back.
type serving struct {
	options servingOptions
	guard   *guard
	secure  *http.Server
	plain   *http.Server
	passed  *http.Server // of clients of other nodes; without a door it has nothing to do

	secureLane *lane.Lane
	plainLane  *lane.Lane

	port  *port
	extra net.Listener // for plain HTTP alone; nil for none
	loops sync.WaitGroup

	connections *connections
	resets      *resets

	cut   context.CancelFunc // ends the contexts of all requests
	ended chan struct{}      // is closed when endAll has returned
}

func newServing(options servingOptions) *serving {
	options.limits = options.limits.withDefaults()
	if options.now == nil {
		options.now = time.Now
	}
	if options.observe == nil {
		options.observe = (&Config{}).observing()
	}
	s := &serving{
		options:     options,
		guard:       newGuard(&options),
		connections: newConnections(options.limits, options.proxies, options.logger),
		resets:      &resets{logger: options.logger, now: options.now},
		ended:       make(chan struct{}),
	}
	requests, cut := context.WithCancel(context.Background())
	s.cut = cut
	secure, plain := s.around(options.secure), s.around(options.plain)
	s.secure = s.newServer(requests, secure)
	s.plain = s.newServer(requests, plain)
	s.passed = s.newServer(requests, passon.Identify(s.inside(options.passed)))
	s.passed.ConnContext = passon.ConnContext
	s.secureLane = s.newLane(requests, secure, func(conn net.Conn) { s.port.secure.put(conn) })
	s.plainLane = s.newLane(requests, plain, func(conn net.Conn) { s.port.plain.put(conn) })
	return s
}

// around returns a handler with all that stands around each.
func (s *serving) around(handler http.Handler) http.Handler {
	return s.options.proxies.Wrap(s.inside(handler))
}

// inside is around without the proxies: another node knows which client a request of its comes from.
func (s *serving) inside(handler http.Handler) http.Handler {
	return s.guard.running.Around(s.options.observe(s.guard.around(handler)))
}

func (s *serving) newLane(requests context.Context, handler http.Handler, handOver func(net.Conn)) *lane.Lane {
	return lane.New(lane.Options{
		Handler:   handler,
		Context:   requests,
		HandOver:  handOver,
		Held:      wire.PollPath,
		ConnState: s.connections.note,
		Logger:    s.options.logger,
		Now:       time.Now,
		First:     s.options.limits.head,
		Idle:      s.options.limits.idle,
		Write:     rest.WriteIdle,
		Fresh:     s.options.limits.fresh,
	})
}

// newServer returns a server without a time limit for answers of handlers, and for bodies that
// are read: how long those may take depends on what they are, which the handler knows. WriteTimeout is
// for the answers of net/http itself, to heads that it refuses.
//
// Over HTTP/2 a handler's deadline is of use only while the client takes bytes from its connection: the frame
// that ends the stream waits behind those that are not taken. WriteByteTimeout ends such a connection.
func (s *serving) newServer(requests context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           s.beginning(s.resets.watching(handler)),
		ReadHeaderTimeout: s.options.limits.head,
		WriteTimeout:      s.options.limits.head,
		IdleTimeout:       s.options.limits.idle,
		MaxHeaderBytes:    maxHeadBytes - headSlop,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreamsPerConnection,
			MaxReceiveBufferPerConnection: receiveBytes,
			MaxReceiveBufferPerStream:     receiveBytes,
			WriteByteTimeout:              s.options.limits.write,
		},
		// What net/http reports is the noise of clients that break off.
		ErrorLog:    slog.NewLogLogger(s.options.logger.Handler(), slog.LevelDebug),
		ConnState:   s.connections.note,
		BaseContext: func(net.Listener) context.Context { return requests },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if guest, ok := conn.(lane.Guest); ok {
				return context.WithValue(ctx, guestKey{}, guest)
			}
			return s.withTails(s.resets.connContext(ctx, conn), conn)
		},
	}
}

// guestKey is the key of a connection that a lane has handed over.
type guestKey struct{}

// beginning tells a lane that a request has begun on a connection that it has handed
// over, and bounds how long its body is waited for, and the client for the end of the answer,
// which net/http sends when the handler has returned.
func (s *serving) beginning(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if guest, ok := r.Context().Value(guestKey{}).(lane.Guest); ok {
			guest.Begun()
		}
		exchange.BoundBody(w, r, time.Now().Add(s.options.limits.body)) // also of a request that is refused next
		if hasManyHeaders(r.Header) {
			refuseHeaders(w, r)
			return
		}
		if r.ProtoMajor == 2 {
			exchange.Deepen()
		}
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Time{}) // WriteTimeout is not for handlers
		next.ServeHTTP(w, r)
		if !isTakenOver(w, r) {
			_ = control.SetWriteDeadline(time.Now().Add(s.options.limits.write)) // WriteTimeout replaces it when another request comes
		}
	})
}

// refuseHeaders answers a request that has more headers than maxHeaderLines. It lets go of the head: net/http has the request until its
// body is there, and the answer is taken.
func refuseHeaders(w http.ResponseWriter, r *http.Request) {
	r.Header, r.Host, r.RequestURI, r.URL = nil, "", "", &url.URL{}
	w.Header().Set("Connection", "close")
	exchange.Fail(w, http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the request has more than %d headers", maxHeaderLines))
}

// isTakenOver reports whether a handler that has returned has taken the connection away from net/http, as streams and
// websockets do. To write nothing changes nothing then: of an answer that was not begun, net/http does the same next.
func isTakenOver(w http.ResponseWriter, r *http.Request) bool {
	if r.ProtoMajor != 1 {
		return false
	}
	_, err := w.Write(nil)
	return errors.Is(err, http.ErrHijacked)
}

// hasManyHeaders reports whether a request has more headers than maxHeaderLines.
func hasManyHeaders(header http.Header) bool {
	lines := 0
	for _, values := range header {
		lines += len(values)
	}
	return lines > maxHeaderLines
}

// listen opens the ports: addr for HTTPS and plain HTTP, and httpAddr, unless it
// is empty, for plain HTTP. Clients can connect from here on; they are answered
// after serve.
func (s *serving) listen(addr, httpAddr string) error {
	tcp, err := s.options.supervisor.Listen(supervisor.Addr, addr)
	if err != nil {
		return err
	}
	if httpAddr != "" {
		if s.extra, err = s.options.supervisor.Listen(supervisor.HTTPAddr, httpAddr); err != nil {
			return errors.Join(err, tcp.Close())
		}
	}
	limits := s.options.limits
	if s.extra != nil {
		s.extra = s.connections.bound(s.extra)
	}
	s.port = newPort(s.connections.bound(tcp), portOptions{
		tls:        s.options.tls,
		logger:     s.options.logger,
		secure:     s.serveSecure,
		plain:      s.servePlain,
		opening:    limits.opening,
		maxOpening: limits.maxOpening,
	})
	return nil
}

// serveSecure and servePlain serve a connection of HTTP/1.1.
func (s *serving) serveSecure(conn net.Conn) {
	if s.options.noLane {
		s.port.secure.put(conn)
		return
	}
	s.secureLane.Serve(conn)
}

func (s *serving) servePlain(conn net.Conn) {
	if s.options.noLane {
		s.port.plain.put(conn)
		return
	}
	s.plainLane.Serve(conn)
}

// addr returns the address of the main port, with the number that was picked.
func (s *serving) addr() net.Addr { return s.port.tcp.Addr() }

// probe takes the locks without which no connection is accepted. It hangs if one of them is never given back.
func (s *serving) probe() {
	s.port.mu.Lock()
	defer s.port.mu.Unlock()
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
}

// serve begins to answer requests, and returns.
func (s *serving) serve() {
	s.port.start()
	s.loop(s.secure, s.port.secure)
	s.loop(s.plain, s.port.plain)
	if s.options.door != nil {
		s.loop(s.passed, s.options.door)
	}
	if s.extra != nil {
		s.loops.Go(func() { acceptAll(s.port.ctx, s.extra, s.options.logger, s.servePlain) })
	}
}

func (s *serving) loop(server *http.Server, listener net.Listener) {
	s.loops.Go(func() {
		err := server.Serve(listener)
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.options.logger.Error("a port is not served any more", "addr", listener.Addr(), "error", err)
		}
	})
}
