package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/pause"
)

// A Front is the port of this node for the others, and its connections to them.
type Front struct {
	o        Options
	listener net.Listener
	files    etcdlog.TLS
	identity atomic.Pointer[identity]
	bodies   account // of calls that are received
	answers  account
	calls    account // that are being answered
	streams  account
	invited  account // guests that are being answered

	life context.Context
	end  context.CancelFunc
	all  sync.WaitGroup

	refusals seldom
	doors    doors
	passing  passing
	kinds    kinds
	links    links
	pipes    pipes
}

// kinds are the handlers by the kind of call.
type kinds struct {
	sync.RWMutex
	calls   map[string]Handler
	streams map[string]StreamHandler
	conns   map[string]ConnHandler
	invite  Inviter
}

// Listen opens the port of a node, which serves until Close.
func Listen(o Options) (*Front, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	id, err := o.Key.identify(o.Now())
	if err != nil {
		return nil, err
	}
	f := &Front{o: o}
	if o.Dir != "" {
		if f.files, err = id.write(o.Dir); err != nil {
			return nil, err
		}
	}
	if f.listener, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, fmt.Errorf("port for the other nodes: %w", err)
	}
	if o.Addr == "" {
		f.o.Addr = f.listener.Addr().String()
	}
	f.identity.Store(&id)
	f.bodies.limit, f.answers.limit = o.MaxBodies, o.MaxBodies
	f.invited.limit = maxInvited
	f.calls.limit, f.streams.limit = 4*int64(o.MaxCalls), int64(o.MaxStreams)
	f.kinds.calls, f.kinds.streams = map[string]Handler{}, map[string]StreamHandler{}
	f.kinds.conns = map[string]ConnHandler{}
	f.pipes.init(o.MaxPipes)
	f.refusals.log = o.Logger
	f.life, f.end = context.WithCancel(context.Background())
	f.links.init()
	f.all.Go(f.accept)
	f.all.Go(f.renew)
	return f, nil
}

// Addr is where the other nodes reach this one.
func (f *Front) Addr() string { return f.o.Addr }

// Files are the certificates for etcd.
func (f *Front) Files() etcdlog.TLS { return f.files }

// CertificateEnds is when the certificate of this node ends. It is renewed long before.
func (f *Front) CertificateEnds() time.Time { return f.identity.Load().at.Add(certLife) }

// Close ends all connections and calls, and returns when nothing of the front runs any more.
func (f *Front) Close() error {
	f.end()
	err := f.listener.Close()
	f.PassTo(nil)
	f.Keep(nil)
	f.pipes.close()
	f.all.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Handle has calls of a kind answered. Those that come before, or after a handler of nil, are refused as not seen.
func (f *Front) Handle(kind string, h Handler) {
	f.kinds.Lock()
	defer f.kinds.Unlock()
	f.kinds.calls[kind] = h
}

// HandleStream has streams of a kind answered.
func (f *Front) HandleStream(kind string, h StreamHandler) {
	f.kinds.Lock()
	defer f.kinds.Unlock()
	f.kinds.streams[kind] = h
}

// renewCheck is how often the age of the certificate is looked at.
const renewCheck = time.Hour

// renew issues the certificate anew long before it ends, and after the clock was set back.
func (f *Front) renew() {
	for pause.For(f.life, renewCheck) == nil {
		f.renewAt(f.o.Now())
	}
}

func (f *Front) renewAt(now time.Time) {
	id := *f.identity.Load()
	if age := now.Sub(id.at); age >= 0 && age < renewAge {
		return
	}
	id, err := id.renewed(now)
	if err == nil && f.o.Dir != "" {
		_, err = id.write(f.o.Dir)
	}
	if err != nil {
		f.o.Logger.Error("the certificate of this node was not renewed; it is tried again in an hour", "error", err)
		return
	}
	f.identity.Store(&id)
}

// serverTLS is how this end of an accepted connection shows itself, and what it asks of the other.
func (f *Front) serverTLS() *tls.Config {
	id := f.identity.Load()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{Protocol}, Time: f.o.Now,
		Certificates: []tls.Certificate{id.cert}, ClientCAs: id.trusted(), ClientAuth: tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return s.PeerCertificates[0].VerifyHostname(nameInCerts)
		},
	}
}

// clientTLS is the same for a connection that this node makes.
func (f *Front) clientTLS() *tls.Config {
	id := f.identity.Load()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{Protocol}, Time: f.o.Now,
		Certificates: []tls.Certificate{id.cert}, RootCAs: id.trusted(), ServerName: nameInCerts,
		SessionTicketsDisabled: true,
	}
}

// An account bounds how much of something is taken.
type account struct {
	limit int64
	taken atomic.Int64
}

func (a *account) take(n int64) bool {
	if a.taken.Add(n) > a.limit {
		a.taken.Add(-n)
		return false
	}
	return true
}

func (a *account) give(n int64) { a.taken.Add(-n) }

// seldom logs one of many refusals, which anybody on the network can cause, and how many it has left out.
type seldom struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
	more int
}

const seldomPause = 5 * time.Second

func (s *seldom) warn(now time.Time, remote net.Addr, err error) {
	s.mu.Lock()
	more := s.more
	if since := now.Sub(s.last); since >= 0 && since < seldomPause {
		s.more++
		s.mu.Unlock()
		return
	}
	s.last, s.more = now, 0
	s.mu.Unlock()
	s.log.Warn("a connection to the port for nodes was refused", "remote", remote, "error", err, "more", more)
}
