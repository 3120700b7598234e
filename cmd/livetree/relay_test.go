package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long a test waits for what should come at once, on a machine
// that has much else to do.
const patience = 3 * time.Minute

// ownHost returns an address of this machine for a server. Where a machine has more
// than one for itself, it is one that nobody else uses: when the server has stopped,
// its port is not taken by another that starts.
func ownHost() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// A relay is an address that stays, and leads to a server that may move or be slow. It
// is one of those that every certificate of ours covers.
type relay struct {
	net.Listener
	server atomic.Pointer[string]
	// left is how many bytes of clients pass at once, of those that are slowed down;
	// fast is closed when none is.
	left atomic.Int64
	fast chan struct{}

	ctx context.Context
	all sync.WaitGroup
}

func newRelay(t *testing.T, server string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, fast: make(chan struct{})}
	r.left.Store(math.MaxInt64)
	r.lead(server)
	ctx, cancel := context.WithCancel(context.Background())
	r.ctx = ctx
	r.all.Go(r.accept)
	t.Cleanup(func() {
		listener.Close()
		cancel()
		r.all.Wait()
	})
	return r
}

// lead has new connections lead to a server.
func (r *relay) lead(server string) { r.server.Store(&server) }

// slowDown lets so many bytes of clients pass, and then some each tenth of a second.
func (r *relay) slowDown(behind int64) { r.left.Store(behind) }

func (r *relay) accept() {
	for {
		client, err := r.Accept()
		if err != nil {
			return
		}
		r.all.Go(func() { r.pass(client) })
	}
}

// pass connects a client with the server. If there is none, the client is cut.
func (r *relay) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", *r.server.Load())
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(r.ctx, func() {
		client.Close()
		server.Close()
	})()
	r.all.Go(func() {
		_, _ = io.Copy(client, server)
		client.Close() // the end of one is that of the other
	})
	piece := make([]byte, 4<<10)
	for {
		n, err := client.Read(piece)
		if err != nil {
			return
		}
		if r.left.Add(-int64(n)) < 0 {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-r.fast:
			case <-r.ctx.Done():
			}
		}
		if _, err := server.Write(piece[:n]); err != nil {
			return
		}
	}
}
