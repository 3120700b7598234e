package peer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/peer"
)

// echo answers with what it was asked, and by whom.
func echo(_ context.Context, from string, body []byte) ([]byte, error) {
	return append([]byte(from+" "), body...), nil
}

// nothingHeld checks that all that calls took is given back.
func nothingHeld(t *testing.T, fronts ...*peer.Front) {
	t.Helper()
	for _, f := range fronts {
		until(t, "all is given back", func() error {
			if b, a, c, s := f.Held(); b != 0 || a != 0 || c != 0 || s != 0 {
				return fmt.Errorf("%d and %d bytes, %d calls, %d streams are taken", b, a, c, s)
			}
			return nil
		})
	}
}

func TestCall(t *testing.T) {
	a, b := pair(t, peer.Options{}, peer.Options{})
	for _, f := range []*peer.Front{a, b} {
		f.Handle("echo", echo)
		f.Handle("further", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			return f.Call(ctx, f.Addr(), "what", nil)
		})
		f.Handle("no", func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("not today") })
	}
	for _, to := range []*peer.Front{a, b} {
		got, err := a.Call(t.Context(), to.Addr(), "echo", []byte("hello"))
		if want := a.Addr() + " hello"; err != nil || string(got) != want {
			t.Errorf("Call = %q, %v, want %q", got, err, want)
		}
		if got, err := a.Call(t.Context(), to.Addr(), "echo", nil); err != nil || string(got) != a.Addr()+" " {
			t.Errorf("Call with an empty body = %q, %v", got, err)
		}
		var refused *peer.Refused
		if _, err := a.Call(t.Context(), to.Addr(), "no", nil); !errors.As(err, &refused) || refused.Text != "not today" {
			t.Errorf("the handler's error comes as %v", err)
		}
		if _, err := a.Call(t.Context(), to.Addr(), "further", nil); !errors.As(err, &refused) || errors.Is(err, peer.ErrNotSent) {
			t.Errorf("what a call of the handler's own came to is said of the call itself: %v", err)
		}
		if _, err := a.Call(t.Context(), to.Addr(), "what", nil); !errors.Is(err, peer.ErrNotSent) {
			t.Errorf("a kind without a handler: %v, want ErrNotSent", err)
		}
	}
	if _, err := b.Call(t.Context(), a.Addr(), "echo", nil); !errors.Is(err, peer.ErrNotSent) {
		t.Errorf("a peer that is not kept: %v, want ErrNotSent", err)
	}
	nothingHeld(t, a, b)
}

// TestManyCalls makes small and large calls at the same time, among three nodes.
func TestManyCalls(t *testing.T) {
	var nodes []*peer.Front
	var addrs []string
	for range 3 {
		f := listen(t, peer.Options{MaxBody: 2 << 20, MaxCalls: 16})
		f.Handle("echo", echo)
		nodes, addrs = append(nodes, f), append(addrs, f.Addr())
	}
	var all sync.WaitGroup
	for i, f := range nodes {
		f.Keep(addrs)
		waitUp(t, f, addrs...)
		for n := range 20 {
			all.Go(func() {
				body := bytes.Repeat([]byte{byte(n)}, []int{10, 64 << 10, 65<<10 + 1, 1 << 20}[n%4])
				got, err := f.Call(t.Context(), addrs[(i+1+n%2)%3], "echo", body)
				if err != nil || !bytes.Equal(got, append([]byte(f.Addr()+" "), body...)) {
					t.Errorf("a call of %d bytes = %d bytes, %v", len(body), len(got), err)
				}
			})
		}
	}
	all.Wait()
	nothingHeld(t, nodes...)
}

func TestLargeCallHoldsUpNoOther(t *testing.T) {
	a, b := pair(t, peer.Options{MaxBody: 16 << 20}, peer.Options{MaxBody: 16 << 20})
	b.Handle("echo", echo)
	b.Handle("size", func(_ context.Context, _ string, body []byte) ([]byte, error) { return fmt.Append(nil, len(body)), nil })
	until(t, "a large call is answered", func() error {
		large := make(chan error, 1)
		go func() {
			got, err := a.Call(t.Context(), b.Addr(), "size", make([]byte, 16<<20))
			if err == nil && string(got) != fmt.Sprint(16<<20) {
				err = fmt.Errorf("the answer is %q", got)
			}
			large <- err
		}()
		small := 0
		for {
			select {
			case err := <-large:
				if err == nil && small == 0 {
					err = errors.New("no other was answered meanwhile")
				}
				return err
			default:
			}
			if _, err := a.Call(t.Context(), b.Addr(), "echo", nil); err == nil {
				small++
			}
		}
	})
}

