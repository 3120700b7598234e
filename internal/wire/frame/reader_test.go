package frame_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wiretest"
)

// sent returns the bytes of frames.
func sent(frames ...wiretest.Frame) []byte {
	var all []byte
	for _, f := range frames {
		all = f.Append(all)
	}
	return all
}

func text(s string) wiretest.Frame { return wiretest.Text(s) }

// control returns a control frame of a client.
func control(op byte, payload string) wiretest.Frame {
	return wiretest.Frame{Op: op, Masked: true, Payload: []byte(payload)}
}

// fragment returns part of a fragmented text.
func fragment(op byte, payload string, last bool) wiretest.Frame {
	return wiretest.Frame{Op: op, Masked: true, Fragment: !last, Payload: []byte(payload)}
}

// read returns what a Reader makes of the bytes: messages, "ping x" and the final error.
func read(src io.Reader, opts frame.ReaderOptions) []string {
	var got []string
	opts.Ping = func(payload []byte) { got = append(got, "ping "+string(payload)) }
	r := frame.NewReader(src, opts)
	for {
		message, err := r.Next()
		if err != nil {
			return append(got, describe(err))
		}
		got = append(got, brief(string(message)))
	}
}

func describe(err error) string {
	var refused *frame.Error
	var closed *frame.CloseError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprint("refused ", refused.Code)
	case errors.As(err, &closed):
		return fmt.Sprintf("closed %d %s, reply %d", closed.Code, closed.Reason, closed.Reply())
	}
	return err.Error()
}

func brief(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%s…%s of %d", s[:5], s[len(s)-5:], len(s))
	}
	return s
}

// object returns a JSON object of so many bytes.
func object(size int) string { return `{"a":"` + strings.Repeat("x", size-8) + `"}` }

// cut returns the count and the segments of a text, cut at so many bytes, as the C++ SDK does.
func cut(s string, size int, count string) []wiretest.Frame {
	frames := []wiretest.Frame{text(count)}
	for len(s) > size {
		frames = append(frames, text(s[:size]))
		s = s[size:]
	}
	return append(frames, text(s))
}

