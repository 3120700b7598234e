package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/pause"
)

// doors bound the connections of all hosts together, and of each. A host from which a node has come once finds them
// open, however many others stand there: strangers cannot shut nodes out.
type doors struct {
	mu        sync.Mutex
	known     map[string]bool // at most maxKnown
	strangers crowd           // that have not shown yet that they come from a node
	peers     crowd
	passed    crowd // on to etcd
}

// crowd counts the connections of one kind.
type crowd struct {
	all    int
	ofHost map[string]int
}

// enter takes a place in a crowd.
func (d *doors) enter(c *crowd, host string, most, mostOfHost int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.all >= most && !d.known[host] || c.ofHost[host] >= mostOfHost {
		return false
	}
	if c.ofHost == nil {
		c.ofHost = map[string]int{}
	}
	c.all++
	c.ofHost[host]++
	return true
}

func (d *doors) leave(c *crowd, host string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.all--
	if c.ofHost[host]--; c.ofHost[host] == 0 {
		delete(c.ofHost, host)
	}
}

// know remembers a host from which a node has come.
func (d *doors) know(host string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]bool{}
	}
	if len(d.known) < maxKnown {
		d.known[host] = true
	}
}

var errCrowded = errors.New("there are too many connections")

// accept takes connections until the front is closed.
func (f *Front) accept() {
	for {
		c, err := f.listener.Accept()
		switch {
		case f.life.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return
		case err != nil:
			// There are no files left, or the like: that passes.
			f.o.Logger.Error("a connection of another node was not accepted", "error", err)
			_ = pause.For(f.life, 100*time.Millisecond)
			continue
		}
		host := hostOf(c)
		if !f.doors.enter(&f.doors.strangers, host, maxStrangers, maxStrangersOfHost) {
			f.refuse(c, errCrowded)
			continue
		}
		f.all.Go(func() { f.welcome(c, host) })
	}
}

// hostOf returns what the other end of a connection counts by: its address, or the network that it can choose one of.
func hostOf(c net.Conn) string {
	remote, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return clientaddr.Network(remote.Addr()).String()
}

func (f *Front) refuse(c net.Conn, why error) {
	_ = c.Close()
	if f.life.Err() == nil {
		f.refusals.warn(f.o.Now(), c.RemoteAddr(), why)
	}
}

// welcome reads the first message of a connection and leads it to where it belongs.
func (f *Front) welcome(c net.Conn, host string) {
	left := sync.OnceFunc(func() { f.doors.leave(&f.doors.strangers, host) })
	defer left()
	stop := context.AfterFunc(f.life, func() { _ = c.Close() })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(f.o.hello)) //nolint:forbidigo // a deadline of the kernel's
	hello, protocol, err := readHello(f.life, c)
	if err == nil && protocol == InviteProtocol {
		err = f.serveGuest(c, hello, host)
		if err == nil {
			_ = c.Close()
			return
		}
	}
	if err != nil {
		f.refuse(c, err)
		return
	}
	if protocol != Protocol {
		_ = c.SetDeadline(time.Time{})
		left()
		if !f.doors.enter(&f.doors.passed, host, maxPassed, maxPassedOfHost) {
			f.refuse(c, errCrowded)
			return
		}
		defer f.doors.leave(&f.doors.passed, host)
		if err := f.pass(c, hello); err != nil {
			f.refuse(c, err)
		}
		return
	}
	a := &arrivals{Conn: c}
	t := tls.Server(&replay{Conn: a, first: hello}, f.serverTLS())
	if err := t.HandshakeContext(f.life); err != nil {
		f.refuse(c, explainRefused(err))
		return
	}
	if err := f.meet(t, a, host, left); err != nil {
		f.o.Logger.Debug("the connection of a node has ended", "remote", c.RemoteAddr(), "error", err)
	}
}

// explainRefused names the most likely reason for which the handshake of a node that has come here fails. One that was broken off, as a busy machine does
// with those that take too long, tells nothing about its key.
func explainRefused(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() ||
		slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET}, func(broken error) bool { return errors.Is(err, broken) }) {
		return fmt.Errorf("its handshake was broken off: %w", err)
	}
	return fmt.Errorf("it has another cluster key: %w", err)
}

// meet hears what a node has made a connection for, and serves it. The node is no stranger from then on. Pipes are
// counted by themselves: many clients must not keep the nodes from talking to each other.
func (f *Front) meet(t *tls.Conn, a *arrivals, host string, left func()) error {
	c := newConn(t, a, f.o, quietPings)
	hello, err := c.frames.next()
	if err == nil && (hello.kind != greet || hello.purpose < forCalls || hello.purpose > forPipe) {
		err = fmt.Errorf("%w: it does not begin with a greeting", errFrame)
	}
	if err != nil {
		_ = a.Close()
		return err
	}
	left()
	f.doors.know(host)
	if hello.purpose == forPipe {
		return f.servePipe(t, c, hello)
	}
	defer a.Close()
	if !f.doors.enter(&f.doors.peers, host, maxPeerConns, maxPeerConnsOfHost) {
		f.refuse(a.Conn, errCrowded)
		return errCrowded
	}
	defer f.doors.leave(&f.doors.peers, host)
	return f.serve(t, c, hello)
}

// replay gives the bytes again that were read to look at them.
type replay struct {
	net.Conn
	first []byte
}

func (r *replay) Read(b []byte) (int, error) {
	if len(r.first) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.first)
	r.first = r.first[n:]
	return n, nil
}

var errNoHello = errors.New("it does not speak TLS")

// readHello reads the first message of a TLS connection and answers nothing. It returns all that it has read, and
// which of the protocols of this package the other end asks for, if it does.
func readHello(ctx context.Context, c net.Conn) (hello []byte, protocol string, err error) {
	var read bytes.Buffer
	seen := false
	look := &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		seen = true
		for _, one := range []string{Protocol, InviteProtocol} {
			if protocol == "" && slices.Contains(info.SupportedProtos, one) {
				protocol = one
			}
		}
		return nil, errNoHello // ends the handshake here
	}}
	silent := onlyRead{Conn: c, r: io.TeeReader(io.LimitReader(c, helloBytes), &read)}
	err = tls.Server(silent, look).HandshakeContext(ctx)
	if !seen {
		return nil, "", fmt.Errorf("%w: %w", errNoHello, err)
	}
	return read.Bytes(), protocol, nil
}

// onlyRead is a connection to which nothing is written.
type onlyRead struct {
	net.Conn
	r io.Reader
}

func (o onlyRead) Read(b []byte) (int, error)  { return o.r.Read(b) }
func (o onlyRead) Write(b []byte) (int, error) { return len(b), nil }
func (o onlyRead) Close() error                { return nil }
