package server

import (
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// TestMaxConnections: connections over the bound are cut, those within it go on,
// and one that ends makes room.
func TestMaxConnections(t *testing.T) {
	s := startServing(t, servingOptions{limits: servingLimits{maxConnections: 2}})
	client := s.client(t, "https")
	s.wantGet(t, client, "https://"+s.addr+"/a", "secure HTTP/1.1 /a")
	plain := s.client(t, "http")
	s.wantGet(t, plain, "http://"+s.httpAddr().String()+"/b", "plain HTTP/1.1 /b")

	for _, addr := range []string{s.addr, s.httpAddr().String()} {
		wantCut(t, connect(t, addr))
	}
	s.wantGet(t, client, "https://"+s.addr+"/c", "secure HTTP/1.1 /c")
	if !strings.Contains(s.log.String(), "connections are refused") {
		t.Error("the log does not tell that connections are refused")
	}

	plain.CloseIdleConnections()
	wait(t, "room after a connection has ended", func() bool {
		_, _, err := get(s.client(t, "h2"), "https://"+s.addr+"/d")
		return err == nil
	})
}

// TestBoundConnEndsOnce: a connection that is closed twice makes room for one.
func TestBoundConnEndsOnce(t *testing.T) {
	open := &connections{most: 1}
	open.open.Add(1)
	here, there := net.Pipe()
	defer there.Close()
	conn := &boundConn{Conn: here, connections: open}
	conn.Close()
	conn.Close()
	if n := open.open.Load(); n != 0 {
		t.Errorf("%d connections are open, want 0", n)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Errorf("CloseWrite of a connection without halves: %v", err)
	}
}

func TestLimitsReachTheServer(t *testing.T) {
	l := Limits{HeadTimeout: 3 * time.Second, IdleTimeout: 4 * time.Second, DrainAccept: time.Millisecond, DrainRequests: 5 * time.Second, MaxConnections: 7}
	if err := l.check(); err != nil {
		t.Fatal(err)
	}
	s := newServing(servingOptions{secure: http.NotFoundHandler(), plain: http.NotFoundHandler(), logger: new(logBook).logger(), limits: l.serving()})
	defer s.close()
	if s.secure.ReadHeaderTimeout != 3*time.Second || s.plain.IdleTimeout != 4*time.Second {
		t.Errorf("the times are %v and %v, want 3s and 4s", s.secure.ReadHeaderTimeout, s.plain.IdleTimeout)
	}
	if got := s.options.limits; got.accept != time.Millisecond || got.requests != 5*time.Second || got.maxConnections != 7 {
		t.Errorf("the limits are %+v", got)
	}
	for _, wrong := range []Limits{{MaxStreams: -1}, {KeepAlive: -1}, {MemoryLimit: -1}, {RateLimit: RateLimit{PerSecond: -1}}} {
		if err := wrong.check(); err == nil {
			t.Errorf("%+v was taken", wrong)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, test := range []struct {
		environment string
		limits      Limits
		want        int64
	}{
		{"", Limits{}, 100<<20 + 64<<20 + restBytes},
		{"", Limits{MemoryLimit: 5 << 30}, 5 << 30},
		{"7GiB", Limits{MemoryLimit: 5 << 30}, 5 << 30},
		{"7GiB", Limits{}, before}, // which the runtime has set, not we
	} {
		t.Setenv("GOMEMLIMIT", test.environment)
		debug.SetMemoryLimit(before)
		limitMemory(Config{MaxBodies: 100 << 20, Limits: test.limits})
		if got := debug.SetMemoryLimit(-1); got != test.want {
			t.Errorf("GOMEMLIMIT=%s and %d: the limit is %d, want %d", test.environment, test.limits.MemoryLimit, got, test.want)
		}
	}
}
