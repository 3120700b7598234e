package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"

	"github.com/livetree/livetree/internal/exchange"
)

// withTails returns the context of a connection, for net/http, which has not begun to serve it. If it is one of HTTP/2, it may leave the
// ends of answers to net/http, which waits for its client until the deadline that beginning sets.
func (s *serving) withTails(ctx context.Context, conn net.Conn) context.Context {
	bound := boundBelow(conn)
	if secure, ok := conn.(*tls.Conn); !ok || bound == nil || secure.ConnectionState().NegotiatedProtocol != "h2" {
		return ctx
	}
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return ctx
	}
	at := remote.AddrPort()
	at = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()) // as clientaddr.Of has it
	bound.tails = exchange.NewTails(s.options.answers, at, maxStreamsPerConnection, s.options.limits.write)
	return exchange.WithTails(ctx, bound.tails)
}
