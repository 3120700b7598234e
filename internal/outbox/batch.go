package outbox

import (
	"io"
	"sync"
)

// gatherBytes is how much of what is ready goes out in one write.
const gatherBytes = 16 << 10

// prefixBytes is what may be put in front of a frame without a buffer growing.
const prefixBytes = 64

// buffers are where frames are gathered. A client has one only while it is told
// something.
var buffers = sync.Pool{New: func() any {
	buffer := make([]byte, 0, gatherBytes+prefixBytes)
	return &buffer
}}

// A Batch gathers frames that are ready, so that they go out in few writes. It must be
// freed.
type Batch struct {
	// Bytes are what was gathered. A Teller may append a few that belong to the next
	// frame.
	Bytes []byte

	client *Client
	buffer *[]byte
}

// NewBatch returns a batch of what the client is told.
func (c *Client) NewBatch() Batch {
	buffer := buffers.Get().(*[]byte)
	return Batch{Bytes: (*buffer)[:0], client: c, buffer: buffer}
}

// Add gathers a frame, or sends it after what was gathered. It does not keep the
// frame, which may be shared with other clients.
func (b *Batch) Add(frame []byte) error {
	if len(b.Bytes)+len(frame) <= gatherBytes {
		b.Bytes = append(b.Bytes, frame...)
		return nil
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return b.client.Send(frame)
}

// Flush sends what was gathered.
func (b *Batch) Flush() error {
	if len(b.Bytes) == 0 {
		return nil
	}
	p := b.Bytes
	b.Bytes = p[:0]
	return b.client.Send(p)
}

// Free gives the memory back. What was not flushed is not sent.
func (b *Batch) Free() { buffers.Put(b.buffer) }

// A LongWriter sends something long as it is printed, such as the data that a client
// begins with. It ends with an error when the client takes it too slowly. It must be
// flushed and freed.
type LongWriter struct {
	// Bytes are what was gathered. A Teller may append a few.
	Bytes []byte
	// Sending, if set, is called before the client is sent something, and Taken when it
	// has taken that, for however long it needs. What Taken fails with, Write does.
	Sending func()
	Taken   func() error

	client *Client
	buffer *[]byte
	rate   Rate // at which the client takes it
	failed error
	sent   bool
}

// NewLongWriter returns a writer for one thing.
func (c *Client) NewLongWriter() *LongWriter {
	buffer := buffers.Get().(*[]byte)
	return &LongWriter{Bytes: (*buffer)[:0], client: c, buffer: buffer}
}

// Write implements io.Writer. What is long is sent in pieces, between which the rate is looked at.
func (w *LongWriter) Write(p []byte) (int, error) {
	if len(w.Bytes)+len(p) > gatherBytes {
		if err := w.Flush(); err != nil {
			return 0, err
		}
	}
	if len(p) >= gatherBytes {
		for rest := p; len(rest) > 0; {
			n := min(len(rest), PieceBytes)
			if err := w.send(rest[:n]); err != nil {
				return 0, err
			}
			rest = rest[n:]
		}
		return len(p), nil
	}
	w.Bytes = append(w.Bytes, p...)
	return len(p), nil
}

// Flush sends what was gathered.
func (w *LongWriter) Flush() error {
	if len(w.Bytes) == 0 {
		return nil
	}
	err := w.send(w.Bytes)
	w.Bytes = w.Bytes[:0]
	return err
}

func (w *LongWriter) send(p []byte) error {
	if w.failed = w.rate.Check(); w.failed != nil {
		return w.failed
	}
	w.sent = true
	if w.Sending != nil {
		w.Sending()
	}
	now := w.client.clients.opts.Now
	begun := now()
	w.failed = w.client.Send(p)
	w.rate.Count(len(p), now().Sub(begun))
	if w.failed == nil && w.Taken != nil {
		w.failed = w.Taken()
	}
	return w.failed
}

// Sent reports whether any of it is out.
func (w *LongWriter) Sent() bool { return w.sent }

// Failed returns why the client could not be sent more; nil if it could.
func (w *LongWriter) Failed() error { return w.failed }

// Free gives the memory back. What was not flushed is not sent.
func (w *LongWriter) Free() { buffers.Put(w.buffer) }

var _ io.Writer = (*LongWriter)(nil)
