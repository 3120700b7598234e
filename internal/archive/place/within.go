package place

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// maxCalls is how many calls of the file system may be under way. Those that hang, since
	// the machine that a mount is from is gone, are left behind, and count until they return.
	maxCalls = 32
	// openTime is how long OpenFile waits for the directory.
	openTime = 2 * time.Second
	// readBytes is how much is read from a file at once.
	readBytes = 256 << 10
)

// calls are the calls that may still be made.
type calls chan struct{}

func newCalls() calls { return make(calls, maxCalls) }

// within makes a call on a goroutine of its own, and leaves it behind if ctx ends first.
func within[T any](ctx context.Context, c calls, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	select {
	case c <- struct{}{}:
	case <-ctx.Done():
		return none, fmt.Errorf("%d calls hang: %w", maxCalls, ctx.Err())
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-c }()
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// A fileReader reads a file, until ctx ends.
type fileReader struct {
	ctx    context.Context
	calls  calls
	file   *os.File
	buffer []byte // nobody else's while a call is under way
	rest   []byte // of it, not read yet
	failed error
}

// Read implements io.Reader.
func (r *fileReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && r.failed == nil {
		if r.buffer == nil {
			r.buffer = make([]byte, readBytes)
		}
		var n int
		n, r.failed = within(r.ctx, r.calls, func() (int, error) { return r.file.Read(r.buffer) })
		r.rest = r.buffer[:n]
	}
	if len(r.rest) == 0 {
		return 0, r.failed
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *fileReader) Close() error { return r.file.Close() }

var _ io.ReadCloser = (*fileReader)(nil)
