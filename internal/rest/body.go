package rest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// bodyRate is the least that a client must send of a body, in bytes a second, over
	// BodyWindow.
	bodyRate = 16 << 10
	// BodyWindow is also how long a body may take that is not wanted.
	BodyWindow = 10 * time.Second
	bodyPart   = bodyRate * int64(BodyWindow/time.Second)
)

// A body is that of a request: of bounded size, from a client that keeps sending. Each
// bodyPart must come within BodyWindow; only the time counts in which the client is
// waited for.
type body struct {
	r       *http.Request
	control http.ResponseController
	now     func() time.Time
	most    int64 // the largest one there may be
	usage   *usage
	judge   judge // of a body that turns out to be large

	unread bool  // it was not read to its end
	used   int64 // memory, by what was decoded so far
	read   int64
	judged bool // whether it may be written at all

	part   int64         // what has come of the current part
	waited time.Duration // for it
}

// A judge says whether a body is worth reading.
type judge interface{ mayWrite() error }

// charge takes memory for the body from the budget, as far as it was not reserved.
func (b *body) charge(bytes int64) error {
	b.used += bytes
	return b.reserve(b.used)
}

// reserve takes memory up to a total from the budget. What a body announces is
// reserved before it is read: many that come in together would otherwise all
// get some way and none to its end.
func (b *body) reserve(total int64) error {
	claim := b.usage.ofBody(b.isSmall())
	switch {
	case total <= claim.Size():
		return nil
	case total > claim.Most():
		return b.tooLarge()
	case !claim.Grow(total):
		return fault.New(fault.Unavailable, "too much data is being written at the moment, try again")
	}
	return nil
}

func (b *body) tooLarge() error {
	return fault.New(fault.TooLarge,
		"Data to write exceeds the maximum size that can be modified with a single request: %d bytes, or %d in memory",
		b.most, b.usage.newClaim(b.usage.bodies, false).Most())
}

// open begins to read the body. It returns how to decode what is to be at a depth of
// the tree.
func (b *body) open(depth int) (tree.DecodeOptions, error) {
	b.unread = b.r.ContentLength != 0
	opts := tree.DecodeOptions{Depth: depth}
	if !b.isTiny() {
		opts.Charge = b.charge
	}
	if encoding := b.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return opts, errEncoding
	}
	if b.r.ContentLength > b.most {
		return opts, b.tooLarge()
	}
	if b.r.ContentLength > smallBody {
		opts.Bytes = b.announces()
	}
	if b.usage.isMultiplexed() {
		return opts, b.charge(b.usage.waitingBytes())
	}
	return opts, nil
}

const (
	// tinyBody is the length up to which a body takes nothing from the budget over
	// HTTP/1.1: there are no more of them than connections.
	tinyBody = 4 << 10
	// smallBody is the length up to which a body is small.
	smallBody = 64 << 10
)

// isTiny reports whether the body announces that it is not worth counting.
func (b *body) isTiny() bool {
	return b.r.ContentLength >= 0 && b.r.ContentLength <= tinyBody && !b.usage.isMultiplexed()
}

// isSmall reports whether the body announces that it is small.
func (b *body) isSmall() bool { return b.r.ContentLength >= 0 && b.r.ContentLength <= smallBody }

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
func (a *reply) failUnread(status int, text string) {
	control := http.NewResponseController(a.w)
	if status == http.StatusRequestTimeout {
		a.w.Header().Set("Connection", "close") // also of HTTP/2, where net/http sends GOAWAY
	}
	if a.r.ProtoMajor != 1 || control.EnableFullDuplex() != nil {
		a.usage.release()
		exchange.Fail(a.w, status, text)
		a.settle()
		return
	}
	a.w.Header().Set("Connection", "close")
	exchange.Fail(a.w, status, text)
	if control.Flush() != nil {
		return
	}
	a.usage.release()
	_ = control.SetReadDeadline(a.now().Add(drainTime))
	_, _ = io.CopyN(io.Discard, a.r.Body, drainBytes)
}

// skipBytes is how much of a body that is not wanted is read.
const skipBytes = 256 << 10

// skip reads a body that is not wanted, as of a GET, before anything is held for the
// answer: net/http would wait for it when the answer begins. The connection ends with the
// answer if the body is longer than skipBytes, or not sent before it is asked for. HTTP/2 can
// tell a sender to stop.
func (b *body) skip(answer http.Header) error {
	if b.r.ProtoMajor != 1 || b.r.Body == nil || b.r.Body == http.NoBody {
		return nil
	}
	if b.r.ContentLength > skipBytes || b.r.Header.Get("Expect") != "" {
		answer.Set("Connection", "close")
		return nil
	}
	// Errors are of writers that know no deadlines: those of tests.
	_ = b.control.SetReadDeadline(b.now().Add(BodyWindow))
	_, err := io.CopyN(io.Discard, b.r.Body, skipBytes)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.control.SetReadDeadline(time.Time{})
		return nil
	case err == nil:
		answer.Set("Connection", "close")
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.unread = true
		return errSlowBody
	}
	return fault.Wrap(fault.Invalid, err, "the body ends early")
}

// announced is the share of the budget that a body may reserve because of what
// it announces; the rest it gets as it comes.
const announced = 16

// announce reserves memory for a large body once it has begun to come: a client
// that announces one and sends nothing takes nothing.
func (b *body) announce() error {
	if b.read == 0 || b.r.ContentLength <= smallBody {
		return nil
	}
	return b.reserve(b.announces())
}

// announces is what a body that announces its length may reserve because of that.
func (b *body) announces() int64 { return min(b.r.ContentLength, b.usage.bodies.Limit()/announced) }

// Read implements io.Reader, after open.
func (b *body) Read(p []byte) (int, error) {
	if err := b.admit(); err != nil {
		return 0, err
	}
	before := b.now()
	// Errors are of writers that know no deadlines: those of tests.
	_ = b.control.SetReadDeadline(before.Add(BodyWindow - b.waited))
	n, err := b.r.Body.Read(p)
	b.read += int64(n)
	switch {
	case b.read > b.most:
		return 0, b.tooLarge()
	case err == io.EOF:
		b.unread = false
		_ = b.control.SetReadDeadline(time.Time{})
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, errSlowBody
	case err != nil:
		return n, fault.Wrap(fault.Invalid, err, "the body ends early")
	}
	return n, b.keepsUp(int64(n), b.now().Sub(before))
}

// keepsUp counts what has come, and refuses a client that is too slow.
func (b *body) keepsUp(bytes int64, waited time.Duration) error {
	b.part += bytes
	b.waited += waited
	switch {
	case b.part >= bodyPart:
		b.part, b.waited = 0, 0
	case b.waited >= BodyWindow:
		return errSlowBody
	}
	return nil
}

// admit is asked before each read: a body that is large, and can only be denied, is
// not read, and one that is announced has its memory reserved.
func (b *body) admit() error {
	if !b.judged && max(b.r.ContentLength, b.read) > smallBody {
		b.judged = true
		if err := b.judge.mayWrite(); err != nil {
			return err
		}
	}
	return b.announce()
}

// mayWrite judges what can be judged of a write before its body is read.
func (c *call) mayWrite() error {
	if c.database == nil || !c.target.isData() || c.who.Debug {
		return nil // an identity that debugs is shown all rules that were tried
	}
	snapshot := c.snapshot()
	defer snapshot.Close()
	return snapshot.MayWrite(c.who, c.path(), c.verb&(patch|post) != 0)
}
