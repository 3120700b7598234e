package frame_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wiretest"
)

// joined reads frames of the server by every rule that they have. It returns the message and
// the number of segments.
func joined(t *testing.T, all []byte) (message string, segments int) {
	t.Helper()
	src := bytes.NewReader(all)
	segments = 1
	for i := 0; i < segments; i++ {
		f, err := wiretest.ReadFrame(src)
		switch {
		case err != nil:
			t.Fatalf("segment %d of %d: %v", i, segments, err)
		case f.Op != wiretest.OpText || f.Fragment || f.Reserved != 0 || f.Masked:
			t.Fatalf("segment %d of %d: %+v is not a plain text frame", i, segments, f)
		case !utf8.Valid(f.Payload):
			t.Fatalf("segment %d of %d is not UTF-8", i, segments)
		}
		text := string(f.Payload)
		if units := len(utf16.Encode([]rune(text))); units > 16384 || units == 0 || text == "0" {
			t.Fatalf("segment %d of %d has %d units", i, segments, units)
		}
		if count, err := strconv.Atoi(text); err == nil && segments == 1 {
			segments, i = count, -1
			continue
		}
		message += text
	}
	if src.Len() > 0 {
		t.Fatalf("%d bytes after the message", src.Len())
	}
	return message, segments
}

// texts are messages around the sizes at which something changes, of characters of 1 to 4
// bytes in some pattern.
func texts(seed uint64) []string {
	random := rand.New(rand.NewPCG(seed, 1))
	patterns := []string{"x", "é", "漢", "😀", "x😀", "é😀漢", "xxx\u2028"}
	list := []string{`{}`, `{"a":"é"}`}
	for _, units := range []int{100, 16384, 2 * 16383, 2 * 16384, 3*16383 + 1, 5 * 16384, 100000} {
		for near := -2; near <= 2; near++ {
			pattern := patterns[random.IntN(len(patterns))]
			var text strings.Builder
			text.WriteString(`{"a":"` + strings.Repeat("y", random.IntN(4)))
			length := len(text.String()) + 2
			for i := 0; ; i++ {
				r := []rune(pattern)[i%utf8.RuneCountInString(pattern)]
				if length+utf16.RuneLen(r) > units+near {
					break
				}
				length += utf16.RuneLen(r)
				text.WriteRune(r)
			}
			list = append(list, text.String()+`"}`)
		}
	}
	return list
}

func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, text := range texts(newSeed(t)) {
		units := len(utf16.Encode([]rune(text)))
		if got := frame.Units([]byte(text)); got != units {
			t.Errorf("Units of %s = %d, want %d", brief(text), got, units)
		}
		before := []byte("before")
		all := frame.Append(before, []byte(text))
		got, segments := joined(t, bytes.TrimPrefix(all, before))
		if got != text {
			t.Errorf("%s is read as %s", brief(text), brief(got))
		}
		if (units <= 16384) != (segments == 1) || segments > units/16383+1 {
			t.Errorf("%d units in %d segments", units, segments)
		}
	}
}

