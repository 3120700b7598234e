package rest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/outbox"
)

// A stepClock is a clock that stands until it is moved.
type stepClock struct{ time.Time }

func (c *stepClock) now() time.Time        { return c.Time }
func (c *stepClock) move(by time.Duration) { c.Time = c.Add(by) }

// A deadlineWriter is a client for which a piece takes some time, and who knows the
// deadline of writes.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	clock    *stepClock
	takes    time.Duration
	deadline time.Time
}

func (d *deadlineWriter) SetWriteDeadline(t time.Time) error {
	d.deadline = t
	return nil
}

func (d *deadlineWriter) Write(p []byte) (int, error) {
	d.clock.move(d.takes)
	return d.ResponseRecorder.Write(p)
}

// A bodyOf is content of unknown length that is printed by a function.
type bodyOf func(w io.Writer) error

func (b bodyOf) Size() (int, bool)         { return 0, false }
func (b bodyOf) Close() error              { return nil }
func (b bodyOf) PrintTo(w io.Writer) error { return b(w) }

// printPieces returns content of so many pieces of 32 KiB, before each of which a
// function is called.
func printPieces(count int, before func(piece int)) bodyOf {
	return func(w io.Writer) error {
		for piece := range count {
			before(piece)
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return err
			}
		}
		return nil
	}
}

// answerOf prints content to a client, and returns how it ended; outbox.ErrSlow if the
// answer was cut off.
func answerOf(h *Handler, w http.ResponseWriter, protocol int, body content) (err error) {
	defer func() {
		if recover() != nil {
			err = outbox.ErrSlow
		}
	}()
	r := httptest.NewRequest(http.MethodGet, "/a.json", nil)
	r.ProtoMajor = protocol
	c := h.newCall(w, r)
	c.verb = get
	defer c.usage.release()
	return c.reply.print(http.StatusOK, body)
}

// TestSlowReaders: only the time that a client takes for an answer counts against it,
// not the time that the server takes to read the data.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	const pieces = 20
	for _, test := range []struct {
		name            string
		works, takes    time.Duration // for each piece
		wantsCompletion bool
	}{
		{"a fast client of a fast read", 0, 0, true},
		{"a fast client of a slow read", 2 * outbox.RateWindow, 0, true},
		{"a steady client", 0, time.Second, true},
		{"a client that takes 1 KiB a second", 0, 32 * time.Second, false},
		{"a slow client of a slow read", time.Minute, 32 * time.Second, false},
	} {
		clock := &stepClock{time.Unix(1_700_000_000, 0)}
		h := New(Options{MaxBodies: 64 << 20, Now: clock.now})
		w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder(), clock: clock, takes: test.takes}
		err := answerOf(h, w, 1, printPieces(pieces, func(int) { clock.move(test.works) }))
		if complete := err == nil && w.Body.Len() == pieces*32<<10; complete != test.wantsCompletion {
			t.Errorf("%s gets %d of %d bytes, %v; want all: %v", test.name, w.Body.Len(), pieces*32<<10, err, test.wantsCompletion)
		}
	}
}

// TestWaitingForATurnIsNotSlow: a client does not lose its answer because others have
// the turn for long.
func TestWaitingForATurnIsNotSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := &stepClock{time.Unix(1_700_000_000, 0)}
		h := New(Options{MaxBodies: 64 << 20, Now: clock.now})
		h.longReads = newTurns(1)
		h.longReads.take(addressAt(1), nil)
		w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder(), clock: clock}
		ended := make(chan error, 1)
		go func() { ended <- answerOf(h, w, 1, printPieces(5, func(int) {})) }()
		synctest.Wait()
		clock.move(2 * outbox.RateWindow)
		h.longReads.end()
		if err := <-ended; err != nil || w.Body.Len() != 5*32<<10 {
			t.Errorf("after waiting for its turn, a client gets %d of %d bytes, %v", w.Body.Len(), 5*32<<10, err)
		}
	})
}

// TestNoDeadlineBetweenWrites: net/http ends an answer over HTTP/2 at the deadline for
// writes, also if nothing is written then. So there is none while the data is read.
func TestNoDeadlineBetweenWrites(t *testing.T) {
	t.Parallel()
	clock := &stepClock{time.Unix(1_700_000_000, 0)}
	h := New(Options{MaxBodies: 64 << 20, Now: clock.now})
	w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder(), clock: clock}
	err := answerOf(h, w, 2, printPieces(5, func(piece int) {
		if !w.deadline.IsZero() {
			t.Errorf("before piece %d the deadline is %v, want none", piece, w.deadline)
		}
	}))
	if err != nil || w.deadline.IsZero() {
		t.Errorf("the answer ended with %v and the deadline %v, want one for what net/http has gathered", err, w.deadline)
	}
}
