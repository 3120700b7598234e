package passon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/budget"
)

// A clock goes on when somebody waits.
type clock struct{ now time.Time }

// A slowly is a text of which each part comes after a while.
type slowly struct {
	io.Reader
	clock *clock
	while time.Duration
}

func (s slowly) Read(b []byte) (int, error) {
	s.clock.now = s.clock.now.Add(s.while)
	return s.Reader.Read(b)
}

// A patientClient takes an answer, and nothing of it after the deadline.
type patientClient struct {
	*httptest.ResponseRecorder
	clock    *clock
	deadline time.Time // zero for none
	flushed  int       // how much was sent for certain
}

func (c *patientClient) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *patientClient) Write(b []byte) (int, error) {
	if c.deadline.IsZero() || c.clock.now.After(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.ResponseRecorder.Write(b)
}

func (c *patientClient) FlushError() error {
	if c.deadline.IsZero() || c.clock.now.After(c.deadline) {
		return os.ErrDeadlineExceeded
	}
	c.flushed = c.Body.Len()
	return nil
}

// TestAnswersThatTakeLong: each write of an answer has its time, and so has what is left at the end. A browser that polls gets much data
// in one answer, and may need minutes to load that.
func TestAnswersThatTakeLong(t *testing.T) {
	t.Parallel()
	const length = 1 << 20
	at := &clock{time.Unix(1_700_000_000, 0)}
	p := New(Options{Now: func() time.Time { return at.now }})
	body := strings.NewReader(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, strings.Repeat("x", length)))
	c := &patientClient{ResponseRecorder: httptest.NewRecorder(), clock: at}
	defer func() {
		if cause := recover(); cause != nil {
			t.Errorf("the answer ends after %d of %d bytes: %v", c.Body.Len(), length, cause)
		}
	}()
	begun := at.now
	p.reply(c, httptest.NewRequest(http.MethodGet, "/.lp", http.NoBody), bufio.NewReaderSize(slowly{body, at, 3 * time.Second}, smallBuffer))
	if took := at.now.Sub(begun); took < 2*writeTime {
		t.Fatalf("the answer took %v, which tries nothing", took)
	}
	if c.flushed != length || !c.deadline.IsZero() {
		t.Errorf("the client was sent %d of %d bytes, and then has a deadline: %v", c.flushed, length, !c.deadline.IsZero())
	}
}

// TestAnswersTakeMemory: an answer over HTTP/2 takes memory until its client has it, and is none if there is not enough.
func TestAnswersTakeMemory(t *testing.T) {
	t.Parallel()
	answers := budget.New(budget.Options{Limit: 1 << 20})
	p := New(Options{Now: time.Now, Answers: answers})
	r := httptest.NewRequest(http.MethodGet, "/.lp", http.NoBody)
	r.ProtoMajor = 2
	ask := func(w http.ResponseWriter) (aborted bool) {
		defer func() { aborted = recover() == http.ErrAbortHandler }() //nolint:errorlint // net/http compares it so
		p.reply(w, r, strings.NewReader("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"))
		return false
	}
	const deep = 100
	var nested func(left int) (aborted int) // while an answer is taken, there is another
	nested = func(left int) (aborted int) {
		w := takes{httptest.NewRecorder(), func() { aborted = nested(left - 1) }}
		if left > 0 && ask(w) {
			return 1
		}
		return aborted
	}
	if nested(deep) == 0 {
		t.Errorf("%d answers take %d bytes", deep, answers.Taken())
	}
	if answers.Taken() != 0 {
		t.Errorf("%d bytes are not given back", answers.Taken())
	}
}

// takes is a client that does something before it takes an answer.
type takes struct {
	*httptest.ResponseRecorder
	before func()
}

func (c takes) Write(b []byte) (int, error) {
	c.before()
	return c.ResponseRecorder.Write(b)
}

// A lingeringConn takes its time to be closed, as one of TLS does whose client takes nothing.
type lingeringConn struct{ net.Conn }

const lingers = 100 * time.Millisecond

func (c lingeringConn) Close() error {
	<-time.After(lingers)
	return c.Conn.Close()
}

// TestCloseWithClientsThatTakeNothing: they do not hold up the end of the server one after the other.
func TestCloseWithClientsThatTakeNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const clients = 50
		p := New(Options{Now: time.Now})
		for range clients {
			client, _ := net.Pipe()
			home, _ := net.Pipe()
			c := &carrying{client: lingeringConn{client}, home: home}
			if err := p.begin(c); err != nil {
				t.Fatal(err)
			}
			go p.run(c, func() { p.copy(c.client, c.home, nil) })
			go p.run(c, func() { p.copy(c.home, c.client, nil) })
		}
		begun := time.Now()
		p.Close()
		if took, most := time.Since(begun), clients*lingers/2; took > most {
			t.Errorf("%d clients hold up the end for %v, each for %v", clients, took, lingers)
		}
		if open, _ := p.Stats(); open != 0 {
			t.Errorf("%d are left", open)
		}
	})
}
