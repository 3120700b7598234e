package rest

import (
	"context"
	"net/http"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/exchange"
)

// This file counts what requests of HTTP/2 hold. A connection carries many of them,
// so that none is too small to count.

// isMultiplexed reports whether other requests share the connection.
func (u *usage) isMultiplexed() bool { return u.r.ProtoMajor == 2 }

// waitingBytes returns what the request takes while it waits for its client.
func (u *usage) waitingBytes() int64 { return exchange.HeldBytes(u.r) }

// chargeWaiting takes the memory of a request over HTTP/2 that has no body and waits for the disk, or for other nodes: when
// these do not answer, all that come wait for seconds.
func (u *usage) chargeWaiting() error {
	if !u.isMultiplexed() {
		return nil
	}
	return u.chargeAnswer(u.waitingBytes(), true)
}

// queued returns a context by which a request over HTTP/2 that waits for the keys of an issuer takes memory. It is not known
// who asks then, and administrators do not share what their address has, so it gives that back.
func (u *usage) queued(ctx context.Context) context.Context {
	if !u.isMultiplexed() {
		return ctx
	}
	return auth.WithQueue(ctx, keyQueue{u})
}

// A keyQueue counts who waits for the keys of an issuer.
type keyQueue struct{ *usage }

// Join implements auth.Queue.
func (q keyQueue) Join() error { return q.chargeWaiting() }

// Leave implements auth.Queue.
func (q keyQueue) Leave() { q.release() }

// chargeMultiplexed takes the memory of an answer over HTTP/2 before it is made. A
// client that takes none of a hundred answers has all of them wait, and what they were
// made from with them.
func (u *usage) chargeMultiplexed() error {
	if !u.isMultiplexed() {
		return nil
	}
	return u.chargeAnswer(longAnswer+u.waitingBytes(), true)
}

// settle leaves the end of an answer over HTTP/2 to net/http, if it is counted as a tail of its connection. Else it waits until
// the client has taken the end, and counts it until then: net/http would send it after the handler has
// returned. A client for which that is too much loses the request without an answer.
func (a *reply) settle() {
	if !a.usage.isMultiplexed() {
		return
	}
	a.dropBody()
	if exchange.LeaveTail(a.w, a.r) {
		return
	}
	if err := a.usage.chargeAnswer(a.usage.waitingBytes(), true); err != nil {
		abort()
	}
	// Errors are of writers that know no deadlines, and of clients that have gone.
	control := http.NewResponseController(a.w)
	_ = control.SetWriteDeadline(a.now().Add(WriteIdle))
	_ = control.Flush()
}

// dropBody gives up what has come of a body that is not read. It would be kept until
// the request is over.
func (a *reply) dropBody() {
	if a.usage.isMultiplexed() && a.r.Body != nil {
		_ = a.r.Body.Close()
	}
}
