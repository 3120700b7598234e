package client

import (
	"context"
	"io"
	"time"
)

// Events reads all events of a stream, for tests.
func Events(r io.Reader, maxBytes int) ([]Event, error) {
	frames := newFrameReader(r, maxBytes)
	var all []Event
	for {
		f, err := frames.next()
		if err != nil {
			return all, err
		}
		e, err := f.event()
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
}

// Moved returns how many bytes of its text a Splitter has moved to make room.
func Moved(s *Splitter) int64 { return s.text.moved }

// IdleBody wraps a body such that reading it fails when nothing comes for limit.
func IdleBody(c *Client, body io.ReadCloser, limit time.Duration) io.ReadCloser {
	ctx, cancel := context.WithCancelCause(context.Background())
	// The transport closes the body of a request that is given up.
	context.AfterFunc(ctx, func() { _ = body.Close() })
	return c.idle(ctx, body, cancel, limit)
}
