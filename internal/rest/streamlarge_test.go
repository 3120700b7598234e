package rest

import (
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/watch"
)

// A largeEvent is a source that has one large event to tell.
type largeEvent struct {
	bytes int
	told  bool
	later *atomic.Int32
}

func (l *largeEvent) Next() (*watch.Event, bool) {
	if l.told {
		return nil, false
	}
	l.told = true
	return &watch.Event{Kind: watch.Put, Value: []byte(strings.Repeat("1", l.bytes))}, true
}

func (l *largeEvent) Drained() bool { return false }
func (l *largeEvent) Recheck() bool { return true }
func (l *largeEvent) Later()        { l.later.Add(1) }
func (l *largeEvent) Close()        {}

// tellLargely opens a stream that is told a large event.
func tellLargely(t *testing.T, h *Handler, way outbox.Way, source *largeEvent) {
	t.Helper()
	s := &stream{handler: h, dialect: h.dialect, watch: source, payer: budget.Client{Network: netip.MustParseAddr("192.0.2.1")}}
	if err := h.opts.Streams.Admit(&s.client, outbox.Stream, s); err != nil {
		t.Fatal(err)
	}
	s.client.Begin(way)
}

// TestLargeEventsOfStreamsCount: large events count in the memory for answers until their
// clients have taken them. Those that there is none for are told later.
func TestLargeEventsOfStreamsCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, bytes, clients = 4 << 20, 200 << 10, 8
		streams := outbox.New(outbox.Options{KeepAlive: time.Hour})
		h := New(Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Streams: streams, MaxBodies: 2 * limit})
		var sending, taken, later atomic.Int32
		take := make(chan struct{})
		for range clients {
			tellLargely(t, h, countedWay{&sending, &taken, take}, &largeEvent{bytes: bytes, later: &later})
		}
		synctest.Wait()
		// An event counts twice, as it is and as its frame; a client has a quarter of all.
		if n := h.answers.Taken(); n < 2*bytes || n > limit/4 || later.Load() != clients-2 {
			t.Errorf("%d of %d bytes are taken for %d clients, of which %d are to be told later", n, limit, clients, later.Load())
		}
		close(take)
		synctest.Wait()
		if n := h.answers.Taken(); n != 0 || taken.Load() < 2*bytes {
			t.Errorf("%d bytes are never given back, and %d were sent", n, taken.Load())
		}
		streams.Close(t.Context())
	})
}

// A pacedWay is the way to a client that takes some bytes each second.
type pacedWay struct {
	countedWay
	rate int
}

func (w pacedWay) Send(p []byte) error {
	time.Sleep(time.Duration(len(p)) * time.Second / time.Duration(w.rate)) //nolint:forbidigo // fake time
	return nil
}

// TestLargeEventsOfStreamsAreTakenAtARate: who takes a large event too slowly is given up.
func TestLargeEventsOfStreamsAreTakenAtARate(t *testing.T) {
	t.Parallel()
	for rate, slow := range map[int]int64{8 << 10: 1, 32 << 10: 0} {
		synctest.Test(t, func(t *testing.T) {
			streams := outbox.New(outbox.Options{KeepAlive: time.Hour})
			h := New(Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Streams: streams, MaxBodies: 64 << 20})
			tellLargely(t, h, pacedWay{rate: rate}, &largeEvent{bytes: 4 << 20, later: &atomic.Int32{}})
			time.Sleep(time.Hour) //nolint:forbidigo // fake time
			synctest.Wait()
			if n := streams.Stats(outbox.Stream).Closed["slow"]; n != slow {
				t.Errorf("of clients that take %d bytes a second, %d were given up, want %d", rate, n, slow)
			}
			streams.Close(t.Context())
		})
	}
}
