package passon

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"

	"github.com/livetree/livetree/internal/clientaddr"
)

// A Door is a listener for the connections that other nodes pass on.
type Door struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewDoor returns a door that is open.
func NewDoor() *Door { return &Door{conns: make(chan net.Conn), done: make(chan struct{})} }

// Take takes a connection of another node, with what that says of its client. It waits until a server accepts it.
func (d *Door) Take(_ string, body []byte, c net.Conn) {
	var who client
	if json.Unmarshal(body, &who) != nil {
		_ = c.Close()
		return
	}
	select {
	case d.conns <- &passedConn{c, who}:
	case <-d.done:
		_ = c.Close()
	}
}

// Accept implements [net.Listener].
func (d *Door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. It may be called twice, and for nil.
func (d *Door) Close() error {
	if d == nil {
		return nil
	}
	d.once.Do(func() { close(d.done) })
	return nil
}

// Addr implements [net.Listener].
func (d *Door) Addr() net.Addr { return doorAddr{} }

type doorAddr struct{}

func (doorAddr) Network() string { return "node" }
func (doorAddr) String() string  { return "other nodes" }

// A passedConn is a connection of a client to another node.
type passedConn struct {
	net.Conn
	client client
}

// clientKey is the key of the client of a connection.
type clientKey struct{}

// ConnContext is for the [http.Server] that accepts at a door.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if passed, ok := c.(*passedConn); ok {
		return context.WithValue(ctx, clientKey{}, passed.client)
	}
	return ctx
}

// Identify returns a handler whose requests come from the clients of other nodes. It belongs around everything that asks for a
// client's address.
func Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, ok := r.Context().Value(clientKey{}).(client); ok {
			r = clientaddr.WithForwardedHost(r, who.Host)
			r.RemoteAddr = who.Remote
		}
		next.ServeHTTP(w, r)
	})
}
