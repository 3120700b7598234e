package server

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/livetree/livetree/internal/budget"
)

// Types of frames of HTTP/2, RFC 9113, and what tests send in them.
const (
	h2Headers      = 1
	h2Reset        = 3
	h2Settings     = 4
	h2WindowUpdate = 8

	h2Whole = 1 | 4 // the end of the headers, and of the request

	h2NoWindow   = "\x00\x04\x00\x00\x00\x00"
	h2WideWindow = "\x00\x04\x7f\xff\xff\xff"

	h2Get = "\x82\x87\x01\x01h\x84" // GET https://h/
)

func h2Frame(kind, flags byte, stream uint32, payload string) string {
	head := make([]byte, 9)
	binary.BigEndian.PutUint32(head, uint32(len(payload))<<8|uint32(kind))
	head[4] = flags
	binary.BigEndian.PutUint32(head[5:], stream)
	return string(head) + payload
}

// speakH2 opens a connection of HTTP/2 with settings and sends frames over it.
func (s *testServing) speakH2(t *testing.T, settings, frames string) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", s.addr, s.tlsConfig("h2"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.NetConn().Close() })
	write(t, conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+h2Frame(h2Settings, 0, 0, settings)+frames)
	return conn
}

// speakAndTakeNothing sends a request over HTTP/2 that may be answered at any length, and
// reads nothing.
func (s *testServing) speakAndTakeNothing(t *testing.T) {
	t.Helper()
	s.speakH2(t, h2WideWindow, h2Frame(h2WindowUpdate, 0, 0, "\x7f\xff\x00\x00")+h2Frame(h2Headers, h2Whole, 1, h2Get))
}

// wantReset reads frames until the server takes a stream back.
func wantReset(t *testing.T, conn *tls.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience / 6)); err != nil {
		t.Fatal(err)
	}
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatalf("the stream is not taken back: %v", err)
		}
		length := binary.BigEndian.Uint32(head) >> 8
		if _, err := io.CopyN(io.Discard, conn, int64(length)); err != nil {
			t.Fatal(err)
		}
		if head[3] == h2Reset {
			return
		}
	}
}

// An endless handler writes until that fails. It has a deadline for each write, which does not
// help over HTTP/2: its frame has to wait behind others.
type endless struct{ began, ended chan struct{} }

func newEndless() endless { return endless{make(chan struct{}), make(chan struct{})} }

func (h endless) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	close(h.began)
	defer close(h.ended)
	control, part := http.NewResponseController(w), make([]byte, 64<<10)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// TestClientsOfHTTP2ThatReadNothing: a client that takes no bytes from its connection does not
// keep a handler for ever.
func TestClientsOfHTTP2ThatReadNothing(t *testing.T) {
	t.Parallel()
	h := newEndless()
	s := startServing(t, servingOptions{secure: h, limits: servingLimits{write: 200 * time.Millisecond}})
	s.speakAndTakeNothing(t)
	select {
	case <-h.ended:
	case <-time.After(patience / 6):
		t.Error("the handler waits for its client without end")
	}
}

// TestDrainBesideClientsThatReadNothing: nor does it keep the server from ending.
func TestDrainBesideClientsThatReadNothing(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.requests = 500 * time.Millisecond
	h := newEndless()
	s := startServing(t, servingOptions{secure: h, limits: limits, endAll: func(ctx context.Context) {
		<-ctx.Done()
		<-h.ended // as a stream is, over HTTP/2
	}})
	s.speakAndTakeNothing(t)
	<-h.began
	drained := make(chan error, 1)
	go func() { drained <- s.drain(t.Context()) }()
	select {
	case err := <-drained:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience / 6):
		t.Error("the server waits for a client without end")
		s.close()
		<-drained
	}
}

// TestShortAnswersThatNobodyTakes: a client of HTTP/2 that has no window for an answer is not
// waited for without end, also where the handler sets no deadline, or net/http refuses the
// request by itself.
func TestShortAnswersThatNobodyTakes(t *testing.T) {
	t.Parallel()
	limits := servingLimits{head: 200 * time.Millisecond, write: 200 * time.Millisecond}
	s := startServing(t, servingOptions{limits: limits})
	for name, headers := range map[string]string{
		"an answer": h2Get,
		"a refusal": h2Get + "\x00\x02te\x04gzip",
	} {
		t.Run(name, func(t *testing.T) {
			wantReset(t, s.speakH2(t, h2NoWindow, h2Frame(h2Headers, h2Whole, 1, headers)))
		})
	}
}

