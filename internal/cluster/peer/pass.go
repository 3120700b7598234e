package peer

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// An Etcd takes the connections that are not this package's. Its value must be one that can be compared.
type Etcd interface {
	// Take takes a connection, and does not wait for what comes of it. Whoever has taken it closes it.
	Take(c net.Conn)
}

// passing are the connections that etcd has.
type passing struct {
	mu   sync.Mutex
	to   Etcd
	open map[*passed]bool
}

// PassTo says who takes connections that are not this package's. If that is nil they are refused. Those that another one has are closed.
//
// Etcd has a listener of its own, too. It was the way in at first, and this front a proxy before it, which sent each message once more through the
// kernel: a twentieth of what linearizable reads cost.
func (f *Front) PassTo(to Etcd) {
	p := &f.passing
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to == to {
		return
	}
	p.to = to
	for c := range p.open {
		_ = c.Close()
	}
}

var (
	errNotMember = errors.New("this node runs no etcd now")
)

// enter notes a connection, which is closed when another etcd takes them, and returns who takes it.
func (p *passing) enter(c *passed) (Etcd, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to == nil {
		return nil, errNotMember
	}
	if p.open == nil {
		p.open = map[*passed]bool{}
	}
	p.open[c] = true
	return p.to, nil
}

func (p *passing) leave(c *passed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	_ = c.Close()
}

// pass hands a connection to etcd, with what was read of it, and returns when it is over. The other end must go on with its handshake in time. That it
// idles later is seen by etcd, which gives each read five seconds.
func (f *Front) pass(c net.Conn, first []byte) error {
	p := &passed{replay: replay{Conn: c, first: first}, closed: make(chan struct{})}
	to, err := f.passing.enter(p)
	if err != nil {
		return err
	}
	defer f.passing.leave(p)
	_ = c.SetReadDeadline(time.Now().Add(f.o.hello)) //nolint:forbidigo // a deadline of the kernel's
	to.Take(p)
	select {
	case <-p.closed:
	case <-f.life.Done():
	}
	return nil
}

// passed is a connection that etcd has. What it reads at first has to come in the time of a first message, whatever time etcd gives it.
type passed struct {
	replay
	came   int         // how many bytes came after the first message, until that are enough; only the reader has it
	isFree atomic.Bool // they are: deadlines are etcd's from then on
	once   sync.Once
	closed chan struct{}
}

func (p *passed) Read(b []byte) (int, error) {
	if p.isFree.Load() {
		return p.Conn.Read(b)
	}
	isFirst := len(p.first) > 0
	n, err := p.replay.Read(b)
	if isFirst {
		return n, err
	}
	if p.came += n; p.came >= answerBytes {
		_ = p.Conn.SetReadDeadline(time.Time{})
		p.isFree.Store(true)
	}
	return n, err
}

// SetReadDeadline implements [net.Conn].
func (p *passed) SetReadDeadline(t time.Time) error {
	if !p.isFree.Load() {
		return nil
	}
	return p.Conn.SetReadDeadline(t)
}

// SetDeadline implements [net.Conn].
func (p *passed) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

// Close implements [net.Conn].
func (p *passed) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Conn.Close()
}