func TestReader(t *testing.T) {
	t.Parallel()
	ping, pong, bye := control(wiretest.OpPing, "x"), control(wiretest.OpPong, "x"), control(wiretest.OpClose, "\x03\xe8bye")
	long := strings.Repeat("y", 600)
	tests := []struct {
		name   string
		frames []wiretest.Frame
		want   string // by ", "
	}{
		{"nothing", nil, "EOF"},
		{"messages", []wiretest.Frame{text(`{"a":1}`), text(`{"b":2}`)}, `{"a":1}, {"b":2}, EOF`},
		{"keep-alives", []wiretest.Frame{text("0"), text(`{}`), text("0")}, `{}, EOF`},
		{"longer than the buffer", []wiretest.Frame{text(object(513)), text(object(512))}, `{"a":…xxx"} of 513, {"a":…xxx"} of 512, EOF`},
		{"in one frame", []wiretest.Frame{text(object(300000))}, `{"a":…xxx"} of 300000, EOF`},
		{"segments", cut(`{"a":"bcd"}`, 4, "3"), `{"a":"bcd"}, EOF`},
		{"one segment", []wiretest.Frame{text("1"), text(`{}`)}, `{}, EOF`},
		{"segments and then others", append(cut(object(40000), 16384, "3"), text("0"), text(`{"b":1}`)), `{"a":…xxx"} of 40000, {"b":1}, EOF`},
		{"a count inside segments is text", []wiretest.Frame{text("3"), text(`{"a":`), text("2"), text("}")}, `{"a":2}, EOF`},
		{"segments end inside a character", cut(`{"a":"äöü😀"}`, 7, "3"), `{"a":"äöü😀"}, EOF`},
		{"segments that never end", []wiretest.Frame{text("3"), text(`{`)}, "unexpected EOF"},
		{"a count and no segment", []wiretest.Frame{text("3")}, "unexpected EOF"},
		{"fragments", []wiretest.Frame{fragment(wiretest.OpText, `{"a"`, false), fragment(wiretest.OpContinuation, `:`, false), ping, fragment(wiretest.OpContinuation, `1}`, true)}, `ping x, {"a":1}, EOF`},
		{"a fragmented count", []wiretest.Frame{fragment(wiretest.OpText, `0`, false), fragment(wiretest.OpContinuation, `2`, true), text("{"), text("}")}, `{}, EOF`},
		{"a fragmented segment", []wiretest.Frame{text("2"), text("{"), fragment(wiretest.OpText, ``, false), fragment(wiretest.OpContinuation, `}`, true)}, `{}, EOF`},
		{"empty segments", []wiretest.Frame{text("3"), text(""), text("{}"), text("")}, `{}, EOF`},
		{"nothing but empty segments", []wiretest.Frame{text("2"), text(""), text("")}, `refused 1003`},
		{"pings and pongs", []wiretest.Frame{ping, pong, text(`{}`), ping}, `ping x, {}, ping x, EOF`},
		{"a ping between segments", []wiretest.Frame{text("2"), text("{"), ping, text("}")}, `ping x, {}, EOF`},
		{"close", []wiretest.Frame{text(`{}`), bye, text(`{}`)}, `{}, closed 1000 bye, reply 1000`},
		{"close without code", []wiretest.Frame{control(wiretest.OpClose, "")}, `closed 1005 , reply 1000`},
		{"close between segments", []wiretest.Frame{text("2"), text("{"), bye}, `closed 1000 bye, reply 1000`},
		{"close with an own code", []wiretest.Frame{control(wiretest.OpClose, "\x0f\xa0")}, `closed 4000 , reply 4000`},
		{"close with half a code", []wiretest.Frame{control(wiretest.OpClose, "\x03")}, `refused 1002`},
		{"close with a code for no one", []wiretest.Frame{control(wiretest.OpClose, "\x03\xed")}, `refused 1002`},
		{"close with a small code", []wiretest.Frame{control(wiretest.OpClose, "\x03\xe7")}, `refused 1002`},
		{"close with a large code", []wiretest.Frame{control(wiretest.OpClose, "\x13\x88")}, `refused 1002`},
		{"close with a broken reason", []wiretest.Frame{control(wiretest.OpClose, "\x03\xe8\xff")}, `refused 1007`},
		{"an empty message", []wiretest.Frame{text("")}, `refused 1003`},
		{"a negative count", []wiretest.Frame{text("-1")}, `refused 1009`},
		{"the largest count", []wiretest.Frame{text("1100")}, `unexpected EOF`},
		{"a count that is too large", []wiretest.Frame{text("1101")}, `refused 1009`},
		{"a count of many digits", []wiretest.Frame{text(strings.Repeat("9", 400))}, `refused 1009`},
		{"not a count", []wiretest.Frame{text("1e3"), text("-"), text("+1")}, `1e3, -, +1, EOF`},
		{"the largest segment", []wiretest.Frame{text("1"), text(object(65536))}, `{"a":…xxx"} of 65536, EOF`},
		{"a segment that is too large", []wiretest.Frame{text("1"), text(object(65537))}, `refused 1009`},
		{"a segment whose fragments are too large", []wiretest.Frame{text("1"), fragment(wiretest.OpText, object(65536), false), fragment(wiretest.OpContinuation, "x", true)}, `refused 1009`},
		{"bad UTF-8", []wiretest.Frame{text("{\"\xff\"}")}, `refused 1007`},
		{"half a character", []wiretest.Frame{text("2"), text("{\"\xc3"), text("\"}")}, `refused 1007`},
		{"a surrogate", []wiretest.Frame{text("{\"\xed\xa0\x80\"}")}, `refused 1007`},
		{"binary", []wiretest.Frame{{Op: wiretest.OpBinary, Masked: true, Payload: []byte("{}")}}, `refused 1003`},
		{"not masked", []wiretest.Frame{{Op: wiretest.OpText, Payload: []byte("{}")}}, `refused 1002`},
		{"a ping that is not masked", []wiretest.Frame{{Op: wiretest.OpPing}}, `refused 1002`},
		{"reserved bits", []wiretest.Frame{{Op: wiretest.OpText, Masked: true, Reserved: 4, Payload: []byte("{}")}}, `refused 1002`},
		{"an unknown kind", []wiretest.Frame{{Op: 3, Masked: true}}, `refused 1002`},
		{"an unknown control frame", []wiretest.Frame{{Op: 11, Masked: true}}, `refused 1002`},
		{"a continuation of nothing", []wiretest.Frame{fragment(wiretest.OpContinuation, "{}", true)}, `refused 1002`},
		{"text inside fragments", []wiretest.Frame{fragment(wiretest.OpText, "{", false), text("}")}, `refused 1002`},
		{"binary inside fragments", []wiretest.Frame{fragment(wiretest.OpText, "{", false), {Op: wiretest.OpBinary, Masked: true}}, `refused 1002`},
		{"a fragmented ping", []wiretest.Frame{{Op: wiretest.OpPing, Fragment: true, Masked: true}}, `refused 1002`},
		{"the largest ping", []wiretest.Frame{control(wiretest.OpPing, long[:125])}, "ping " + long[:125] + ", EOF"},
		{"a long ping", []wiretest.Frame{control(wiretest.OpPing, long[:126])}, `refused 1002`},
		{"fragments that never end", []wiretest.Frame{fragment(wiretest.OpText, "{", false)}, `unexpected EOF`},
	}
	for _, test := range tests {
		for way, src := range map[string]func([]byte) io.Reader{
			"at once":     func(b []byte) io.Reader { return bytes.NewReader(b) },
			"by bytes":    func(b []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) },
			"end in data": func(b []byte) io.Reader { return iotest.DataErrReader(bytes.NewReader(b)) },
		} {
			budget := &budget{left: 1 << 30}
			got := strings.Join(read(src(sent(test.frames...)), frame.ReaderOptions{Budget: budget}), ", ")
			if got != test.want {
				t.Errorf("%s, %s: got %s, want %s", test.name, way, got, test.want)
			}
			if budget.left != 1<<30 {
				t.Errorf("%s, %s: %d bytes are not given back", test.name, way, 1<<30-budget.left)
			}
		}
	}
}

