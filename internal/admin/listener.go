package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/loopback"
	"github.com/livetree/livetree/internal/wholefile"
)

// DefaultAddr is where the listener is unless the operator says otherwise. If
// another program has that port, any other is taken.
const DefaultAddr = "127.0.0.1:9001"

// maxHeadBytes is the largest request line with headers that is read, as on the port of
// the data: the path of a node can be long.
const maxHeadBytes = 128 << 10

// bodyTime is how long the body of a request may take. Whoever was recognised has a second
// more for each bodyRate bytes that the body may have.
const (
	bodyTime = 10 * time.Second
	bodyRate = 16 << 10
)

// takeTime is how long a client of HTTP/2 may take no byte from its connection. Deadlines of
// answers are of no use then: what ends a stream waits behind the bytes that are not taken.
const takeTime = 30 * time.Second

// closeTime is what requests get to return after they were told to.
const closeTime = 2 * time.Second

// ErrRunning says that requests to the listener did not end: what they use must
// not be closed.
var ErrRunning = errors.New("admin requests did not end")

// A Listener is the operator's port. Its order of calls is Listen, Serve, Close.
type Listener struct {
	logger   *slog.Logger
	tcp      net.Listener
	server   *http.Server
	handler  atomic.Pointer[http.Handler]
	running  *exchange.Running
	bodyTime time.Duration
	cancel   context.CancelFunc
	stopped  chan struct{} // closed when the loop has ended
	secure   bool
	addrFile string
}

// ListenerOptions configure a Listener. Addr and Logger must be set.
type ListenerOptions struct {
	Addr   string
	Logger *slog.Logger
	// TLS is needed for an address that other machines can reach, and not used
	// for others.
	TLS *tls.Config
	// Hosts are as in Options.
	Hosts []string

	// bodyTime is that of a stranger's body. It and takeTime are as the constants if they are 0.
	bodyTime, takeTime time.Duration
}

// Listen opens the port and answers health checks: the server is alive and not
// ready. Everything else has to wait for Serve.
func Listen(opts ListenerOptions) (*Listener, error) {
	tcp, err := listen(opts)
	if err != nil {
		return nil, err
	}
	base, cancel := context.WithCancel(context.Background())
	bounded := &connections{Listener: tcp}
	l := &Listener{logger: opts.Logger, tcp: bounded, cancel: cancel, running: exchange.NewRunning(), stopped: make(chan struct{})}
	l.bodyTime = cmp.Or(opts.bodyTime, bodyTime)
	if !loopback.Address(opts.Addr) {
		l.secure, l.tcp = true, tls.NewListener(bounded, opts.TLS)
	}
	first := starting(opts.Hosts)
	l.handler.Store(&first)
	l.server = &http.Server{
		Handler:           l.running.Around(http.HandlerFunc(l.serveHTTP)),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeadBytes,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: cmp.Or(opts.takeTime, takeTime)},
		ErrorLog:          slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         bounded.note,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, below(conn))
		},
	}
	go func() {
		defer close(l.stopped)
		if err := l.server.Serve(l.tcp); !errors.Is(err, http.ErrServerClosed) {
			opts.Logger.Error("the admin port is not served any more", "error", err)
		}
	}()
	return l, nil
}

// listen opens the port. Only one on this machine goes without TLS: the
// credential must not travel for others to see.
func listen(opts ListenerOptions) (net.Listener, error) {
	if !loopback.Address(opts.Addr) && opts.TLS == nil {
		return nil, fmt.Errorf("the admin listener cannot be on %s without TLS: use 127.0.0.1", opts.Addr)
	}
	tcp, err := net.Listen("tcp", opts.Addr)
	if errors.Is(err, syscall.EADDRINUSE) && opts.Addr == DefaultAddr {
		opts.Logger.Warn("the default port of the admin listener is in use, another is taken", "addr", opts.Addr)
		tcp, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("admin listener on %s: the port is in use: stop the other program or choose another port", opts.Addr)
	}
	if err != nil {
		return nil, fmt.Errorf("admin listener: %w", err)
	}
	return tcp, nil
}

// Wait has health checks say that the server waits before it opens the store, and for what. The URL is noted as by Serve, if it can be.
func (l *Listener) Wait(hosts []string, dir string, why Check) {
	if l == nil {
		return
	}
	waiting := starting(hosts, why)
	l.handler.Store(&waiting)
	l.addrFile = filepath.Join(dir, AddrFile)
	if err := wholefile.Write(l.addrFile, 0o600, []byte(l.URL()+"\n")); err != nil {
		l.logger.Debug("the address of the admin listener is not noted", "error", err)
	}
}

// Serve answers with a handler from now on, and writes the URL to a file in a
// directory for local commands.
func (l *Listener) Serve(handler http.Handler, dir string) error {
	l.handler.Store(&handler)
	l.addrFile = filepath.Join(dir, AddrFile)
	if err := wholefile.Write(l.addrFile, 0o600, []byte(l.URL()+"\n")); err != nil {
		return fmt.Errorf("note the address of the admin listener: %w", err)
	}
	l.logger.Info("the admin listener is open", "url", l.URL(), "files", dir)
	return nil
}

// URL returns where programs on this machine reach the listener.
func (l *Listener) URL() string {
	addr := l.tcp.Addr().String()
	if tcp, ok := l.tcp.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		addr = fmt.Sprintf("localhost:%d", tcp.Port)
	}
	if l.secure {
		return "https://" + addr
	}
	return "http://" + addr
}

func (l *Listener) serveHTTP(w http.ResponseWriter, r *http.Request) {
	boundBody(w, r, l.bodyTime)
	(*l.handler.Load()).ServeHTTP(w, r)
}

// boundBody bounds how long the body of a request may take from now on, whether it is read or not.
func boundBody(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	exchange.BoundBody(w, r, time.Now().Add(limit)) //nolint:forbidigo // the deadline of a connection
}

// Close ends the listener. Requests that are running are told to end; if some do
// not, the error is ErrRunning.
func (l *Listener) Close() error {
	if l == nil {
		return nil
	}
	l.running.Shut()
	l.cancel()
	_ = l.server.Close() // of a listener that is closed already
	<-l.stopped
	var err error
	if l.addrFile != "" {
		if err = os.Remove(l.addrFile); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if l.running.Wait(closeTime) > 0 {
		err = errors.Join(err, ErrRunning)
	}
	return err
}
