package rest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/outbox"
)

func TestStreamsAreClosed(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{Spread: 50 * time.Millisecond})
	var clients []*listening
	for i := range 30 {
		clients = append(clients, s.listen(protocols[i%3], "/a.json"))
		clients[i].want(put("/", "null"))
	}
	s.streams.Close(t.Context())
	for _, c := range clients {
		c.wantEnd()
	}
	stats := s.streams.Stats(outbox.Stream)
	if stats.Open != 0 || stats.Closed["draining"] != 30 {
		t.Errorf("after Close there are %+v, want 30 that were drained", stats)
	}
	if _, err := s.try("http/1.1", "/a.json"); err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 503 ") {
		t.Errorf("a stream after Close is answered %v, want 503", err)
	}
}

// Their clients would come back all at once.
func TestStreamsAreClosedOneByOne(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{Spread: 24 * time.Hour})
	var clients []*listening
	for i := range 9 {
		clients = append(clients, s.listen(protocols[i%3], "/a.json"))
		clients[i].want(put("/", "null"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan struct{})
	go func() {
		s.streams.Close(ctx)
		close(closed)
	}()
	s.awaitOpen(8)
	s.write("a", "1")
	told := 0
	for _, c := range clients {
		switch got, err := c.frame(); {
		case got == put("/", "1") && err == nil:
			told++
		case got != "" || !errors.Is(err, io.EOF):
			t.Errorf("behind the start of Close a stream has %q, %v, want the write or the end", got, err)
		}
	}
	if told != 8 || s.streams.Stats(outbox.Stream).Open != 8 {
		t.Errorf("%d streams of 9 go on, want 8 until it is their time", told)
	}
	cancel()
	<-closed
	for _, c := range clients {
		c.wantEnd()
	}
}

// A stream that is opened while others are closed is answered.
func TestStreamsOpenedDuringClose(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := serveStreams(t, outbox.Options{Spread: time.Nanosecond})
		answers := make(chan error)
		for i := range 6 {
			go func() {
				_, err := s.try(protocols[i%3], "/a.json")
				answers <- err
			}()
		}
		s.streams.Close(t.Context())
		for range 6 {
			if err := <-answers; err != nil && !strings.Contains(err.Error(), "503") {
				t.Errorf("a stream that is opened during Close is answered %v, want 200 or 503", err)
			}
		}
	}
}
