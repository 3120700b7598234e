// Package supervisor talks to the program that has started the server and looks after it, such as systemd.
//
// Both know each other by the environment, as systemd defines it. Nothing in it is needed: without its variables a
// [Supervisor] does nothing, and a nil one does the same.
//
//   - Sockets (LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES). The supervisor opens the ports and keeps them while one server
//     ends and the next one starts. Clients that come in between wait instead of being refused.
//   - States (NOTIFY_SOCKET). The server says when it is ready, and when it stops.
//   - The watchdog (WATCHDOG_USEC, WATCHDOG_PID). The server sends a sign of life at regular intervals, after a look at
//     what must never hang ([Supervisor.Ready]). If none comes, the supervisor ends the process and starts another.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Names of sockets: those of the flags that they stand in for.
const (
	Addr     = "addr"
	HTTPAddr = "http-addr"
)

// firstSocket is the first file that is handed over: after the three that every process has.
const firstSocket = 3

// A Supervisor is who started this process. Its methods may be called by any goroutine.
type Supervisor struct {
	logger   *slog.Logger
	notify   string        // the address of its socket; empty for none
	watchdog time.Duration // between two signs of life at most; 0 for none
	sockets  map[string]*os.File
	probe    atomic.Pointer[func()] // to be called before each sign of life; nil for none
}

// FromEnvironment returns the supervisor of the process with this id, by its variables. It takes the sockets, so it is
// called once.
func FromEnvironment(lookup func(string) (string, bool), pid int, logger *slog.Logger) (*Supervisor, error) {
	variable := func(name string) string { text, _ := lookup(name); return text }
	own := strconv.Itoa(pid) // variables that are for another process may have been inherited
	s := &Supervisor{logger: logger, notify: variable("NOTIFY_SOCKET")}
	if text, watched := variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"); text != "" && (watched == "" || watched == own) {
		micros, err := strconv.ParseInt(text, 10, 64)
		if err != nil || micros <= 0 || micros > int64(24*time.Hour/time.Microsecond) {
			return nil, fmt.Errorf("WATCHDOG_USEC is %q: want microseconds, a day at most", text)
		}
		s.watchdog = time.Duration(micros) * time.Microsecond
	}
	if text := variable("LISTEN_FDS"); text != "" && variable("LISTEN_PID") == own {
		names, err := socketNames(text, variable("LISTEN_FDNAMES"))
		if err != nil {
			return nil, err
		}
		if s.sockets, err = takeSockets(names); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// socketNames returns the names of the sockets in their order.
func socketNames(count, list string) ([]string, error) {
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("LISTEN_FDS is %q: want the number of sockets", count)
	}
	if n == 0 {
		return nil, nil
	}
	known := []string{Addr, HTTPAddr}
	names := strings.Split(list, ":")
	if len(names) != n {
		return nil, fmt.Errorf("there are %d sockets and the names %q in LISTEN_FDNAMES: give each a FileDescriptorName, %s", n, list, strings.Join(known, " or "))
	}
	for i, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("a socket is called %q: set its FileDescriptorName to %s", name, strings.Join(known, " or "))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("two sockets are called %q: one ListenStream is enough, a port without an address is for IPv4 and IPv6", name)
		}
	}
	return names, nil
}

// UseSocket makes an address that of the socket with this name, if there is one: what depends on the address goes by the
// true one.
func (s *Supervisor) UseSocket(name string, addr *string) error {
	listener, err := s.listener(name)
	if err != nil || listener == nil {
		return err
	}
	held := listener.Addr().String()
	if held != *addr {
		s.logger.Info("the supervisor has opened this port: the setting does not count", "setting", name, "set", *addr, "addr", held)
		*addr = held
	}
	return listener.Close()
}

// Listen returns a listener on the socket with this name, or on an address if there is none. It may be called again when
// the listener is closed. Closing one on a socket refuses no client: the supervisor still has the socket.
func (s *Supervisor) Listen(name, addr string) (net.Listener, error) {
	listener, err := s.listener(name)
	if err != nil || listener != nil {
		return listener, err
	}
	listener, err = net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: the port is in use: stop the other program or choose another port", addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: the system does not permit it: choose a port above 1023", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("listen on %s: this machine does not have that address", addr)
	}
	return listener, err // says "listen tcp" and the address
}

// listener returns one on a socket, nil if there is none of this name.
func (s *Supervisor) listener(name string) (net.Listener, error) {
	if s == nil || s.sockets[name] == nil {
		return nil, nil
	}
	listener, err := net.FileListener(s.sockets[name])
	if err != nil {
		return nil, fmt.Errorf("use the socket %q of the supervisor: %w", name, err)
	}
	if _, ok := listener.(*net.TCPListener); !ok {
		return nil, errors.Join(fmt.Errorf("the socket %q of the supervisor is %s, want one of TCP: set ListenStream to a port", name, listener.Addr().Network()), listener.Close())
	}
	return listener, nil
}

// Ready says that clients are served, with a line for people. From now on probe is called before each sign of life. If it
// does not return, there are no more of them. It should take locks that everything needs, and wait for no disk and no
// client: a server that is slow must not be ended.
func (s *Supervisor) Ready(status string, probe func()) {
	if s != nil {
		s.probe.Store(&probe)
		s.tell("READY=1\nSTATUS=" + status)
	}
}

// Stopping says that the server ends, as it was asked to. Nothing is probed any more: it may take its time.
func (s *Supervisor) Stopping(status string) {
	if s != nil {
		s.probe.Store(nil)
		s.tell("STOPPING=1\nSTATUS=" + status)
	}
}

// tell sends a message, if the supervisor listens. It can do without: what fails is logged.
func (s *Supervisor) tell(message string) {
	if s.notify == "" {
		return
	}
	if err := send(s.notify, message); err != nil {
		s.logger.Warn("the supervisor is not told: it may end the server, as one that does not start or hangs", "message", message, "error", err)
	}
}

func send(socket, message string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// A supervisor that does not read must not hold the server up.
	if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil { //nolint:forbidigo // the deadline of a connection
		return err
	}
	_, err = conn.Write([]byte(message))
	return err
}

// KeepWatch sends signs of life, three in the time that the supervisor gives, until end is called. It sends none if the
// supervisor does not ask for them.
func (s *Supervisor) KeepWatch() (end func()) {
	if s == nil || s.watchdog == 0 || s.notify == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	return func() {
		cancel()
		watching.Wait()
	}
}

func (s *Supervisor) watch(ctx context.Context) {
	ticker := time.NewTicker(s.watchdog / 3)
	defer ticker.Stop()
	for {
		if probe := s.probe.Load(); probe != nil {
			(*probe)()
		}
		s.tell("WATCHDOG=1")
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
