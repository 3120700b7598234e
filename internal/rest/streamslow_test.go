package rest_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/outbox"
)

// Clients that never read cost what they may, and nobody else notices.
func TestStreamsOfClientsThatTakeNothing(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{Blocked: 5 * time.Second})
	for _, protocol := range protocols {
		s.listen(protocol, "/a.json")
	}
	var others []*listening
	for i := range 6 {
		others = append(others, s.listen(protocols[i%3], "/a.json"))
		others[i].want(put("/", "null"))
	}
	// Of one frame the system takes all, so that nobody waits for those who read. All
	// together are more than the system and a topic keep.
	text := strings.Repeat("x", 20_000)
	for i := range 300 {
		data := fmt.Sprintf(`"%d%s"`, i, text)
		s.write("a", data)
		for _, c := range others {
			c.want(put("/", data))
		}
		if n := s.budget.Used(); n > 8<<20 {
			t.Fatalf("%d bytes are kept, want at most 8 MiB", n)
		}
	}
	s.awaitOpen(6)
	stats := s.streams.Stats(outbox.Stream)
	if stats.Closed["slow"]+stats.Closed["behind"] != int64(len(protocols)) {
		t.Errorf("the streams were ended by %v, want slow or behind", stats.Closed)
	}
}

// Many clients that take nothing hold up nobody, be it at their first event or at
// a later one.
func TestStreamsOfManyClientsThatTakeNothing(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{Blocked: time.Hour})
	other := s.listen("http/1.1", "/a/b.json")
	other.want(put("/", "null"))
	for range 50 {
		s.listen("http/1.1", "/a.json").want(put("/", "null"))
	}
	s.write("a/large", `"`+strings.Repeat("x", 1<<20)+`"`) // more than the system keeps
	s.write("a/b", "1")
	other.want(put("/", "1"))
	for range 50 {
		s.listen("http/1.1", "/a.json")
	}
	s.write("a/b", "2")
	other.want(put("/", "2"))
	if n := s.streams.Stats(outbox.Stream).Open; n != 101 {
		t.Errorf("%d streams are open, want all 101", n)
	}
}

// A first event is sent as it is read from the store, as fast as the client takes
// it; what is not taken is not in memory.
func TestStreamOfMuchData(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures memory")
	}
	s := serveStreams(t, outbox.Options{})
	want := len(put("/", "{}")) - 1 + len("\n\n")
	text := strings.Repeat("x", 10_000)
	for i := range 30 { // of a megabyte
		var part strings.Builder
		for j := range 100 {
			fmt.Fprintf(&part, `,"k%02d":"%s"`, j, text)
		}
		s.write(fmt.Sprintf("a/p%02d", i), "{"+part.String()[1:]+"}")
		want += part.Len() + len(`,"p00":{}`) - 1
	}
	for _, protocol := range protocols {
		fast := s.listen(protocol, "/a.json")
		if n, err := io.CopyN(io.Discard, fast, int64(want)); err != nil {
			t.Fatalf("%s: the first event ends after %d of %d bytes: %v", protocol, n, want, err)
		}
		s.write("a/p00/k00", `"`+protocol+`"`)
		fast.want(put("/p00/k00", `"`+protocol+`"`))
		s.write("a/p00/k00", `"`+text+`"`)
		base := heapBytes()
		for range 10 {
			slow := s.listen(protocol, "/a.json")
			if n, err := io.CopyN(io.Discard, slow, 1<<20); err != nil {
				t.Fatalf("%s: the first event ends after %d bytes: %v", protocol, n, err)
			}
		}
		if more := heapBytes() - base; more > 30<<20 {
			t.Errorf("%s: ten clients that take 30 MB slowly take %d bytes of memory", protocol, more)
		}
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A client that takes an event slowly, but steadily, keeps its stream, also if it
// takes longer than the time in which it must take something.
func TestStreamOfASteadyClient(t *testing.T) {
	t.Parallel()
	const blocked = 5 * time.Second // some of which a busy machine needs for itself
	for tries := 1; ; tries++ {
		idle, err := takeSteadily(t, blocked)
		switch {
		case err == nil:
			return
		case idle < blocked/5 || tries == 10:
			t.Fatalf("the clients took something every %v: %v", idle, err)
		}
		t.Logf("again, for the machine let nobody take anything for %v: %v", idle, err)
	}
}

// takeSteadily has clients take an event in small parts, for longer than blocked. If one loses its stream, idle is the longest time in
// which the clients took nothing.
func takeSteadily(t *testing.T, blocked time.Duration) (idle time.Duration, err error) {
	t.Helper()
	s := serveStreams(t, outbox.Options{Blocked: blocked})
	var clients []*listening
	for i, protocol := range protocols {
		clients = append(clients, s.listen(protocol, "/a.json"))
		clients[i].want(put("/", "null"))
	}
	data := `"` + strings.Repeat("x", 2<<20) + `"`
	s.write("a", data)
	pace := time.NewTicker(blocked / 40)
	defer pace.Stop()
	want := len(put("/", data)) + 2
	begun := time.Now()
	last := begun
	for got := 0; got < want; {
		<-pace.C // 100 of them are more than twice the time
		part := min(want/100+1, want-got)
		for i, c := range clients {
			n, err := io.CopyN(io.Discard, c, int64(part))
			idle = max(idle, time.Since(last))
			if err != nil {
				return idle, fmt.Errorf("%s: the event ends after %d of %d bytes and %v: %w", protocols[i], got+int(n), want, time.Since(begun), err)
			}
		}
		last = time.Now()
		got += part
	}
	s.write("a", "1")
	for _, c := range clients {
		c.want(put("/", "1"))
	}
	return 0, nil
}

// A stream whose client takes nothing does not keep a database from being
// dropped, nor the server from stopping.
func TestStreamThatIsStuck(t *testing.T) {
	for _, protocol := range protocols {
		s := serveStreams(t, outbox.Options{Blocked: time.Hour})
		s.write("a", `"`+strings.Repeat("x", 1<<20)+`"`)
		s.listen(protocol, "/a.json")
		if err := s.catalog.Drop("default"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.streams.Close(ctx)
		if n := s.streams.Stats(outbox.Stream).Open; n != 0 {
			t.Errorf("%s: %d streams are open after Close", protocol, n)
		}
	}
}
