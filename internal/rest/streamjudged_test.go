package rest

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/watch"
)

// A busySource always has something to tell, until it may not go on.
type busySource struct{ rechecks, most int }

func (s *busySource) Next() (*watch.Event, bool) {
	if s.rechecks == s.most {
		return &watch.Event{Kind: watch.Cancel}, true
	}
	return &watch.Event{Kind: watch.Put, Value: []byte(strings.Repeat("1", 20<<10))}, true
}

func (s *busySource) Drained() bool { return false }
func (s *busySource) Recheck() bool { s.rechecks++; return s.rechecks < s.most }
func (s *busySource) Close()        {}

// A slowWay is the way to a client that takes something each second.
type slowWay struct{ keptAlive *bool }

func (w slowWay) Send(p []byte) error {
	time.Sleep(time.Second) //nolint:forbidigo // fake time
	*w.keptAlive = *w.keptAlive || bytes.Contains(p, keepAliveFrame)
	return nil
}

func (w slowWay) Gone() bool { return false }
func (w slowWay) Close()     {}
func (w slowWay) Cut()       {}

// TestStreamIsJudgedWhileTold: a client that takes its time, and so always has something to be
// told, is judged by the time as others are: at each keep-alive, and no more often. It needs
// none.
func TestStreamIsJudgedWhileTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		streams := outbox.New(outbox.Options{KeepAlive: 30 * time.Second})
		h := New(Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Streams: streams})
		begun, keptAlive := time.Now(), false
		s := &stream{handler: h, dialect: h.dialect, watch: &busySource{most: 3}}
		if err := streams.Admit(&s.client, outbox.Stream, s); err != nil {
			t.Fatal(err)
		}
		s.client.Begin(slowWay{&keptAlive})
		for streams.Stats(outbox.Stream).Open > 0 && time.Since(begun) < time.Hour {
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			synctest.Wait()
		}
		if lasted := time.Since(begun); lasted < 88*time.Second || lasted > 95*time.Second {
			t.Errorf("a stream that may not go on from the third keep-alive on lasts for %v", lasted)
		}
		if keptAlive {
			t.Error("a client that is told something all the time is sent keep-alives")
		}
		streams.Close(t.Context())
	})
}
