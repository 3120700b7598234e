package rest

import (
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/watch"
)

// A firstEvent is a source that has one event to tell.
type firstEvent struct {
	data watch.Content
	told bool
}

func (f *firstEvent) Next() (*watch.Event, bool) {
	if f.told {
		return nil, false
	}
	f.told = true
	return &watch.Event{Kind: watch.Put, Content: f.data}, true
}

func (f *firstEvent) Drained() bool { return false }
func (f *firstEvent) Recheck() bool { return true }
func (f *firstEvent) Close()        {}

// A countedWay is the way to a client that takes nothing until it is told to.
type countedWay struct {
	sending, bytes *atomic.Int32
	take           <-chan struct{}
}

func (w countedWay) Send(p []byte) error {
	w.sending.Add(1)
	defer w.sending.Add(-1)
	<-w.take
	w.bytes.Add(int32(len(p)))
	return nil
}

func (w countedWay) Gone() bool { return false }
func (w countedWay) Close()     {}
func (w countedWay) Cut()       {}

// A longBody is content that goes through some rows before its work begins.
type longBody struct {
	workedBody
	paces   int
	between func() error
}

func (b *longBody) Between(f func() error) { b.between = f }

func (b *longBody) PrintTo(w io.Writer) error {
	for range b.paces {
		if err := b.between(); err != nil {
			return err
		}
	}
	return b.workedBody.PrintTo(w)
}

// openFirst opens a stream that begins with some content.
func openFirst(t *testing.T, h *Handler, way outbox.Way, data watch.Content) {
	t.Helper()
	s := &stream{handler: h, dialect: h.dialect, watch: &firstEvent{data: data}}
	if err := h.opts.Streams.Admit(&s.client, outbox.Stream, s); err != nil {
		t.Fatal(err)
	}
	s.client.Begin(way)
}

// TestLongFirstEventsHaveTurns: however many streams begin with much data, only some of
// them work at a time. Those whose client does not read keep no turn.
func TestLongFirstEventsHaveTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const streams, turns = 8, 3
		h := New(Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Streams: outbox.New(outbox.Options{KeepAlive: time.Hour})})
		h.longReads = newTurns(4)
		var working, sending, bytes atomic.Int32
		goOn, take := make(chan struct{}), make(chan struct{})
		for range streams {
			openFirst(t, h, countedWay{&sending, &bytes, take}, &longBody{workedBody: workedBody{&working, goOn}, paces: freePaces})
		}
		for done := range int32(streams) {
			synctest.Wait()
			if got, want := working.Load(), min(turns, streams-done); got != want {
				t.Fatalf("with %d of %d first events worked out, %d streams work, want %d", done, streams, got, want)
			}
			goOn <- struct{}{}
		}
		synctest.Wait()
		if sending.Load() != streams || h.longReads.free != turns {
			t.Fatalf("%d first events of %d wait for their clients, and %d turns are free, want all of %d",
				sending.Load(), streams, h.longReads.free, turns)
		}
		close(take)
		synctest.Wait()
		if want := int32(streams * (len(putHead) + 2*bufferBytes + len(putTail))); bytes.Load() != want {
			t.Errorf("the clients have %d bytes, want %d", bytes.Load(), want)
		}
		if h.longReads.free != turns {
			t.Errorf("%d of %d turns are free in the end", h.longReads.free, turns)
		}
		h.opts.Streams.Close(t.Context())
	})
}

// TestShortFirstEventsWaitForNoTurn: a stream with little to begin with is not held up
// by long reads.
func TestShortFirstEventsWaitForNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Streams: outbox.New(outbox.Options{KeepAlive: time.Hour})})
		h.longReads = newTurns(1)
		h.longReads.take(addressAt(1), nil)
		var working, sending, bytes atomic.Int32
		free := make(chan struct{})
		close(free)
		openFirst(t, h, countedWay{&sending, &bytes, free}, &longBody{workedBody: workedBody{&working, free}, paces: freePaces - 2})
		synctest.Wait()
		if want := int32(len(putHead) + 2*bufferBytes + len(putTail)); bytes.Load() != want {
			t.Errorf("the client has %d bytes while another has the turn, want %d", bytes.Load(), want)
		}
		h.longReads.end()
		h.opts.Streams.Close(t.Context())
	})
}
