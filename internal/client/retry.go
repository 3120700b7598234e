package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A backoff says how long to wait between attempts: twice as long each time, up to
// a bound, and never exactly, so that many clients do not come back together.
type backoff struct {
	attempts       int
	first, longest time.Duration
	random         func() float64 // from 0 to 1
}

// wait returns how long to wait behind an attempt, counted from 1.
func (b backoff) wait(attempt int) time.Duration {
	wait := b.first << min(attempt-1, 20)
	wait = min(wait, b.longest)
	return wait/2 + time.Duration(b.random()*float64(wait/2))
}

// longestRetryAfter bounds what a server can make a client wait.
const longestRetryAfter = 2 * time.Minute

// after decides whether a request that failed is sent again, and when. One that
// the server may have done is only if it is repeatable.
func (b backoff) after(attempt int, repeatable bool, err error) (time.Duration, bool) {
	if attempt >= b.attempts {
		return 0, false
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		busy := status.Status == http.StatusServiceUnavailable || status.Status == http.StatusTooManyRequests
		return max(b.wait(attempt), min(status.RetryAfter, longestRetryAfter)), busy
	}
	if broken, ok := errors.AsType[*ConnectionError](err); ok {
		return b.wait(attempt), repeatable || !broken.Sent
	}
	return 0, false
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// rewind reports whether a body can be sent again, and goes back to its start.
func rewind(body io.Reader) bool {
	if body == nil {
		return true
	}
	seeker, ok := body.(io.Seeker)
	if !ok {
		return false
	}
	_, err := seeker.Seek(0, io.SeekStart)
	return err == nil
}

// errIdle says that a server has sent nothing for too long.
var errIdle = errors.New("nothing came for too long")

// An idleBody ends a request whose answer stalls.
type idleBody struct {
	io.ReadCloser
	stalled func() bool
	explain func(error) error
	cancel  context.CancelCauseFunc
	limit   time.Duration
	timer   *time.Timer
	once    sync.Once
}

// idle wraps the body of an answer whose request has ctx. Errors of reading are
// those of this package.
func (c *Client) idle(ctx context.Context, body io.ReadCloser, cancel context.CancelCauseFunc, limit time.Duration) *idleBody {
	return &idleBody{
		ReadCloser: body, cancel: cancel, limit: limit,
		explain: c.failure,
		stalled: func() bool { return errors.Is(context.Cause(ctx), errIdle) },
		timer:   time.AfterFunc(limit, func() { cancel(errIdle) }),
	}
}

// Read counts the time that it waits itself, not that which its caller takes.
func (b *idleBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.limit)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	switch {
	case err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return n, err
	case b.stalled():
		err = errIdle // instead of that the request was given up
	}
	return n, b.explain(err)
}

func (b *idleBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.once.Do(func() { b.cancel(nil) })
	return err
}
