package lane

import (
	"errors"
	"io"
)

// A body is that of a request, of known length.
type body struct {
	conn  *conn
	left  int64
	hasty bool // the handler has set a deadline of its own
}

func (b *body) Read(p []byte) (n int, err error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), b.left)]
	if c := b.conn; c.start < c.end {
		n = copy(p, c.in[c.start:c.end])
		c.start += n
	} else if err = b.expect(); err == nil {
		n, err = c.raw.Read(p)
	}
	b.left -= int64(n)
	switch {
	case b.left == 0:
		err = io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// expect bounds how long the next read waits for the client, unless the handler
// does. The deadline that is set may be that of an earlier wait, and nearly over.
func (b *body) expect() error {
	if b.hasty {
		return nil
	}
	return b.conn.waitFor(b.conn.lane.opts.First)
}

// Close implements io.Closer. What was not read is seen to when the handler has
// returned.
func (b *body) Close() error { return nil }

// isHere reports whether no read will wait for the client.
func (b *body) isHere() bool { return b.left <= int64(b.conn.end-b.conn.start) }

// discard reads what is left of a body, so that another request can be read; false
// if that is too much.
func (b *body) discard(limit int64) bool {
	if b.left > limit {
		return false
	}
	c := b.conn
	if !b.isHere() && c.waitFor(c.lane.opts.First) != nil {
		return false
	}
	n := min(b.left, int64(c.end-c.start))
	c.start += int(n)
	b.left -= n
	for b.left > 0 { // of what was read before, nothing is left
		n, err := c.raw.Read(c.in[:min(b.left, inBytes)])
		if b.left -= int64(n); err != nil {
			return false
		}
	}
	return true
}
