package peer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/freeaddr"
)

// A relay stands before a front. It can be told to carry nothing, with all connections open, as a network that
// was cut does.
type relay struct {
	listener net.Listener

	mu    sync.Mutex
	to    string
	quiet chan struct{} // closed while it carries
	open  []net.Conn
	all   sync.WaitGroup
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, quiet: make(chan struct{})}
	close(r.quiet)
	r.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.all.Go(func() { r.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.silent(false)
		r.mu.Lock()
		for _, c := range r.open {
			_ = c.Close()
		}
		r.mu.Unlock()
		r.all.Wait()
	})
	return r
}

func (r *relay) addr() string { return r.listener.Addr().String() }

func (r *relay) leadTo(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

func (r *relay) silent(silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.quiet:
		if silent {
			r.quiet = make(chan struct{})
		}
	default:
		if !silent {
			close(r.quiet)
		}
	}
}

func (r *relay) carries() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.quiet
}

func (r *relay) carry(c net.Conn) {
	<-r.carries()
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	inner, err := net.Dial("tcp", to)
	if err != nil {
		_ = c.Close()
		return
	}
	r.mu.Lock()
	r.open = append(r.open, c, inner)
	r.mu.Unlock()
	one := func(to, from net.Conn) {
		defer to.Close()
		b := make([]byte, 16<<10)
		for {
			n, err := from.Read(b)
			<-r.carries()
			if _, werr := to.Write(b[:n]); err != nil || werr != nil {
				return
			}
		}
	}
	r.all.Go(func() { one(inner, c) })
	one(c, inner)
}

// behind opens a front that is reached through a relay.
func behind(t *testing.T, o peer.Options) (*peer.Front, *relay) {
	t.Helper()
	r := newRelay(t)
	o.Addr, o.Listen = r.addr(), "127.0.0.1:0"
	f := listen(t, o)
	r.leadTo(f.Listening())
	return f, r
}

// TestSilenceIsNoticed: a peer that is cut off is not up any more, calls to it end, and it comes back.
func TestSilenceIsNoticed(t *testing.T) {
	o := peer.Options{Ping: 50 * time.Millisecond}
	b, cut := behind(t, o)
	a := listen(t, o)
	a.Keep([]string{b.Addr()})
	waitUp(t, a, a.Addr(), b.Addr())
	entered := make(chan string, 1000)
	var running atomic.Int64
	b.Handle("wait", func(ctx context.Context, _ string, body []byte) ([]byte, error) {
		running.Add(1)
		defer running.Add(-1)
		entered <- string(body)
		<-ctx.Done()
		return nil, nil
	})
	lost, calls := make(chan error, 1), 0
	until(t, "a call is under way", func() error { // a busy machine is taken for a peer that is silent
		calls++
		body := fmt.Sprint(calls)
		go func() {
			_, err := a.Call(context.Background(), b.Addr(), "wait", []byte(body))
			lost <- err
		}()
		for {
			select {
			case of := <-entered:
				if of == body {
					return nil
				}
			case err := <-lost:
				return err
			}
		}
	})
	cut.silent(true)
	if err := <-lost; !errors.Is(err, peer.ErrLost) {
		t.Errorf("a call to a peer that was cut off ends with %v, want ErrLost", err)
	}
	waitUp(t, a, a.Addr())
	until(t, "the other end notices as well", func() error {
		if n := running.Load(); n > 0 {
			return fmt.Errorf("%d calls are handled", n)
		}
		return nil
	})
	until(t, "a call fails", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Call(ctx, b.Addr(), "wait", nil); !errors.Is(err, peer.ErrNotSent) {
			t.Fatalf("a call to a peer that is cut off: %v, want ErrNotSent", err)
		}
		return nil
	})
	cut.silent(false)
	waitUp(t, a, a.Addr(), b.Addr())
}

