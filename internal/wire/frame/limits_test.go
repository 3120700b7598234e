package frame_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wiretest"
)

// A budget is one for tests: by one goroutine.
type budget struct{ left, least int }

func (b *budget) Charge(n int) bool {
	if n > b.left {
		return false
	}
	b.left -= n
	b.least = min(b.least, b.left)
	return true
}

func (b *budget) Release(n int) { b.left += n }

// endless sends frames for ever.
type endless struct {
	first, again []byte
	at           int
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.first) > 0 {
		n := copy(p, e.first)
		e.first = e.first[n:]
		return n, nil
	}
	n := copy(p, e.again[e.at:])
	e.at = (e.at + n) % len(e.again)
	return n, nil
}

func TestReaderRefusesAMessageThatIsTooLarge(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]io.Reader{
		"segments": &endless{first: sent(text("1100")), again: sent(text(strings.Repeat("x", 65536)))},
		"fragments": &endless{
			first: sent(fragment(wiretest.OpText, "{", false)),
			again: sent(fragment(wiretest.OpContinuation, strings.Repeat("x", 100000), false)),
		},
		"one frame":    bytes.NewReader([]byte{0x81, 0xff, 0, 0, 0, 0, 1, 0, 0, 1, 1, 2, 3, 4}),
		"a huge frame": bytes.NewReader([]byte{0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4}),
	} {
		budget := &budget{left: 1 << 30, least: 1 << 30}
		got := read(src, frame.ReaderOptions{Budget: budget})
		if len(got) != 1 || got[0] != "refused 1009" {
			t.Errorf("%s: %q, want refused 1009", name, got)
		}
		if most := 1<<30 - budget.least; most > 3*frame.MaxMessage/2 {
			t.Errorf("%s: took %d bytes", name, most)
		}
	}
	src := sent(text("257"))
	for range 256 {
		src = text(strings.Repeat("x", 65536)).Append(src)
	}
	for last, want := range map[string]string{"": "xxxxx…xxxxx of 16777216", "x": "refused 1009"} {
		if got := read(bytes.NewReader(text(last).Append(src)), frame.ReaderOptions{}); got[0] != want {
			t.Errorf("16 MiB and %d bytes: %q, want %s", len(last), got, want)
		}
	}
}

func TestReaderRefusesANegativeLength(t *testing.T) {
	t.Parallel()
	got := read(bytes.NewReader([]byte{0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}), frame.ReaderOptions{})
	if got[0] != "refused 1002" {
		t.Errorf("got %q, want refused 1002", got)
	}
}

// TestReaderTakesMemoryForWhatHasCome: a length that is only announced takes none.
func TestReaderTakesMemoryForWhatHasCome(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bytes []byte
		most  int
	}{
		"announced":     {[]byte{0x81, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, '{'}, 4 << 10},
		"a count":       {sent(text("1100")), 0},
		"segments":      {sent(text("1100"), text(strings.Repeat("x", 5000))), 68 << 10},
		"a short frame": {sent(text(strings.Repeat("x", 512)))[:100], 0},
	} {
		budget := &budget{left: 1 << 20, least: 1 << 20}
		read(bytes.NewReader(test.bytes), frame.ReaderOptions{Budget: budget})
		if took := 1<<20 - budget.least; took > test.most || budget.left != 1<<20 {
			t.Errorf("%s: took %d bytes, want at most %d; %d were not given back", name, took, test.most, 1<<20-budget.left)
		}
	}
}

func TestReaderRefusesWithoutBudget(t *testing.T) {
	t.Parallel()
	budget := &budget{left: 70 << 10}
	opts := frame.ReaderOptions{Budget: budget}
	if got := read(bytes.NewReader(sent(text(object(600)))), opts); got[0] != `{"a":…xxx"} of 600` {
		t.Errorf("a message within the budget: %q", got)
	}
	if got := read(bytes.NewReader(sent(text(object(66000)))), opts); got[0] != "refused 1011" {
		t.Errorf("a message beyond the budget: %q, want refused 1011", got)
	}
	if budget.left != 70<<10 {
		t.Errorf("%d bytes of the budget are left", budget.left)
	}
}

func TestReaderClose(t *testing.T) {
	t.Parallel()
	budget := &budget{left: 1 << 20}
	r := frame.NewReader(bytes.NewReader(sent(text(object(600)), text(`{}`))), frame.ReaderOptions{Budget: budget})
	if _, err := r.Next(); err != nil || budget.left == 1<<20 {
		t.Fatalf("%v, with %d bytes left", err, budget.left)
	}
	r.Close()
	if _, err := r.Next(); !errors.Is(err, io.ErrClosedPipe) || budget.left != 1<<20 {
		t.Errorf("after Close: %v, with %d bytes left", err, budget.left)
	}
}

// asked is a connection whose reads ask how much of a message is held.
type asked struct {
	io.Reader
	held func() int
	seen []int
}

func (a *asked) Read(p []byte) (int, error) {
	a.seen = append(a.seen, a.held())
	return a.Reader.Read(p[:min(len(p), 600)])
}

func TestReaderTellsWhetherAMessageIsComplete(t *testing.T) {
	t.Parallel()
	conn := &asked{Reader: bytes.NewReader(sent(text(`{}`), text("2"), text(object(1000)), text("{}")))}
	r := frame.NewReader(conn, frame.ReaderOptions{})
	conn.held = r.Partial
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if len(conn.seen) < 3 || conn.seen[0] != 0 || conn.seen[len(conn.seen)-1] == 0 {
		t.Errorf("at each read %d bytes were held, want none at first and some at the last", conn.seen)
	}
}

// waiting is a connection on which nothing comes any more.
type waiting struct{ io.Reader }

// TestIdleReaderIsSmall: a server has tens of thousands of them.
func TestIdleReaderIsSmall(t *testing.T) {
	const n = 2000
	readers := make([]*frame.Reader, n)
	all := sent(text(object(5000)), text(`{}`))
	before := heap()
	for i := range readers {
		readers[i] = frame.NewReader(waiting{bytes.NewReader(all)}, frame.ReaderOptions{Budget: &budget{left: 1 << 20}})
		for range 2 {
			if _, err := readers[i].Next(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := readers[i].Next(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / n
	if each > 1024 {
		t.Errorf("an idle reader takes %d bytes, want at most 1024", each)
	}
	runtime.KeepAlive(readers)
}

func heap() uint64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestFragmentOfMostBytes: the length of a fragment that exceeds the numbers together with what came before is too large,
// too.
func TestFragmentOfMostBytes(t *testing.T) {
	mask := []byte{0, 0, 0, 0}
	in := append([]byte{0x01, 0x80 | 1}, mask...) // text, not fin, 1 byte
	in = append(in, '{')
	in = append(in, 0x80, 0x80|127) // continuation, fin, 64 bit length
	in = binary.BigEndian.AppendUint64(in, math.MaxInt64)
	in = append(append(in, mask...), "xyz"...)
	_, err := frame.NewReader(bytes.NewReader(in), frame.ReaderOptions{}).Next()
	var wrong *frame.Error
	if !errors.As(err, &wrong) || wrong.Code != frame.CodeTooBig {
		t.Errorf("Next returns %v, want a frame.Error with code 1009", err)
	}
}