// TestAnswersOfHTTP2ThatNobodyTakesCount: a client with no window for the answers to many requests has some of them wait, and
// loses the others at once.
func TestAnswersOfHTTP2ThatNobodyTakesCount(t *testing.T) {
	t.Parallel()
	answers := budget.New(budget.Options{Limit: 2 << 20})
	s := startServing(t, servingOptions{answers: answers, limits: servingLimits{write: patience}})
	var requests strings.Builder
	for i := range maxStreamsPerConnection {
		requests.WriteString(h2Frame(h2Headers, h2Whole, uint32(1+2*i), h2Get))
	}
	conn := s.speakH2(t, h2NoWindow, requests.String())
	wantReset(t, conn)
	if taken := answers.Taken(); taken == 0 || taken > answers.Limit()/4 {
		t.Errorf("the answers that wait take %d bytes, want some of %d", taken, answers.Limit())
	}
	conn.NetConn().Close()
	wait(t, "the memory to be given back", func() bool { return answers.Taken() == 0 })
}

// TestTailsThatNobodyTakes: the ends of answers that are left to net/http count while a client has no window for them, are waited for as
// long as any, and are given back with their connection.
func TestTailsThatNobodyTakes(t *testing.T) {
	t.Parallel()
	const streams = 20
	answers := budget.New(budget.Options{Limit: 64 << 20})
	s := startServing(t, servingOptions{answers: answers, limits: servingLimits{write: 500 * time.Millisecond}})
	var requests strings.Builder
	for i := range streams {
		requests.WriteString(h2Frame(h2Headers, h2Whole, uint32(1+2*i), h2Get))
	}
	conn := s.speakH2(t, h2NoWindow, requests.String())
	wait(t, "all to count though their handlers have returned", func() bool {
		return answers.Taken() >= streams*32<<10 && s.guard.running.Count() == 0
	})
	for range streams {
		wantReset(t, conn)
	}
	wait(t, "the memory to be given back", func() bool { return answers.Taken() == 0 })
}

// TestAnswersWithoutABodyThatNobodyTakes: the head of an answer needs no window, but a connection of which nothing is read does not
// take it either. Such answers count as others do.
func TestAnswersWithoutABodyThatNobodyTakes(t *testing.T) {
	t.Parallel()
	const streams = 20
	var isFilling atomic.Bool
	var written atomic.Int64
	answers := budget.New(budget.Options{Limit: 64 << 20})
	s := startServing(t, servingOptions{answers: answers, limits: servingLimits{write: patience},
		secure: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !isFilling.CompareAndSwap(false, true) {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			for part := make([]byte, 64<<10); ; written.Add(1) {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		})})
	conn := s.speakH2(t, h2WideWindow, h2Frame(h2WindowUpdate, 0, 0, "\x7f\xff\x00\x00")+h2Frame(h2Headers, h2Whole, 1, h2Get))
	for last := int64(0); last == 0 || last != written.Load(); time.Sleep(200 * time.Millisecond) { //nolint:forbidigo // until nothing goes through any more
		last = written.Load()
	}
	for i := range streams {
		write(t, conn, h2Frame(h2Headers, h2Whole, uint32(3+2*i), h2Get))
	}
	wait(t, "all to count", func() bool { return answers.Taken() >= streams*32<<10 })
	conn.NetConn().Close()
	wait(t, "the memory to be given back", func() bool { return answers.Taken() == 0 })
}

// TestRefusedHeadsAreNotKept: of a request with too many headers nothing is kept while its client takes no answer: it counts nowhere.
func TestRefusedHeadsAreNotKept(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{})
	parts := make(chan weak.Pointer[byte], 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts <- weak.Make(unsafe.StringData(r.URL.RawQuery))
		parts <- weak.Make(unsafe.StringData(r.Host))
		s.secure.Handler.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.NetConn().Close()
	long := strings.Repeat("x", 100)
	head := "\x82\x87\x01" + string(rune(len(long))) + long + "\x04" + string(rune(len(long)+2)) + "/?" + long + strings.Repeat("\x00\x01x\x00", maxHeaderLines+1)
	write(t, conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+h2Frame(h2Settings, 0, 0, h2NoWindow)+h2Frame(h2Headers, h2Whole, 1, head))
	for range cap(parts) {
		part := <-parts
		wait(t, "a part of the head to be given up", func() bool {
			runtime.GC()
			return part.Value() == nil
		})
	}
}