func TestBoundsOfCalls(t *testing.T) {
	a, b := pair(t, peer.Options{MaxBody: 2 << 20}, peer.Options{MaxBody: 1 << 20, MaxBodies: 8 << 20})
	entered, release := make(chan bool, 10), make(chan bool)
	b.Handle("wait", func(_ context.Context, _ string, body []byte) ([]byte, error) {
		entered <- true
		<-release
		return body, nil
	})
	b.Handle("long", func(context.Context, string, []byte) ([]byte, error) { return make([]byte, 1<<20+1), nil })
	if _, err := a.Call(t.Context(), b.Addr(), "wait", make([]byte, 2<<20+1)); !errors.Is(err, peer.ErrNotSent) {
		t.Errorf("a body that is too large here: %v, want ErrNotSent", err)
	}
	if _, err := a.Call(t.Context(), b.Addr(), "wait", make([]byte, 2<<20)); !errors.Is(err, peer.ErrNotSent) || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("a body that is too large there: %v, want ErrNotSent and why", err)
	}
	if _, err := a.Call(t.Context(), b.Addr(), "long", nil); err == nil || !strings.Contains(err.Error(), "more than 1048576") {
		t.Errorf("an answer that is too large: %v", err)
	}
	var two sync.WaitGroup
	for range 2 {
		two.Go(func() {
			if got, err := a.Call(t.Context(), b.Addr(), "wait", make([]byte, 1<<20)); err != nil || len(got) != 1<<20 {
				t.Errorf("a call that waits = %d bytes, %v", len(got), err)
			}
		})
		<-entered
	}
	if _, err := a.Call(t.Context(), b.Addr(), "wait", make([]byte, 1<<20)); !errors.Is(err, peer.ErrNotSent) {
		t.Errorf("a body beyond what one connection gets: %v, want ErrNotSent", err)
	}
	c := listen(t, peer.Options{})
	c.Keep([]string{b.Addr()})
	waitUp(t, c, c.Addr(), b.Addr())
	two.Go(func() {
		if _, err := c.Call(t.Context(), b.Addr(), "wait", make([]byte, 1<<20)); err != nil {
			t.Errorf("another node has no room: %v", err)
		}
	})
	<-entered
	close(release)
	two.Wait()
	nothingHeld(t, a, b)
}

func TestCallsUnderWayAreBounded(t *testing.T) {
	a, b := pair(t, peer.Options{MaxCalls: 2}, peer.Options{MaxCalls: 2})
	entered, release := make(chan bool, 10), make(chan bool)
	b.Handle("wait", func(context.Context, string, []byte) ([]byte, error) {
		entered <- true
		<-release
		return nil, nil
	})
	var two sync.WaitGroup
	for range 2 {
		two.Go(func() {
			if _, err := a.Call(t.Context(), b.Addr(), "wait", nil); err != nil {
				t.Error(err)
			}
		})
		<-entered
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Call(ctx, b.Addr(), "wait", nil); !errors.Is(err, peer.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a third call: %v, want ErrNotSent and why", err)
	}
	close(release)
	two.Wait()
}

func TestCancelReachesTheHandler(t *testing.T) {
	a, b := pair(t, peer.Options{}, peer.Options{})
	entered, ended := make(chan bool, 1), make(chan bool, 1)
	b.Handle("wait", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		entered <- true
		<-ctx.Done()
		ended <- true
		return nil, nil
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("another home is known")
	go func() {
		<-entered
		cancel(why)
	}()
	if _, err := a.Call(ctx, b.Addr(), "wait", nil); !errors.Is(err, peer.ErrLost) || !errors.Is(err, why) {
		t.Errorf("a call that was given up: %v, want ErrLost and why", err)
	}
	<-ended
	nothingHeld(t, a, b)
}

// TestPeerThatGoesLosesCalls: the handler sees its caller go, the caller that its answer is lost.
func TestPeerThatGoesLosesCalls(t *testing.T) {
	for _, who := range []string{"caller", "handler"} {
		t.Run(who, func(t *testing.T) {
			a, b := pair(t, peer.Options{}, peer.Options{})
			entered, ended := make(chan bool, 1), make(chan bool, 1)
			b.Handle("wait", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
				entered <- true
				<-ctx.Done()
				ended <- true
				return nil, ctx.Err()
			})
			failed := make(chan error, 1)
			go func() {
				_, err := a.Call(context.Background(), b.Addr(), "wait", nil)
				failed <- err
			}()
			<-entered
			goes := a
			if who == "handler" {
				goes = b
			}
			_ = goes.Close()
			<-ended
			if err := <-failed; !errors.Is(err, peer.ErrLost) {
				t.Errorf("the call ends with %v, want ErrLost", err)
			}
			if _, err := a.Call(t.Context(), b.Addr(), "wait", nil); !errors.Is(err, peer.ErrNotSent) {
				t.Errorf("a call after that: %v, want ErrNotSent", err)
			}
		})
	}
}

// TestNothingRunsAfterClose looks for goroutines of this package.
func TestNothingRunsAfterClose(t *testing.T) {
	a, b := pair(t, peer.Options{}, peer.Options{})
	b.Handle("echo", echo)
	if _, err := a.Call(t.Context(), b.Addr(), "echo", nil); err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	_ = b.Close()
	until(t, "nothing runs", func() error {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "cluster/peer.") {
				return fmt.Errorf("there is\n%s", stack)
			}
		}
		return nil
	})
}

