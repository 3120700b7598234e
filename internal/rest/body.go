package rest

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// bodyIdle is how long a client may be silent in the middle of a body.
	bodyIdle = 30 * time.Second
	// bodyRate is the least it must send, in bytes a second, after bodyIdle.
	bodyRate = 1 << 10
)

// A budget bounds the memory that all bodies take together.
type budget struct {
	limit int64
	taken atomic.Int64
}

// take adds to what is taken, or refuses to.
func (b *budget) take(bytes int64) bool {
	if b.taken.Add(bytes) <= b.limit {
		return true
	}
	b.taken.Add(-bytes)
	return false
}

// charge takes memory for the call's body from the budget.
func (c *call) charge(bytes int64) error {
	if c.charged+bytes > c.bodies.limit {
		return c.tooLarge("in memory")
	}
	if !c.bodies.take(bytes) {
		return fault.New(fault.Unavailable, "too much data is being written at the moment, try again")
	}
	c.charged += bytes
	return nil
}

// release gives the memory back.
func (c *call) release() { c.bodies.taken.Add(-c.charged) }

func (c *call) tooLarge(where string) error {
	return fault.New(fault.TooLarge,
		"Data to write exceeds the maximum size that can be modified with a single request: %d bytes, %d %s", c.opts.MaxBody, c.bodies.limit, where)
}

// body returns the reader of the request's body, and how to decode it.
func (c *call) body() (io.Reader, tree.DecodeOptions, error) {
	opts := tree.DecodeOptions{Depth: c.path().Depth(), Charge: c.charge}
	if c.verb == post {
		opts.Depth++
	}
	if encoding := c.r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, opts, errEncoding
	}
	if c.r.ContentLength > c.opts.MaxBody {
		return nil, opts, c.tooLarge("in memory")
	}
	return &bodyReader{call: c, control: http.NewResponseController(c.w), started: c.opts.Now()}, opts, nil
}

// A bodyReader reads a body of bounded size from a client that keeps sending.
type bodyReader struct {
	*call
	control *http.ResponseController
	started time.Time
	read    int64
}

func (b *bodyReader) Read(p []byte) (int, error) {
	now := b.opts.Now()
	if elapsed := now.Sub(b.started); elapsed > bodyIdle && float64(b.read) < bodyRate*elapsed.Seconds() {
		return 0, errSlowBody
	}
	// Errors are of writers that know no deadlines: those of tests.
	_ = b.control.SetReadDeadline(now.Add(bodyIdle))
	n, err := b.r.Body.Read(p)
	if b.read += int64(n); b.read > b.opts.MaxBody {
		return 0, b.tooLarge("in memory")
	}
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
		return n, err
	}
	if err != nil {
		return n, fault.Wrap(fault.Invalid, err, "the body ends early")
	}
	return n, nil
}
