package rest

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// bodyIdle is how long a client may be silent in the middle of a body.
	bodyIdle = 30 * time.Second
	// bodyRate is the least it must send, in bytes a second, after bodyIdle, and
	// largeBodyRate what a client must send that takes of the budget.
	bodyRate      = 1 << 10
	largeBodyRate = 16 << 10
)

// A budget bounds the memory that all bodies take together.
type budget struct {
	limit int64
	total *atomic.Int64 // for the operator

	mu    sync.Mutex
	taken int64
}

// copies is how often a body is in memory while it is written: as nodes, and as
// rows on their way to the disk. One that is alone may take the whole budget
// all the same, or none could be as large.
const copies = 2

// grow changes what one body takes, or refuses to.
func (b *budget) grow(from, to int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	others := b.taken - from
	if (others+to)*copies > b.limit && (others > 0 || to > b.limit) {
		return false
	}
	b.taken = others + to
	b.total.Add(to - from)
	return true
}

// charge takes memory for the call's body from the budget, as far as it was not
// reserved.
func (c *call) charge(bytes int64) error {
	c.used += bytes
	return c.reserve(c.used)
}

// reserve takes memory up to a total from the budget. What a body announces is
// reserved before it is read: many that come in together would otherwise all
// get some way and none to its end.
func (c *call) reserve(total int64) error {
	switch {
	case total <= c.charged:
		return nil
	case total > c.bodies.limit:
		return c.tooLarge()
	case !c.bodies.grow(c.charged, total):
		return fault.New(fault.Unavailable, "too much data is being written at the moment, try again")
	}
	c.charged = total
	return nil
}

// release gives the memory back.
func (c *call) release() {
	if c.charged > 0 {
		c.bodies.grow(c.charged, 0)
		c.charged = 0
	}
}

func (c *call) tooLarge() error {
	return fault.New(fault.TooLarge,
		"Data to write exceeds the maximum size that can be modified with a single request: %d bytes, or %d in memory",
		c.opts.MaxBody, c.bodies.limit)
}

// body returns the reader of the request's body, and how to decode it.
func (c *call) body() (io.Reader, tree.DecodeOptions, error) {
	c.unread = c.r.ContentLength != 0
	opts := tree.DecodeOptions{Depth: c.path().Depth()}
	if !c.isSmall() {
		opts.Charge = c.charge
	}
	if c.verb == post {
		opts.Depth++
	}
	if encoding := c.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, opts, errEncoding
	}
	if c.r.ContentLength > c.opts.MaxBody {
		return nil, opts, c.tooLarge()
	}
	return &bodyReader{call: c, control: *http.NewResponseController(c.w), started: c.opts.Now()}, opts, nil
}

// smallBody is the length up to which a body takes nothing from the budget: there
// are no more of them than connections.
const smallBody = 64 << 10

// isSmall reports whether the body announces that it is small.
func (c *call) isSmall() bool { return c.r.ContentLength >= 0 && c.r.ContentLength <= smallBody }

// drainBytes and drainTime bound how much of a refused body is read all the
// same. A client that is still sending when its connection is closed may not see
// the answer.
const (
	drainBytes = 32 << 20
	drainTime  = 5 * time.Second
)

// failUnread answers with an error while the client is still sending its body:
// first the answer, which it may be waiting for, then the rest of the body is
// read. HTTP/2 can tell a sender to stop.
func (c *call) failUnread(status int, text string) {
	control := http.NewResponseController(c.w)
	if c.r.ProtoMajor != 1 || control.EnableFullDuplex() != nil {
		writeError(c.w, status, text)
		return
	}
	c.w.Header().Set("Connection", "close")
	writeError(c.w, status, text)
	if control.Flush() != nil {
		return
	}
	c.release()
	_ = control.SetReadDeadline(c.opts.Now().Add(drainTime))
	_, _ = io.CopyN(io.Discard, c.r.Body, drainBytes)
}

// announced is the share of the budget that a body may reserve because of what
// it announces; the rest it gets as it comes.
const announced = 16

// announce reserves memory for a large body once it has begun to come: a client
// that announces one and sends nothing takes nothing.
func (b *bodyReader) announce() error {
	if b.read == 0 || b.r.ContentLength <= smallBody {
		return nil
	}
	return b.reserve(min(b.r.ContentLength, b.bodies.limit/announced))
}

// rate returns the least that the client must send, in bytes a second: more if
// it holds memory of the budget.
func (b *bodyReader) rate() float64 {
	if b.charged > 0 {
		return largeBodyRate
	}
	return bodyRate
}

// A bodyReader reads a body of bounded size from a client that keeps sending.
type bodyReader struct {
	*call
	control http.ResponseController
	started time.Time
	read    int64
}

func (b *bodyReader) Read(p []byte) (int, error) {
	now := b.opts.Now()
	if elapsed := now.Sub(b.started); elapsed > bodyIdle && float64(b.read) < b.rate()*elapsed.Seconds() {
		return 0, errSlowBody
	}
	if err := b.announce(); err != nil {
		return 0, err
	}
	// Errors are of writers that know no deadlines: those of tests.
	_ = b.control.SetReadDeadline(now.Add(bodyIdle))
	n, err := b.r.Body.Read(p)
	if b.read += int64(n); b.read > b.opts.MaxBody {
		return 0, b.tooLarge()
	}
	if err == io.EOF {
		b.unread = false
		_ = b.control.SetReadDeadline(time.Time{})
		return n, err
	}
	if err != nil {
		return n, fault.Wrap(fault.Invalid, err, "the body ends early")
	}
	return n, nil
}
