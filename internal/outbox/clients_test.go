package outbox

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/fault"
)

// TestKindsAreBoundedApart: a kind that is full leaves the other alone.
func TestKindsAreBoundedApart(t *testing.T) {
	c := New(Options{MaxStreams: 2, MaxSockets: 8, Spread: time.Nanosecond})
	refused := func(kind Kind, want string) {
		t.Helper()
		f := newFake(t)
		err := c.Admit(&f.client, kind, f)
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("one more is answered %v, want unavailable: %s", err, want)
		}
	}
	var sockets []*fakeTeller
	for range 2 {
		newFake(t).join(c, Stream)
	}
	refused(Stream, "there are 2 streams")
	for range 4 { // two strangers at a time
		for range 2 {
			sockets = append(sockets, newFake(t).join(c, Socket))
		}
		if len(sockets) < 8 {
			refused(Socket, "too many sockets that have neither")
		}
		for _, f := range sockets {
			f.client.Meet() // more often than once, too
		}
	}
	refused(Socket, "there are 8 sockets, which")
	if streams, sockets := c.Stats(Stream).Open, c.Stats(Socket).Open; streams != 2 || sockets != 8 {
		t.Errorf("%d streams and %d sockets are open, want 2 and 8", streams, sockets)
	}
	c.Close(t.Context())
	refused(Socket, "stopping")
	if c.strangers.all.Len() != 0 || c.count != 0 {
		t.Errorf("in the end there are %d strangers and %d clients", c.strangers.all.Len(), c.count)
	}
}

// TestStrangersLeaveRoom: the room of a stranger that leaves, or could not begin, is
// free again.
func TestStrangersLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{MaxSockets: 4, KeepAlive: quiet.KeepAlive})
		for i := range 10 {
			f := newFake(t)
			if err := c.Admit(&f.client, Socket, f); err != nil {
				t.Fatalf("stranger %d: %v", i, err)
			}
			if i%2 == 0 {
				f.client.Abandon()
				continue
			}
			f.client.Begin(f.way)
			f.client.End(ByClient)
			synctest.Wait()
		}
		if stats := c.Stats(Socket); stats.Open != 0 || stats.Closed["client"] != 5 || len(stats.Closed) != 1 {
			t.Errorf("ten strangers, of which five began, are counted as %+v", stats)
		}
		c.Close(t.Context())
	})
}

// TestKeepAlivesAreSpread: each client has one keep-alive in each interval, and not all
// of them at the same time.
func TestKeepAlivesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{KeepAlive: 30 * time.Second})
		time.Sleep(time.Second / 2) //nolint:forbidigo // fake time
		var all []*fakeTeller
		for i := range 60 {
			all = append(all, newFake(t).join(c, Kind(i%2)))
			time.Sleep(time.Second / 2) //nolint:forbidigo // fake time
		}
		for _, f := range all {
			f.beats.Store(0)
		}
		last, most := int64(0), int64(0)
		for second := range 300 {
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			synctest.Wait()
			sum := int64(0)
			for _, f := range all {
				sum += f.beats.Load()
			}
			most, last = max(most, sum-last), sum
			if second%30 == 29 {
				for i, f := range all {
					if n := f.beats.Load(); n != int64(second+1)/30 {
						t.Fatalf("after %d s client %d had %d keep-alives", second+1, i, n)
					}
				}
			}
		}
		if most > 3 {
			t.Errorf("%d of 60 keep-alives are in one second of 30", most)
		}
		c.Close(t.Context())
	})
}

// TestClientsThatLeaveAreNoticed within a sixth of the interval of keep-alives, and a
// little, whether or not they are told something.
func TestClientsThatLeaveAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{KeepAlive: 30 * time.Second})
		for range 40 {
			f := newFake(t).join(c, Stream)
			time.Sleep(700 * time.Millisecond) //nolint:forbidigo // fake time
			f.way.leave()
			time.Sleep(6 * time.Second) //nolint:forbidigo // fake time
			if n := c.Stats(Stream).Open; n != 0 {
				t.Fatal("a client that has left is there after 6 s")
			}
		}
		if n := c.Stats(Stream).Closed["client"]; n != 40 {
			t.Errorf("%d clients of 40 were ended by themselves", n)
		}
		c.Close(t.Context())
	})
}

// TestCloseIsSpread: clients of all kinds end one by one.
func TestCloseIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Spread: 3 * time.Second, KeepAlive: quiet.KeepAlive})
		for i := range 30 {
			newFake(t).join(c, Kind(i%2))
		}
		closed := make(chan struct{})
		go func() {
			c.Close(t.Context())
			close(closed)
		}()
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // fake time: after the first, before the second
		for gone := 1; gone <= 30; gone++ {
			synctest.Wait()
			if open := c.Stats(Stream).Open + c.Stats(Socket).Open; open != 30-gone {
				t.Fatalf("%d clients of 30 are open, want %d", open, 30-gone)
			}
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // fake time
		}
		<-closed
		streams, sockets := c.Stats(Stream).Closed["draining"], c.Stats(Socket).Closed["draining"]
		if streams != 15 || sockets != 15 {
			t.Errorf("%d streams and %d sockets were drained, want 15 of each", streams, sockets)
		}
		c.Close(t.Context()) // which does nothing
	})
}

// TestCloseCuts: a client that takes nothing is cut when the time is up, and one that
// was about to begin ends as well.
func TestCloseCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Spread: time.Second, KeepAlive: quiet.KeepAlive})
		stuck, late := newFake(t), newFake(t)
		stuck.way.stuck = make(chan struct{})
		stuck.join(c, Stream).tellOne()
		synctest.Wait() // it is being told
		if err := c.Admit(&late.client, Socket, late); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begun := time.Now()
		go func() {
			time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
			late.client.Begin(late.way)
		}()
		c.Close(ctx)
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("Close took %v, want it to wait for the client that begins after 10 s", took)
		}
		if n := c.Stats(Stream).Closed["client"]; n != 1 {
			t.Errorf("%d clients were cut, want 1", n)
		}
		if n := c.Stats(Socket).Closed["draining"]; n != 1 {
			t.Errorf("%d clients were drained, want 1", n)
		}
	})
}

// TestEventsAreCounted by kind, with how late they are.
func TestEventsAreCounted(t *testing.T) {
	now := time.UnixMilli(10_000)
	c := New(Options{Now: func() time.Time { return now }})
	f := newFake(t).join(c, Socket)
	f.client.CountEvent(9_000)
	f.client.CountEvent(0)
	stats := c.Stats(Socket)
	if stats.Events != 2 || stats.Lag.Count != 1 || stats.Lag.Sum != time.Second {
		t.Errorf("two events, one of them a second late, are counted as %+v", stats)
	}
	if n := c.Stats(Stream).Events; n != 0 {
		t.Errorf("%d events of streams are counted, want 0", n)
	}
	c.Close(t.Context())
}