func TestPrepared(t *testing.T) {
	t.Parallel()
	for _, text := range texts(newSeed(t)) {
		prepared := frame.Prepare([]byte(text))
		for _, end := range []string{`,"t":1}}}`, `,"t":9007199254740991}}}`} {
			if len(end) > frame.EndUnits {
				t.Fatalf("%s has %d units", end, len(end))
			}
			got, segments := joined(t, prepared.Append(nil, []byte(end)))
			if got != text+end {
				t.Errorf("%s with %s is read as %s", brief(text), end, brief(got))
			}
			first, last := prepared.Cut([]byte(end))
			if got, _ := joined(t, append(slices.Clone(first), last...)); got != text+end {
				t.Errorf("%s with %s is cut into %s", brief(text), end, brief(got))
			}
			if frame.Units([]byte(text)) <= 16384-frame.EndUnits && segments != 1 {
				t.Errorf("%s in %d segments", brief(text), segments)
			}
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	random := rand.New(rand.NewPCG(seed, 2))
	for _, text := range texts(seed) {
		for _, most := range []int{3, 100, 50000} {
			var count frame.Counter
			var out bytes.Buffer
			pieces := func(w io.Writer) {
				for rest := []byte(text); len(rest) > 0; {
					n := min(1+random.IntN(most), len(rest))
					if _, err := w.Write(rest[:n]); err != nil {
						t.Fatalf("%s: %v", brief(text), err)
					}
					rest = rest[n:]
				}
			}
			pieces(&count)
			stream, err := frame.NewStream(&out, count.Units)
			if err != nil {
				t.Fatal(err)
			}
			pieces(stream)
			if err := stream.Close(); err != nil {
				t.Fatalf("%s: %v", brief(text), err)
			}
			if !bytes.Equal(out.Bytes(), frame.Append(nil, []byte(text))) {
				t.Errorf("%s in pieces of at most %d bytes: the stream differs from Append", brief(text), most)
			}
		}
	}
}

func TestStreamKeepsToItsLength(t *testing.T) {
	t.Parallel()
	for _, units := range []int{1, 100, 16384, 40000} {
		for near, want := range map[int]error{-1: frame.ErrUnits, 0: nil, 1: frame.ErrUnits} {
			stream, err := frame.NewStream(io.Discard, units)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(stream, strings.Repeat("x", units+near))
			if err == nil {
				err = stream.Close()
			}
			if !errors.Is(err, want) {
				t.Errorf("%d units of %d: %v, want %v", units+near, units, err, want)
			}
		}
	}
	stream, err := frame.NewStream(io.Discard, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stream, "x\xc3"); err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(); !errors.Is(err, frame.ErrUnits) {
		t.Errorf("half a character at the end: %v, want %v", err, frame.ErrUnits)
	}
	for _, units := range []int{0, -1, frame.MaxUnits + 1} {
		if _, err := frame.NewStream(io.Discard, units); err == nil {
			t.Errorf("a stream of %d units is made", units)
		}
	}
}

// broken is a connection that breaks after some writes.
type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	b.left--
	if b.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestStreamReturnsTheErrorOfTheConnection(t *testing.T) {
	t.Parallel()
	for left := range 4 { // the count and three segments
		stream, err := frame.NewStream(&broken{left}, 40000)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(stream, strings.Repeat("x", 40000))
		if err == nil {
			err = stream.Close()
		}
		if !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("after %d writes: %v", left, err)
		}
		if _, err := stream.Write([]byte("x")); err == nil {
			t.Error("a broken stream can be written to")
		}
	}
}

func TestLargestMessageHasFourDigits(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	stream, err := frame.NewStream(&out, frame.MaxUnits)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Write(make([]byte, 20000)); err != nil {
		t.Fatal(err)
	}
	if f, err := wiretest.ReadFrame(&out); err != nil || string(f.Payload) != "9999" {
		t.Errorf("the first frame is %q, %v, want 9999", f.Payload, err)
	}
}

func TestControlFrames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100)
	for _, test := range []struct {
		frame []byte
		want  string
	}{
		{frame.AppendClose(nil, frame.CodeAway, ""), "8 \x03\xe9"},
		{frame.AppendClose(nil, frame.CodePolicy, "too slow"), "8 \x03\xf0too slow"},
		{frame.AppendClose(nil, frame.CodeNormal, long), "8 \x03\xe8" + long[:122]},
		{frame.AppendPong(nil, []byte("x")), "10 x"},
		{frame.AppendPong(nil, nil), "10 "},
	} {
		f, err := wiretest.ReadFrame(bytes.NewReader(test.frame))
		if got := fmt.Sprintf("%d %s", f.Op, f.Payload); got != test.want || err != nil || f.Fragment || f.Masked || f.Reserved != 0 {
			t.Errorf("got %q %+v, %v, want %q", got, f, err, test.want)
		}
	}
}