// TestReaderAndTheCountOfTheCppSDK: it announces one segment too many for some lengths, and
// cuts at bytes.
func TestReaderAndTheCountOfTheCppSDK(t *testing.T) {
	t.Parallel()
	whole := object(2 * 16384)
	nested := `{"\\\"}":[{"}":"` + strings.Repeat("{", 16384-20) + `"}]}`
	if len(nested) != 16384 {
		t.Fatal(len(nested))
	}
	notYet := `{"a":"` + strings.Repeat("x", 16384-7) + `}`
	tests := []struct {
		name   string
		frames []wiretest.Frame
		want   string
	}{
		{"delivered at once", cut(whole, 16384, "3"), `{"a":…xxx"} of 32768, EOF`},
		{"then a message", append(cut(whole, 16384, "3"), text(`{"b":1}`)), `{"a":…xxx"} of 32768, {"b":1}, EOF`},
		{"then a keep-alive", append(cut(whole, 16384, "3"), text("0"), text(`{"b":1}`)), `{"a":…xxx"} of 32768, {"b":1}, EOF`},
		{"then another like it", append(cut(whole, 16384, "3"), cut(whole, 16384, "3")...), `{"a":…xxx"} of 32768, {"a":…xxx"} of 32768, EOF`},
		{"then the empty segment", append(cut(whole, 16384, "3"), text(""), text(`{"b":1}`)), `{"a":…xxx"} of 32768, {"b":1}, EOF`},
		{"then a segment of space", append(cut(whole, 16384, "3"), text(" \n"), text(`{"b":1}`)), `{"a":…xxx"} of 32768, {"b":1}, EOF`},
		{"then two empty frames", append(cut(whole, 16384, "3"), text(""), text("")), `{"a":…xxx"} of 32768, refused 1003`},
		{"strings with braces", append(cut(nested, 16384, "2"), text(`{"b":1}`)), `{"\\\…{"}]} of 16384, {"b":1}, EOF`},
		{"two too many", cut(whole, 16384, "4"), `unexpected EOF`},
		{"the right count", cut(whole, 16384, "2"), `{"a":…xxx"} of 32768, EOF`},
		{"not whole, but for a brace in a string", append(cut(notYet, 16384, "2"), text(`"}`)), `{"a":…xx}"} of 16386, EOF`},
	}
	for _, test := range tests {
		got := strings.Join(read(bytes.NewReader(sent(test.frames...)), frame.ReaderOptions{}), ", ")
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestReaderCutsAnywhere(t *testing.T) {
	t.Parallel()
	all := sent(text(`{"a":1}`), control(wiretest.OpPing, ""), text("2"), text("{"), text("}"))
	for n := range all {
		got := read(bytes.NewReader(all[:n]), frame.ReaderOptions{})
		last := got[len(got)-1]
		between := n == 0 || n == 13 || n == 19
		if between && last != "EOF" || !between && last != "unexpected EOF" {
			t.Errorf("after %d bytes of %d: %q", n, len(all), got)
		}
	}
}

func TestReaderTakesWhatIsBufferedFirst(t *testing.T) {
	t.Parallel()
	all := sent(text(`{"a":1}`), text(`{"b":2}`))
	for n := range len(all) + 1 {
		got := strings.Join(read(bytes.NewReader(all[n:]), frame.ReaderOptions{Buffered: all[:n]}), ", ")
		if got != `{"a":1}, {"b":2}, EOF` {
			t.Fatalf("with %d bytes in the buffer: %s", n, got)
		}
	}
}
