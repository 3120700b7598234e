package exchange

import (
	"net/http"
	"time"
)

// BoundBody bounds how long the body of a request over HTTP/1 may take that no handler reads, or
// not to its end. Before an answer begins, and when it is over, net/http waits for up to 256 KiB of it,
// without end unless there is a deadline. At the deadline the answer goes out, and the
// connection ends with it.
//
// A handler that reads the body sets deadlines of its own, and leaves the last one where it has
// not read to the end. When the end is read, net/http lifts it: a long answer is not cut.
func BoundBody(w http.ResponseWriter, r *http.Request, until time.Time) {
	if r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody {
		// Errors are of writers that know no deadlines: those of tests.
		_ = http.NewResponseController(w).SetReadDeadline(until)
	}
}