// TestCallsGivenUpWhileSent gives up calls at any moment of sending their bodies, beside a call that waits: that goes on, over
// the same connection, and nothing stays of the others.
func TestCallsGivenUpWhileSent(t *testing.T) {
	t.Parallel()
	a, b := pair(t, peer.Options{}, peer.Options{})
	b.Handle("large", echo)
	arrived, end := make(chan struct{}), make(chan struct{})
	b.Handle("waits", func(context.Context, string, []byte) ([]byte, error) {
		close(arrived)
		<-end
		return []byte("done"), nil
	})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if got, err := a.Call(t.Context(), b.Addr(), "waits", nil); err != nil || string(got) != "done" {
			t.Errorf("the call that waits = %q, %v", got, err)
		}
	})
	<-arrived
	var calls sync.WaitGroup
	for i := range 4 {
		calls.Go(func() {
			body := make([]byte, 1<<20)
			for n := range 30 {
				ctx, cancel := context.WithCancel(t.Context())
				stop := time.AfterFunc(time.Duration(n*(i+1))*20*time.Microsecond, cancel)
				_, _ = a.Call(ctx, b.Addr(), "large", body) // given up, or in time
				stop.Stop()
				cancel()
			}
		})
	}
	calls.Wait()
	if got, err := a.Call(t.Context(), b.Addr(), "large", []byte("x")); err != nil || string(got) != a.Addr()+" x" {
		t.Errorf("a call after all = %q, %v", got, err)
	}
	close(end)
	waiting.Wait()
	nothingHeld(t, a, b)
}

// TestLargeCallsLeaveLittleGarbage is not parallel: it counts what the whole process allocates. A large body is in memory at the other end once, and what
// carries it is used again.
func TestLargeCallsLeaveLittleGarbage(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	const size = 64 << 20
	a, b := pair(t, peer.Options{MaxBody: 2 * size, MaxBodies: 8 * size}, peer.Options{MaxBody: 2 * size, MaxBodies: 8 * size})
	b.Handle("length", func(_ context.Context, _ string, body []byte) ([]byte, error) { return fmt.Append(nil, len(body)), nil })
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i * 7 >> 3)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := a.Call(t.Context(), b.Addr(), "length", body)
	runtime.ReadMemStats(&after)
	if err != nil || string(got) != fmt.Sprint(size) {
		t.Fatalf("Call = %q, %v", got, err)
	}
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("a call with %d MiB allocates %d MiB", size>>20, allocated>>20)
	if allocated > size*3/2 {
		t.Errorf("a call with %d MiB allocates %d MiB, want half as much again at most", size>>20, allocated>>20)
	}
}

// TestMemoryOfFramesIsNotShared has many calls with bodies of several frames be under way at a time: each comes back as it was.
func TestMemoryOfFramesIsNotShared(t *testing.T) {
	t.Parallel()
	a, b := pair(t, peer.Options{}, peer.Options{})
	b.Handle("same", func(_ context.Context, _ string, body []byte) ([]byte, error) { return body, nil })
	var calls sync.WaitGroup
	for i := range 16 {
		calls.Go(func() {
			for n := range 8 {
				body := bytes.Repeat([]byte{byte(i), byte(n), 3}, 100_000)
				if got, err := a.Call(t.Context(), b.Addr(), "same", body); err != nil || !bytes.Equal(got, body) {
					t.Errorf("call %d of caller %d comes back with %d bytes that differ, %v", n, i, len(got), err)
				}
			}
		})
	}
	calls.Wait()
}
