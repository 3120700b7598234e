package rest

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A slowBody is a body of which each read takes its time, by a clock of its own.
type slowBody struct {
	now   time.Time
	piece int           // how much comes with a read
	takes time.Duration // how long that takes
}

func (s *slowBody) Read(p []byte) (int, error) {
	s.now = s.now.Add(s.takes)
	n := min(s.piece, len(p))
	copy(p, strings.Repeat(" ", n))
	return n, nil
}

func (s *slowBody) reader() *body {
	handler := New(Options{MaxBody: 1 << 30, MaxBodies: 1 << 30, Now: func() time.Time { return s.now }})
	r := httptest.NewRequest("PUT", "/a.json", s)
	return &handler.newCall(httptest.NewRecorder(), r).body
}

// readFor reads until a time is over or the body is refused.
func (s *slowBody) readFor(b *body, limit time.Duration) error {
	buf := make([]byte, 1<<20)
	for end := s.now.Add(limit); s.now.Before(end); {
		if _, err := b.Read(buf); err != nil {
			return err
		}
	}
	return nil
}

func TestSlowBodies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		piece int
		takes time.Duration
		slow  bool
	}{
		{"a byte each second", 1, time.Second, true},
		{"15 KiB each second", 15 << 10, time.Second, true},
		{"16 KiB each second", 16 << 10, time.Second, false},
		{"160 KiB each ten seconds", 160 << 10, 10 * time.Second, false},
		{"150 KiB each eleven seconds", 150 << 10, 11 * time.Second, true},
		{"1 MiB each second", 1 << 20, time.Second, false},
	} {
		s := &slowBody{piece: test.piece, takes: test.takes}
		err := s.readFor(s.reader(), 2*time.Minute)
		if slow := errors.Is(err, errSlowBody); slow != test.slow || err != nil && !slow {
			t.Errorf("%s: %v, want it too slow: %v", test.name, err, test.slow)
		}
		if waited := s.now.Sub(time.Time{}); test.slow && waited > BodyWindow+test.takes {
			t.Errorf("%s is refused after %v", test.name, waited)
		}
	}
}

// TestSlowBodyAfterMuch: what has come earlier is no excuse.
func TestSlowBodyAfterMuch(t *testing.T) {
	t.Parallel()
	s := &slowBody{piece: 1 << 20, takes: time.Millisecond}
	b := s.reader()
	if err := s.readFor(b, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	s.piece, s.takes = 1, time.Second
	if err := s.readFor(b, 21*time.Second); !errors.Is(err, errSlowBody) {
		t.Errorf("a client that stops after 100 MiB is told %v", err)
	}
}

// TestSlowServerIsNoSlowBody: only the time counts in which the client is waited for.
func TestSlowServerIsNoSlowBody(t *testing.T) {
	t.Parallel()
	s := &slowBody{piece: 1 << 10, takes: time.Millisecond}
	b := s.reader()
	for range 100 {
		if _, err := io.ReadFull(b, make([]byte, 1<<10)); err != nil {
			t.Fatalf("the body is refused: %v", err)
		}
		s.now = s.now.Add(time.Minute)
	}
}
