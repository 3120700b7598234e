package outbox

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A fakeWay is a Way that keeps what it is sent. While stuck is set and open, a Send
// waits until it is closed or the way is cut.
type fakeWay struct {
	mu     sync.Mutex
	sent   [][]byte
	closed bool
	gone   bool
	stuck  chan struct{}
	cut    chan struct{}
	fails  error
	onSend func()
}

func newFakeWay() *fakeWay { return &fakeWay{cut: make(chan struct{})} }

var errCut = errors.New("the way is cut")

func (w *fakeWay) Send(p []byte) error {
	if w.onSend != nil {
		w.onSend()
	}
	if w.stuck != nil {
		select {
		case <-w.stuck:
		case <-w.cut:
			return errCut
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, slices.Clone(p))
	return w.fails
}

func (w *fakeWay) Gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}

func (w *fakeWay) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
}

func (w *fakeWay) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

func (w *fakeWay) Cut() { close(w.cut) }

func (w *fakeWay) texts() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.sent {
		list = append(list, string(p))
	}
	return list
}

// A fakeTeller has one client, which it tells of a number: how far it has counted. It
// notices if it is called by two goroutines at a time.
type fakeTeller struct {
	t      testing.TB
	client Client
	way    *fakeWay

	inside   atomic.Int32
	counted  atomic.Int64 // what there is to tell
	told     atomic.Int64
	beats    atomic.Int64
	calls    atomic.Int64
	released atomic.Int64
}

func newFake(t testing.TB) *fakeTeller { return &fakeTeller{t: t, way: newFakeWay()} }

// join has the client admitted and begun.
func (f *fakeTeller) join(c *Clients, kind Kind) *fakeTeller {
	f.t.Helper()
	if err := c.Admit(&f.client, kind, f); err != nil {
		f.t.Fatal(err)
	}
	f.client.Begin(f.way)
	return f
}

func (f *fakeTeller) Tell() Reason {
	if f.inside.Add(1) != 1 {
		f.t.Error("two goroutines tell one client")
	}
	defer f.inside.Add(-1)
	f.calls.Add(1)
	if reason := f.client.Ending(); reason != GoesOn {
		return reason
	}
	if f.client.TakeBeat() {
		if f.client.Gone() {
			return ByClient
		}
		f.beats.Add(1)
	}
	n := f.counted.Load()
	if n == f.told.Load() {
		return GoesOn
	}
	f.told.Store(n)
	return Why(f.client.Send([]byte{byte(n)}))
}

func (f *fakeTeller) Release() {
	if f.way.closed {
		f.t.Error("a client is released after its way was closed")
	}
	f.released.Add(1)
}

// tellOne gives the client something to be told.
func (f *fakeTeller) tellOne() {
	f.counted.Add(1)
	f.client.Wake()
}

// quiet are options by which nothing happens by itself.
var quiet = Options{KeepAlive: 1000 * time.Hour}
