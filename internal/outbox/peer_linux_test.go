package outbox

import (
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// awaitGone returns when a way says that its client has gone.
func awaitGone(t *testing.T, way *Conn) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !way.Gone(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("a client has left, but is not said to have gone")
		}
	}
}

// TestConnOfAClientThatLeaves: a client that says something is there, one that has
// closed its connection is not.
func TestConnOfAClientThatLeaves(t *testing.T) {
	c := New(quiet)
	defer c.Close(t.Context())
	ours, theirs := dialed(t)
	way := c.NewConn(wrapped{ours}, ConnOptions{})
	if way.Gone() {
		t.Error("a client that is there is said to have gone")
	}
	if _, err := theirs.Write([]byte("goodbye")); err != nil {
		t.Fatal(err)
	}
	if way.Gone() {
		t.Error("a client that says something is said to have gone")
	}
	_ = theirs.Close()
	awaitGone(t, way)
}

// TestVanishedPeers: the system ends the connection of a machine that does not answer,
// whether or not the front reads.
func TestVanishedPeers(t *testing.T) {
	c := New(quiet)
	defer c.Close(t.Context())
	for _, heard := range []bool{false, true} {
		ours, _ := dialed(t)
		c.NewConn(wrapped{ours}, ConnOptions{Heard: heard})
		raw, err := ours.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var millis int
		if failed := raw.Control(func(fd uintptr) {
			millis, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		}); failed != nil || err != nil || millis != 45_000 {
			t.Errorf("heard %v: what was sent may stay unacknowledged for %d ms (%v, %v), want 45000", heard, millis, failed, err)
		}
	}
}
