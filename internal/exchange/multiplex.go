package exchange

import (
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/clientaddr"
)

// This file counts what requests of HTTP/2 hold while their clients are waited for. A connection carries a hundred of them, so
// that none is too small to count. Of those of HTTP/1.1 there are no more than connections.

// requestBytes is what a request takes beside its head: a goroutine, and the buffers of net/http.
const requestBytes = 32 << 10

// HeldBytes returns what a request takes while it waits for its client.
func HeldBytes(r *http.Request) int64 {
	bytes := requestBytes + len(r.Host) + max(len(r.RequestURI), len(r.URL.Path)+len(r.URL.RawQuery)) // the address as it was sent is let go of for streams
	for name, values := range r.Header {
		for _, value := range values {
			bytes += len(name) + len(value)
		}
	}
	return int64(bytes)
}

// Hold takes memory for a request over HTTP/2 whose client is to take an answer; false if there is not enough. What it
// returns gives that back.
func Hold(answers *budget.Budget, r *http.Request) (release func(), ok bool) {
	if r.ProtoMajor != 2 {
		return func() {}, true
	}
	client := budget.Client{Connection: clientaddr.Of(r)}
	client.Network = clientaddr.Network(client.Connection.Addr())
	claim := answers.Claim(client, true)
	return claim.Release, claim.Grow(HeldBytes(r))
}

// Settle leaves what is left of an answer over HTTP/2 to net/http as its tail, or waits until the client has taken it, and holds memory
// until then: net/http would wait for that when the handler has returned. Without the memory, the client loses the request without an answer. An answer
// whose front has waited for that itself has nothing left. Within is how long the client may take nothing.
func Settle(w http.ResponseWriter, r *http.Request, answers *budget.Budget, within time.Duration) {
	if x := Of(w); r.ProtoMajor != 2 || x != nil && !x.unsent || LeaveTail(w, r) {
		return
	}
	release, ok := Hold(answers, r)
	defer release()
	if !ok {
		panic(http.ErrAbortHandler)
	}
	// Errors are of writers that know no deadlines, and of clients that have gone.
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(within)) //nolint:forbidigo // the deadline of a connection
	_ = control.Flush()
}
