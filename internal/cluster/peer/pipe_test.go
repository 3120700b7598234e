package peer_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/peer"
)

// echoing takes pipes, says first who made them and why, and then sends back what comes.
func echoing(f *peer.Front) {
	f.HandleConn("echo", func(from string, body []byte, c net.Conn) {
		go func() {
			defer c.Close()
			if _, err := fmt.Fprintf(c, "%s %s\n", from, body); err == nil {
				_, _ = io.Copy(c, c)
			}
		}()
	})
}

// dial makes a pipe, which is closed with the test, and reads what the handler says first.
func dial(t *testing.T, from, to *peer.Front, body string) net.Conn {
	t.Helper()
	c, err := tryDial(t, from, to, body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryDial(t *testing.T, from, to *peer.Front, body string) (net.Conn, error) {
	c, err := from.Dial(t.Context(), to.Addr(), "echo", []byte(body))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	want := fmt.Sprintf("%s %s\n", from.Addr(), body)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		return nil, fmt.Errorf("a pipe begins with %q, %w, want %q", got, err, want)
	}
	return c, nil
}

// noPipes checks that none is open.
func noPipes(t *testing.T, fronts ...*peer.Front) {
	t.Helper()
	for _, f := range fronts {
		until(t, "no pipe is open", func() error {
			if dialed, served := f.Pipes(); dialed+served != 0 {
				return fmt.Errorf("%d and %d are", dialed, served)
			}
			return nil
		})
	}
}

func TestPipe(t *testing.T) {
	a, b := pair(t, peer.Options{}, peer.Options{})
	echoing(b)
	c := dial(t, a, b, "hello")
	long := strings.Repeat("x", 1<<20)
	go func() { _, _ = io.WriteString(c, long) }()
	got := make([]byte, len(long))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != long {
		t.Errorf("through a pipe come other bytes, or none: %v", err)
	}
	if dialed, served := a.Pipes(); dialed != 1 || served != 0 {
		t.Errorf("%d pipes are dialed and %d served, want 1 and 0", dialed, served)
	}
	_ = c.Close()
	noPipes(t, a, b)
	if _, err := c.Read(got); err == nil {
		t.Error("a closed pipe is read")
	}
}

func TestPipesThatAreNotTaken(t *testing.T) {
	a, b := pair(t, peer.Options{}, peer.Options{MaxPipes: 2})
	echoing(b)
	refused := func(what, want, kind string, body []byte) {
		t.Helper()
		c, err := a.Dial(t.Context(), b.Addr(), kind, body)
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, peer.ErrNotSent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	refused("a kind without a handler", "takes no connections", "other", nil)
	refused("no kind", "kind", "", nil)
	refused("a long body", "bytes", "echo", make([]byte, 5<<10))
	dial(t, a, b, "1")
	last := dial(t, a, b, "2")
	refused("one too many", "too many", "echo", nil)
	_ = last.Close()
	until(t, "there is room again", func() error {
		c, err := a.Dial(t.Context(), b.Addr(), "echo", nil)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	b.HandleConn("echo", nil)
	refused("a kind whose handler was taken away", "takes no connections", "echo", nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Dial(gone, b.Addr(), "echo", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a dial that was given up: %v", err)
	}
}

// TestPipesLeaveRoomForCalls opens more pipes than there may be connections for calls.
func TestPipesLeaveRoomForCalls(t *testing.T) {
	a, b := pair(t, peer.Options{}, peer.Options{})
	echoing(b)
	for n := range peer.MaxPeerConns + 1 {
		dial(t, a, b, fmt.Sprint(n))
	}
	late := listen(t, peer.Options{})
	late.Keep([]string{b.Addr()})
	waitUp(t, late, late.Addr(), b.Addr())
	b.Handle("echo", echo)
	if _, err := late.Call(t.Context(), b.Addr(), "echo", nil); err != nil {
		t.Errorf("a call beside many pipes: %v", err)
	}
}

func TestPipesEndWithTheFront(t *testing.T) {
	for _, closes := range []string{"the end that has dialed", "the end that serves"} {
		a, b := pair(t, peer.Options{}, peer.Options{})
		echoing(b)
		c := dial(t, a, b, "")
		front := a
		if closes == "the end that serves" {
			front = b
		}
		if err := front.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("a pipe is open after %s was closed", closes)
		}
		_ = c.Close()
		noPipes(t, a, b)
		if _, err := front.Dial(t.Context(), b.Addr(), "echo", nil); err == nil {
			t.Errorf("a closed front dials: %s", closes)
		}
	}
}

// TestPipesEndWithTheNode: a network that carries nothing any more ends no connection by itself.
func TestPipesEndWithTheNode(t *testing.T) {
	b, relay := behind(t, peer.Options{Ping: 20 * time.Millisecond})
	echoing(b)
	a := listen(t, peer.Options{Ping: 20 * time.Millisecond})
	a.Keep([]string{b.Addr()})
	waitUp(t, a, a.Addr(), b.Addr())
	var c net.Conn
	until(t, "a pipe is open", func() (err error) { // a busy machine is taken for a peer that is silent
		c, err = tryDial(t, a, b, "")
		return err
	})
	relay.silent(true)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a pipe to a node that is not reached gives a byte")
	}
}

// TestGarbageBeforeAPipe: a node that does not keep to the protocol gets no pipe.
func TestGarbageBeforeAPipe(t *testing.T) {
	f := listen(t, peer.Options{})
	f.HandleConn("echo", func(_ string, _ []byte, c net.Conn) {
		t.Error("a pipe is made of garbage")
		_ = c.Close()
	})
	framed := func(text string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
	}
	const greeting = "\x01\x01\x03somebody"
	id := "\x00\x00\x00\x00\x00\x00\x00\x01"
	for name, text := range map[string]string{
		"no frame":             framed(greeting) + "GET / HTTP/1.1\r\n\r\n",
		"a ping":               framed(greeting) + framed("\x02"+id),
		"two greetings":        framed(greeting) + framed(greeting),
		"another length":       framed(greeting) + framed("\x04"+id+"\x00\x00\x00\x09\x04echo12345678"),
		"a body that is long":  framed(greeting) + framed("\x04"+id+"\x00\x00\x14\x00\x04echo"+strings.Repeat("x", 5<<10)),
		"an unknown purpose":   framed("\x01\x01\x04somebody"),
		"a call without hello": framed("\x04" + id + "\x00\x00\x00\x00\x04echo"),
	} {
		config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{peer.Protocol}, Certificates: []tls.Certificate{identity(t, textA, time.Now())}} //nolint:gosec // it attacks
		c, err := tls.Dial("tcp", f.Addr(), config)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c) // until it is closed
		_ = c.Close()
		if dialed, served := f.Pipes(); dialed+served != 0 {
			t.Errorf("%s: a pipe is open", name)
		}
	}
	until(t, "no stranger is left", func() error {
		if n := f.Strangers(); n != 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}
