package outbox

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoWakeIsLost: whoever makes something to tell and wakes the client can rely on it
// being told, by one goroutine at a time, whatever else happens to the client.
func TestNoWakeIsLost(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range 200 {
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		c := New(quiet)
		f := newFake(t)
		if err := c.Admit(&f.client, Stream, f); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		var serving sync.WaitGroup
		if round%2 == 0 {
			f.client.Begin(f.way)
		} else {
			serving.Go(func() { f.client.Serve(f.way, gone) })
		}
		const wakers, wakes = 4, 25
		var all sync.WaitGroup
		for range wakers {
			looks := random.IntN(2) == 0
			all.Go(func() {
				for range wakes {
					f.tellOne()
					if looks {
						f.client.lookAfter()
					}
				}
			})
		}
		all.Wait()
		for deadline := time.Now().Add(30 * time.Second); f.told.Load() != wakers*wakes; {
			if time.Now().After(deadline) {
				t.Fatalf("round %d: the client was told up to %d of %d", round, f.told.Load(), wakers*wakes)
			}
			runtime.Gosched()
		}
		c.Close(t.Context())
		serving.Wait()
		if f.released.Load() != 1 || !f.way.closed {
			t.Fatalf("round %d: the client was released %d times, its way is closed: %v", round, f.released.Load(), f.way.closed)
		}
	}
}

// TestWakeBeforeBegin: a client may be woken before there is a way to it. It is told when
// it begins.
func TestWakeBeforeBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(quiet)
		f := newFake(t)
		f.tellOne() // not even admitted
		if err := c.Admit(&f.client, Socket, f); err != nil {
			t.Fatal(err)
		}
		f.tellOne()
		synctest.Wait()
		if n := f.calls.Load(); n != 0 {
			t.Fatalf("a client that has not begun is told %d times", n)
		}
		f.client.Begin(f.way)
		synctest.Wait()
		if f.told.Load() != 2 {
			t.Errorf("a client that begins was told up to %d, want 2", f.told.Load())
		}
		c.Close(t.Context())
	})
}

// TestIdleClientsHaveNoGoroutine: clients with nothing to tell share none.
func TestIdleClientsHaveNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(quiet)
		for range 100 {
			newFake(t).join(c, Stream).tellOne()
		}
		synctest.Wait()
		c.runners.mu.Lock()
		if c.runners.running != 0 || c.runners.next != len(c.runners.queue) {
			t.Errorf("%d runners are left, %d clients wait", c.runners.running, len(c.runners.queue)-c.runners.next)
		}
		c.runners.mu.Unlock()
		c.Close(t.Context())
	})
}

// TestHeldUpClientsHoldUpNobody: however many clients take nothing, another one is told
// within moments.
func TestHeldUpClientsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const held = 300
		c := New(quiet)
		stuck := make(chan struct{})
		for range held {
			f := newFake(t).join(c, Socket)
			synctest.Wait() // it has begun
			f.way.stuck = stuck
			f.tellOne()
		}
		other := newFake(t).join(c, Stream)
		synctest.Wait()
		begun := time.Now()
		other.tellOne()
		for other.told.Load() == 0 {
			time.Sleep(time.Millisecond) //nolint:forbidigo // fake time
		}
		if took := time.Since(begun); took > 50*time.Millisecond {
			t.Errorf("with %d clients that take nothing, another is told after %v", held, took)
		}
		close(stuck)
		c.Close(t.Context())
	})
}

// TestEndCountsTheFirstReason: the client learns one reason, and is counted by it.
func TestEndCountsTheFirstReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(quiet)
		f := newFake(t).join(c, Socket)
		f.client.End(Revoked)
		f.client.End(Draining)
		synctest.Wait()
		f.client.End(Slow) // which does nothing
		f.client.Wake()
		stats := c.Stats(Socket)
		if stats.Open != 0 || stats.Closed["revoked"] != 1 || len(stats.Closed) != 1 {
			t.Errorf("a client that was ended as revoked is counted as %+v", stats)
		}
		if f.released.Load() != 1 || !f.way.closed {
			t.Errorf("it was released %d times, its way is closed: %v", f.released.Load(), f.way.closed)
		}
		c.Close(t.Context())
	})
}

// TestAReaderEndsItsClient: a socket's reader notices first that the client has gone,
// also while a write waits for it.
func TestAReaderEndsItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(quiet)
		f := newFake(t)
		f.way.stuck = make(chan struct{})
		if err := c.Admit(&f.client, Socket, f); err != nil {
			t.Fatal(err)
		}
		left, returned := make(chan struct{}), false
		f.client.Go(func() {
			<-left
			f.client.End(ByClient)
			f.client.Cut()
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			returned = true
		})
		f.counted.Add(1)
		f.client.Begin(f.way)
		synctest.Wait()
		if n := c.Stats(Socket).Open; n != 1 {
			t.Fatalf("%d sockets are open while one is sent something, want 1", n)
		}
		close(left)
		synctest.Wait()
		if stats := c.Stats(Socket); stats.Open != 0 || stats.Closed["client"] != 1 {
			t.Errorf("when the reader has ended there are %+v, want one that was ended by its client", stats)
		}
		c.Close(t.Context())
		if !returned {
			t.Error("Close has not waited for the reader")
		}
	})
}

// TestServeEndsWithItsRequest: the handler of a client that has left returns.
func TestServeEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(quiet)
		f := newFake(t)
		if err := c.Admit(&f.client, Stream, f); err != nil {
			t.Fatal(err)
		}
		gone, served := make(chan struct{}), make(chan struct{})
		go func() {
			f.client.Serve(f.way, gone)
			close(served)
		}()
		synctest.Wait()
		close(gone)
		<-served
		if n := c.Stats(Stream).Closed["client"]; n != 1 {
			t.Errorf("%d clients were ended by themselves, want 1", n)
		}
		c.Close(t.Context())
	})
}

// TestGreet: a client that was sent nothing is greeted, once.
func TestGreet(t *testing.T) {
	f := newFake(t)
	f.client.way = f.way
	for range 2 {
		if err := f.client.Greet(); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.way.texts(); !slices.Equal(got, []string{""}) {
		t.Errorf("two greetings send %q, want one", got)
	}
}

func TestWhy(t *testing.T) {
	for _, test := range []struct {
		err  error
		want Reason
	}{
		{nil, GoesOn},
		{ErrSlow, Slow},
		{errors.Join(errors.New("write"), os.ErrDeadlineExceeded), Slow},
		{errCut, ByClient},
	} {
		if got := Why(test.err); got != test.want {
			t.Errorf("Why(%v) = %q, want %q", test.err, got, test.want)
		}
	}
}
