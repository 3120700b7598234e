package outbox

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A recordedConn keeps how large the writes are and which deadlines are set.
type recordedConn struct {
	net.Conn
	writes    []int
	bytes     bytes.Buffer
	deadlines []time.Time
	takes     func()
}

func (r *recordedConn) SetDeadline(time.Time) error { return nil }

func (r *recordedConn) SetWriteDeadline(t time.Time) error {
	r.deadlines = append(r.deadlines, t)
	return nil
}

func (r *recordedConn) Write(p []byte) (int, error) {
	r.takes()
	r.writes = append(r.writes, len(p))
	return r.bytes.Write(p)
}

// TestConnWritesPieces: the head goes out with the first bytes, what is long in pieces,
// and each piece has at least the time that it may take.
func TestConnWritesPieces(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	now := start
	c := New(Options{Blocked: 10 * time.Second, Now: func() time.Time { return now }})
	defer c.Close(t.Context())
	conn := &recordedConn{takes: func() { now = now.Add(3 * time.Second) }}
	way := c.NewConn(conn, ConnOptions{Head: []byte("head ")})
	for _, p := range [][]byte{[]byte("one"), nil, bytes.Repeat([]byte("x"), 2*PieceBytes+1)} {
		if err := way.Send(p); err != nil {
			t.Fatal(err)
		}
	}
	want := []int{len("head one"), PieceBytes, PieceBytes, 1}
	if len(conn.writes) != len(want) || conn.writes[0] != want[0] || conn.writes[1] != want[1] || conn.writes[3] != want[3] {
		t.Errorf("the writes are of %v bytes, want %v", conn.writes, want)
	}
	if got := conn.bytes.String()[:8]; got != "head one" {
		t.Errorf("the connection begins with %q", got)
	}
	// Set at 0 s until 15 s, which leaves 12 s at 3 s, and too little at 6 s.
	deadlines := []time.Time{start.Add(15 * time.Second), start.Add(21 * time.Second)}
	if len(conn.deadlines) != 2 || conn.deadlines[0] != deadlines[0] || conn.deadlines[1] != deadlines[1] {
		t.Errorf("the deadlines are %v, want %v", conn.deadlines, deadlines)
	}
}

// TestPatienceIsLifted: after that, the next write sets a deadline again.
func TestPatienceIsLifted(t *testing.T) {
	c := New(Options{Blocked: time.Second, Now: func() time.Time { return time.Unix(100, 0) }})
	defer c.Close(t.Context())
	patience := c.Patience()
	var set []int64
	note := func(at time.Time) error {
		if at.IsZero() {
			at = time.Unix(0, 0)
		}
		set = append(set, at.UnixMilli())
		return nil
	}
	_ = patience.Extend(note)
	_ = patience.Extend(note)
	_ = patience.Lift(note)
	_ = patience.Extend(note)
	if len(set) != 3 || set[0] != 101_500 || set[1] != 0 || set[2] != 101_500 {
		t.Errorf("the deadlines are %v, want one, none, one", set)
	}
}

// TestConnOfAClientThatTakesNothing: a write to it ends after Blocked, as a timeout.
func TestConnOfAClientThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Blocked: 10 * time.Second, KeepAlive: quiet.KeepAlive})
		ours, theirs := net.Pipe()
		way := c.NewConn(ours, ConnOptions{})
		begun := time.Now()
		err := way.Send([]byte("nobody reads"))
		if took := time.Since(begun); Why(err) != Slow || took < 10*time.Second || took > 15*time.Second {
			t.Errorf("a write that nobody takes ends after %v with %v, want a timeout after 10 to 15 s", took, err)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the error is %v, want that of a deadline", err)
		}
		way.Close()
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the other end reads %v, want the end", err)
		}
		c.Close(t.Context())
	})
}

// dialed returns the two ends of a connection that the system knows.
func dialed(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if theirs, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = ours.Close()
		_ = theirs.Close()
	})
	return ours, theirs
}

// A wrapped connection is one as package tls wraps it.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

// TestConnThatIsHeardKeepsItsBytes: looking whether the client has gone must not take
// bytes away from the front's reader.
func TestConnThatIsHeardKeepsItsBytes(t *testing.T) {
	c := New(quiet)
	defer c.Close(t.Context())
	ours, theirs := dialed(t)
	way := c.NewConn(wrapped{ours}, ConnOptions{Heard: true})
	if _, err := theirs.Write([]byte("request")); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	got := make([]byte, 7)
	if _, err := io.ReadFull(ours, got[:1]); err != nil { // so that all has arrived
		t.Fatal(err)
	}
	if way.Gone() {
		t.Error("the client is said to have gone before its reader said so")
	}
	if _, err := io.ReadFull(ours, got[1:]); err != nil || string(got) != "request" {
		t.Errorf("the reader gets %q, %v, want the request", got, err)
	}
}
