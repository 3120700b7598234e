//go:build unix

package supervisor_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/supervisor"
)

// childVariable makes the test binary a process that is started with sockets.
const childVariable = "LIVETREE_TEST_SUPERVISED"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := runChild(); err != nil {
			fmt.Fprintln(os.Stdout, err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runChild greets one client on each of two listeners in turn on the socket addr, and says which addresses it has used.
func runChild() error {
	s, err := supervisor.FromEnvironment(func(name string) (string, bool) {
		if name == "LISTEN_PID" {
			return strconv.Itoa(os.Getpid()), true
		}
		return os.LookupEnv(name)
	}, os.Getpid(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	for range 2 {
		listener, err := s.Listen(supervisor.Addr, "nowhere")
		if err != nil {
			return err
		}
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		fmt.Fprint(conn, "hello")
		conn.Close()
		listener.Close()
	}
	addr, httpAddr := "127.0.0.1:1", "none"
	if err := errors.Join(s.UseSocket(supervisor.Addr, &addr), s.UseSocket(supervisor.HTTPAddr, &httpAddr)); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, addr, httpAddr)
	return nil
}

// child returns a process with files as its sockets.
func child(t *testing.T, names string, files ...*os.File) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVariable+"=1", fmt.Sprintf("LISTEN_FDS=%d", len(files)), "LISTEN_FDNAMES="+names)
	c.ExtraFiles = files
	return c
}

func tcpSocket(t *testing.T) (*net.TCPListener, *os.File) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close(); file.Close() })
	return listener.(*net.TCPListener), file
}

// TestSocketOutlivesListener: a client that comes while no listener is open is served by the next one.
func TestSocketOutlivesListener(t *testing.T) {
	t.Parallel()
	held, file := tcpSocket(t)
	c := child(t, "addr", file)
	var out strings.Builder
	c.Stdout = &out
	// Both connect before there is a listener.
	var clients []net.Conn
	for range 2 {
		conn, err := net.Dial("tcp", held.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		clients = append(clients, conn)
	}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	for i, conn := range clients {
		got := make([]byte, 16)
		if n, err := conn.Read(got); err != nil || string(got[:n]) != "hello" {
			t.Errorf("client %d reads %q, %v, want hello", i, got[:n], err)
		}
	}
	if want := held.Addr().String() + " none\n"; out.String() != want {
		t.Errorf("the process uses the addresses %q, want %q", out.String(), want)
	}
}

func TestSocketsThatCannotServe(t *testing.T) {
	t.Parallel()
	_, tcp := tcpSocket(t)
	plain, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	unix, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	unixFile, err := unix.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer unixFile.Close()
	connected, err := net.Dial("unix", unix.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	connectedFile, err := connected.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer connectedFile.Close()
	for _, c := range []struct {
		name, names, want string
		files             []*os.File
	}{
		{"a file", "addr", "socket", []*os.File{plain}},
		{"a connection", "addr", "does not listen", []*os.File{connectedFile}},
		{"not TCP", "addr", "want one of TCP", []*os.File{unixFile}},
		{"its default name", "livetree.socket", `FileDescriptorName to addr or http-addr`, []*os.File{tcp}},
		{"two of a name", "addr:addr", "two sockets", []*os.File{tcp, tcp}},
		{"fewer names", "addr", "give each a FileDescriptorName", []*os.File{tcp, tcp}},
	} {
		out, err := child(t, c.names, c.files...).Output()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: the process says %q, %v, want %q", c.name, out, err, c.want)
		}
	}
}

// environment returns a lookup in pairs of name and value.
func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// of returns the supervisor of process 7.
func of(t *testing.T, log io.Writer, lookup func(string) (string, bool)) *supervisor.Supervisor {
	t.Helper()
	s, err := supervisor.FromEnvironment(lookup, 7, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWithoutSupervisor(t *testing.T) {
	t.Parallel()
	inherited := environment("LISTEN_FDS", "1", "LISTEN_PID", "8", "LISTEN_FDNAMES", "addr", "WATCHDOG_USEC", "1000", "WATCHDOG_PID", "8")
	var log strings.Builder
	for _, s := range []*supervisor.Supervisor{nil, of(t, &log, inherited)} {
		end := s.KeepWatch()
		s.Ready("now", func() { t.Error("something looks at the server") })
		s.Stopping("now")
		end()
		addr := "127.0.0.1:0"
		if err := s.UseSocket(supervisor.Addr, &addr); err != nil || addr != "127.0.0.1:0" {
			t.Errorf("the address is %s, %v, want that of the flag", addr, err)
		}
		listener, err := s.Listen(supervisor.Addr, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if _, err := s.Listen(supervisor.Addr, listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("a port that another has: %v, want that it is in use", err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", log.String())
	}
}

func TestVariablesThatMeanNothing(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"LISTEN_FDS", "two"}, {"LISTEN_FDS", "-1"}, {"WATCHDOG_USEC", "soon"}, {"WATCHDOG_USEC", "0"}, {"WATCHDOG_USEC", "9999999999999"}} {
		if _, err := supervisor.FromEnvironment(environment(pair[0], pair[1], "LISTEN_PID", "7"), 7, nil); err == nil || !strings.Contains(err.Error(), pair[0]) {
			t.Errorf("%s=%s: %v, want an error that names it", pair[0], pair[1], err)
		}
	}
}

// listen returns a socket for notes to a supervisor.
func listen(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // that of the test is too long for a socket on some systems
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	addr := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	conn, err := net.ListenUnixgram("unixgram", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, addr.Name
}

// next returns the next note, or an empty string if none comes before the deadline.
func next(t *testing.T, conn *net.UnixConn, deadline time.Time) string {
	t.Helper()
	if err := conn.SetReadDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 1024)
	n, err := conn.Read(text)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return string(text[:n])
}

func TestStates(t *testing.T) {
	t.Parallel()
	conn, addr := listen(t)
	var log strings.Builder
	s := of(t, &log, environment("NOTIFY_SOCKET", addr))
	s.Ready("serving", func() {})
	s.Stopping("ending")
	late := time.Now().Add(time.Minute)
	for _, want := range []string{"READY=1\nSTATUS=serving", "STOPPING=1\nSTATUS=ending"} {
		if got := next(t, conn, late); got != want {
			t.Errorf("the supervisor is told %q, want %q", got, want)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", log.String())
	}
	conn.Close()
	s.Stopping("ending")
	if !strings.Contains(log.String(), "the supervisor is not told") {
		t.Errorf("the supervisor is gone, and the log has %q", log.String())
	}
}

// TestWatchdogLooksFirst: no sign of life while what must never hang hangs.
func TestWatchdogLooksFirst(t *testing.T) {
	t.Parallel()
	conn, addr := listen(t)
	s := of(t, io.Discard, environment("NOTIFY_SOCKET", addr, "WATCHDOG_USEC", "30000", "WATCHDOG_PID", "7"))
	hanging, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.Ready("serving", func() {
		once.Do(func() {
			close(hanging)
			<-release
		})
	})
	late := time.Now().Add(time.Minute)
	if got := next(t, conn, late); got != "READY=1\nSTATUS=serving" {
		t.Fatalf("the supervisor is told %q, want that the server is ready", got)
	}
	end := s.KeepWatch()
	<-hanging
	if got := next(t, conn, time.Now().Add(-time.Second)); got != "" {
		t.Errorf("the supervisor is told %q while the server hangs", got)
	}
	close(release)
	for range 3 {
		if got := next(t, conn, late); got != "WATCHDOG=1" {
			t.Errorf("the supervisor is told %q, want a sign of life", got)
		}
	}
	end()
}
