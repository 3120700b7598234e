package peer

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// passing are the connections that go on to etcd.
type passing struct {
	mu   sync.Mutex
	to   string
	open map[net.Conn]bool
}

// PassTo says where connections go that are not this package's: to etcd's own listener. If it is empty they are
// refused. Those that went elsewhere are closed.
func (f *Front) PassTo(addr string) {
	p := &f.passing
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to == addr {
		return
	}
	p.to = addr
	for c := range p.open {
		_ = c.Close()
	}
}

var (
	errNotMember = errors.New("this node runs no etcd now")
	errPassed    = errors.New("the listener of etcd has changed")
)

func (p *passing) target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.to
}

// enter notes a pair of connections, of which both are closed when etcd listens elsewhere.
func (p *passing) enter(to string, pair ...net.Conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to != to {
		return errPassed
	}
	if p.open == nil {
		p.open = map[net.Conn]bool{}
	}
	for _, c := range pair {
		p.open[c] = true
	}
	return nil
}

func (p *passing) leave(pair ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range pair {
		delete(p.open, c)
		_ = c.Close()
	}
}

// pass hands a connection to etcd, with what was read of it. The other end must go on with its handshake in time. That it
// idles later is seen by etcd, which gives each read five seconds.
func (f *Front) pass(c net.Conn, first []byte) error {
	to := f.passing.target()
	if to == "" {
		return errNotMember
	}
	inner, err := net.DialTimeout("tcp", to, time.Second)
	if err != nil {
		return err
	}
	if err := f.passing.enter(to, c, inner); err != nil {
		_ = inner.Close()
		return err
	}
	defer f.passing.leave(c, inner)
	if _, err := inner.Write(first); err != nil {
		return nil
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(c, inner)
		f.passing.leave(c, inner)
	})
	_ = c.SetReadDeadline(time.Now().Add(f.o.hello)) //nolint:forbidigo // a deadline of the kernel's
	if _, err := io.CopyN(inner, c, answerBytes); err == nil {
		_ = c.SetReadDeadline(time.Time{})
		_, _ = io.Copy(inner, c)
	}
	f.passing.leave(c, inner)
	back.Wait()
	return nil
}
