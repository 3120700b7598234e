//go:build !no_cluster

package etcdlog

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
)

// This file serves peers on connections that somebody else has accepted: with etcd's own handlers, and as etcd does on its own listener, which
// stays for members that have no front.

// handed is a listener of such connections.
type handed struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// Accept implements [net.Listener].
func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return timed{c}, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (h *handed) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*handed) Addr() net.Addr { return &net.UnixAddr{Name: "handed", Net: "unix"} }

// timed is a connection each read and write of which ends after the time that etcd gives its peers.
type timed struct{ net.Conn }

func (c timed) Read(b []byte) (int, error) {
	limit := time.Now().Add(rafthttp.ConnReadTimeout) //nolint:forbidigo // a deadline of the kernel's
	if err := c.SetReadDeadline(limit); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c timed) Write(b []byte) (int, error) {
	limit := time.Now().Add(rafthttp.ConnWriteTimeout) //nolint:forbidigo // a deadline of the kernel's
	if err := c.SetWriteDeadline(limit); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// plain hides from the server that a connection is one of TLS: it would speak HTTP/2 over it, which etcd does not with its peers.
type plain struct{ net.Listener }

func (l plain) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{c}, nil
}

// peerReadTime is for how long etcd reads a request of a peer.
const peerReadTime = 5 * time.Minute

// peers serves the peers of a member on connections that are handed to it.
type peers struct {
	listener *handed
	server   *http.Server
	all      sync.WaitGroup
}

func servePeers(e *embed.Etcd) (*peers, error) {
	p := &peers{listener: &handed{conns: make(chan net.Conn), closed: make(chan struct{})}}
	var l net.Listener = p.listener
	if info := e.Config().PeerTLSInfo; !info.Empty() {
		var err error
		if l, err = transport.NewTLSListener(l, &info); err != nil {
			return nil, err
		}
	}
	p.server = &http.Server{
		Handler: etcdhttp.NewPeerHandler(e.GetLogger(), e.Server), ReadTimeout: peerReadTime,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // what strangers send is no error of this node
	}
	p.all.Go(func() { _ = p.server.Serve(plain{l}) })
	return p, nil
}

// close ends all connections that were handed over.
func (p *peers) close() {
	_ = p.server.Close()
	_ = p.listener.Close()
	p.all.Wait()
}

// Take implements [Member].
func (m *member) Take(c net.Conn) {
	select {
	case m.peers.listener.conns <- c:
	case <-m.peers.listener.closed:
		_ = c.Close()
	}
}
