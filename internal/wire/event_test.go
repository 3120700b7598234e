package wire_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire"
	"github.com/livetree/livetree/internal/wiretest"
)

// TestLargeEventsCount: large changes count in the memory for what is read until their clients
// have taken them. Those that there is none for are told later. All are told in the end.
func TestLargeEventsCount(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"plain": "", "query": `"q":{"i":".key"},"t":7,`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit, bytes, clients = 4 << 20, 300 << 10, 8
			memory := budget.NewMemory(2 * limit) // half of it for reads
			with := func(o *wire.Options, _ *outbox.Options) { o.Memory = memory }
			atRestWith(t, with, func(t *testing.T, s *still) {
				var all []*wiretest.Client
				for i := range clients {
					all = append(all, s.socket(t, ""))
					ask(t, all[i], "q", fmt.Sprintf(`{"p":"/l/%d",%s"h":""}`, i, query))
				}
				for i := range clients {
					s.db.Put(fmt.Sprintf("/l/%d", i), fmt.Sprintf(`{"x":"%s"}`, strings.Repeat("x", bytes)))
				}
				s.db.WaitForWatches()
				synctest.Wait() // nobody takes anything
				if taken := memory.Reads.Taken(); taken < 2*bytes || taken > limit/4 {
					t.Errorf("%d clients that take nothing of %d bytes count for %d of %d", clients, bytes, taken, limit)
				}
				var reading sync.WaitGroup
				for i, c := range all {
					reading.Go(func() {
						message, err := c.NextOrEnd()
						if err != nil || len(message) < bytes || !strings.Contains(message, fmt.Sprintf(`"p":"l/%d"`, i)) {
							t.Errorf("client %d is told %.100q, of %d bytes: %v", i, message, len(message), err)
						}
					})
				}
				reading.Wait()
				synctest.Wait()
				if taken := memory.Reads.Taken(); taken != 0 {
					t.Errorf("%d bytes are never given back", taken)
				}
			})
		})
	}
}

// TestLargeEventsAreTakenAtARate: who takes a large change too slowly is given up.
func TestLargeEventsAreTakenAtARate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		piece int64 // that the client takes each second
		slow  int64
	}{"slowly": {8 << 10, 1}, "steadily": {32 << 10, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atRest(t, func(t *testing.T, s *still) {
				const bytes = 4 << 20
				c := s.socket(t, "")
				ask(t, c, "q", `{"p":"/x","h":""}`)
				s.db.Put("/x", `"`+strings.Repeat("x", bytes)+`"`)
				_ = c.Conn().SetReadDeadline(time.Now().Add(long))
				for got := int64(0); got < bytes; {
					time.Sleep(time.Second) //nolint:forbidigo // fake time
					n, err := io.CopyN(io.Discard, c.Conn(), test.piece)
					if got += n; err != nil {
						break
					}
				}
				synctest.Wait()
				if n := s.clients.Stats(outbox.Socket).Closed["slow"]; n != test.slow {
					t.Errorf("%d clients were given up as slow, want %d", n, test.slow)
				}
			})
		})
	}
}

// TestTooBigToTell: a change that is longer than a message may be ends the listen, as reading it
// would, and the connection goes on.
func TestTooBigToTell(t *testing.T) {
	t.Parallel()
	const most = 100_000
	s := serve(t, func(o *wire.Options, _ *outbox.Options) { o.MaxContent = most })
	c, _ := s.dial("")
	ask(t, c, "q", `{"p":"/x","h":""}`)
	around := len(push("x", `""`)) + len(`,"t":9007199254740992`)
	s.db.Put("/x", `"`+strings.Repeat("x", most-around)+`"`)
	if got := c.Next(); len(got) < most-around {
		t.Errorf("a change that fits is told as %.100q", got)
	}
	s.db.Put("/x", `"`+strings.Repeat("y", most)+`"`)
	c.Expect(`{"t":"d","d":{"a":"c","b":{"p":"x"}}}`)
	if _, d := ask(t, c, "g", `{"p":"/none","q":{}}`); d != "null" {
		t.Errorf("a read after it is answered %s", d)
	}
}