func TestStreamNoticesSilence(t *testing.T) {
	b, cut := behind(t, peer.Options{Ping: 10 * time.Millisecond})
	a := listen(t, peer.Options{Ping: 10 * time.Millisecond})
	var running atomic.Int64
	b.HandleStream("endless", func(ctx context.Context, _ string, _ []byte, w io.Writer) error {
		running.Add(1)
		defer running.Add(-1)
		_, _ = w.Write([]byte("x"))
		<-ctx.Done()
		return nil
	})
	var r io.ReadCloser
	until(t, "a stream begins", func() (err error) { // a busy machine is taken for a peer that is silent
		if r, err = a.Open(t.Context(), b.Addr(), "endless", nil); err != nil {
			return err
		}
		if _, err = r.Read(make([]byte, 1)); err != nil {
			_ = r.Close()
		}
		return err
	})
	defer r.Close()
	cut.silent(true)
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, peer.ErrLost) {
		t.Errorf("a stream that was cut off ends with %v, want ErrLost", err)
	}
	until(t, "the other end notices as well", func() error {
		if n := running.Load(); n > 0 {
			return fmt.Errorf("%d streams are written", n)
		}
		return nil
	})
}

// TestPeerThatComesLater: it is found, and found again after it was started again at the same address.
func TestPeerThatComesLater(t *testing.T) {
	addr := freeaddr.One(t)
	a := listen(t, peer.Options{})
	a.Keep([]string{addr})
	for range 3 {
		waitUp(t, a, a.Addr())
		b, err := peer.Listen(peer.Options{Addr: addr, Key: key(t, textA)})
		if err != nil {
			t.Fatal(err)
		}
		waitUp(t, a, a.Addr(), addr)
		_ = b.Close()
	}
}

func TestKeepEndsWhatWaits(t *testing.T) {
	b, cut := behind(t, peer.Options{})
	cut.silent(true)
	a := listen(t, peer.Options{})
	a.Keep([]string{b.Addr(), a.Addr()})
	failed := make(chan error, 1)
	go func() {
		_, err := a.Call(context.Background(), b.Addr(), "echo", nil)
		failed <- err
	}()
	a.Keep(nil)
	if err := <-failed; !errors.Is(err, peer.ErrNotSent) {
		t.Errorf("a call to a peer that is not kept any more ends with %v", err)
	}
	if s := a.Statuses(); len(s) != 0 {
		t.Errorf("%+v are kept", s)
	}
}

// TestWrongAddressIsNamed: the address of a node leads to another one.
func TestWrongAddressIsNamed(t *testing.T) {
	r := newRelay(t)
	b := listen(t, peer.Options{})
	r.leadTo(b.Addr())
	a := listen(t, peer.Options{})
	a.Keep([]string{r.addr()})
	until(t, "the mistake is named", func() error {
		s := a.Statuses()[0]
		if s.Err == nil || !strings.Contains(s.Err.Error(), b.Addr()) || !strings.Contains(s.Err.Error(), "--cluster-addr") {
			return errors.Join(errors.New("it is not"), s.Err)
		}
		return nil
	})
}

func TestClocksAreCompared(t *testing.T) {
	ahead := func() time.Time { return time.Now().Add(5 * time.Minute) }
	a, b := pair(t, peer.Options{}, peer.Options{Now: ahead})
	until(t, "the clock of the peer is known", func() error {
		s := a.Statuses()[0]
		if s.RTT == 0 {
			return errors.New("nothing is heard yet")
		}
		if off := s.Clock - 5*time.Minute; off.Abs() > s.RTT+10*time.Millisecond || s.RTT > time.Minute {
			t.Errorf("the clock of the peer is off by %v, and a ping took %v", s.Clock, s.RTT)
		}
		return nil
	})
	if s := a.Statuses()[0]; !s.Up || s.Addr != b.Addr() || s.Err != nil {
		t.Errorf("the status is %+v", s)
	}
}
