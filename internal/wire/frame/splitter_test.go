package frame_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/wire/frame"
)

func TestSplitter(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	random := rand.New(rand.NewPCG(seed, 3))
	var all []byte
	list := texts(seed)
	for _, text := range list {
		all = frame.Append(all, []byte(text))
		all = frame.AppendPong(all, nil)
	}
	all = frame.AppendClose(all, frame.CodeAway, "bye")
	for _, most := range []int{1, 10, 100000, len(all)} {
		var got []string
		var message []byte
		code := 0
		splitter := &frame.Splitter{}
		for rest := all; len(rest) > 0; {
			piece := rest[:min(1+random.IntN(most), len(rest))]
			rest = rest[len(piece):]
			for len(piece) > 0 {
				n, part := splitter.Next(piece)
				piece = piece[n:]
				message = append(message, part.Text...)
				if !bytes.Equal(part.Text, bytes.ToValidUTF8(part.Text, nil)) {
					t.Fatalf("part of a character in %s", brief(string(part.Text)))
				}
				if part.Last {
					got = append(got, string(message))
					message = message[:0]
				}
				if part.Close != 0 {
					code = part.Close
				}
				if n == 0 && len(piece) > 0 {
					t.Fatal("Next does not go on")
				}
			}
			if between := splitter.Between(); len(rest) == 0 && !between {
				t.Error("the end is not between two messages")
			}
		}
		if len(got) != len(list) || code != frame.CodeAway {
			t.Fatalf("%d messages of %d, code %d", len(got), len(list), code)
		}
		for i := range got {
			if got[i] != list[i] {
				t.Errorf("%s is split into %s", brief(list[i]), brief(got[i]))
			}
		}
	}
}

func TestSplitterBetween(t *testing.T) {
	t.Parallel()
	splitter := &frame.Splitter{}
	all := frame.Append(nil, []byte(object(40000)))
	for i, b := range all {
		if between := splitter.Between(); between != (i == 0) {
			t.Fatalf("after %d bytes of %d: between is %v", i, len(all), between)
		}
		splitter.Next([]byte{b})
	}
	if !splitter.Between() {
		t.Error("a whole message is not the end")
	}
}

// TestSplitterKeepsLittle: one that is between two messages does not keep the memory of a large
// frame, for as long as its client stays.
func TestSplitterKeepsLittle(t *testing.T) {
	const count, most = 200, 8 << 10
	all := frame.Append(nil, []byte(`{"d":"`+strings.Repeat("€", 16000)+`"}`))
	splitters := make([]frame.Splitter, count)
	before := heapBytes()
	for i := range splitters {
		for rest := all; len(rest) > 0; {
			n, _ := splitters[i].Next(rest)
			rest = rest[n:]
		}
	}
	if kept := (heapBytes() - before) / count; kept > most {
		t.Errorf("after a large message each splitter keeps %d bytes, want %d at most", kept, most)
	}
	runtime.KeepAlive(splitters)
}

func heapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
