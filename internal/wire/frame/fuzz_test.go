package frame_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wiretest"
)

// FuzzReader: whatever comes, a Reader does not panic, keeps to its limits, and gives
// all memory back.
func FuzzReader(f *testing.F) {
	f.Add(sent(text(`{"a":1}`), text("0"), text("2"), text("{"), text("}")))
	f.Add(sent(fragment(wiretest.OpText, `{"a"`, false), control(wiretest.OpPing, "x"), fragment(wiretest.OpContinuation, `:1}`, true)))
	f.Add(sent(text(object(600)), control(wiretest.OpClose, "\x03\xe8bye")))
	f.Add(sent(cut(object(16384), 16384, "2")...))
	f.Add([]byte{0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4})
	f.Add([]byte{0x01, 0x81, 0, 0, 0, 0, '{', 0x80, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 'x'})
	f.Fuzz(func(t *testing.T, all []byte) {
		const most = 1 << 20
		budget := &budget{left: most, least: most}
		r := frame.NewReader(bytes.NewReader(all), frame.ReaderOptions{
			Budget: budget,
			Ping: func(payload []byte) {
				if len(payload) > 125 {
					t.Errorf("a ping of %d bytes", len(payload))
				}
			},
		})
		total := 0
		for {
			message, err := r.Next()
			if err != nil {
				if _, again := r.Next(); !errors.Is(again, err) {
					t.Errorf("%v, then %v", err, again)
				}
				break
			}
			if len(message) == 0 || string(message) == "0" || !utf8.Valid(message) {
				t.Errorf("message %q", message)
			}
			total += len(message)
		}
		if total > len(all) {
			t.Errorf("%d bytes of messages out of %d", total, len(all))
		}
		if budget.left != most || most-budget.least > 3*len(all)+8<<10+64<<10 {
			t.Errorf("%d bytes were taken for %d, %d not given back", most-budget.least, len(all), most-budget.left)
		}
	})
}

// FuzzAppend: what is appended or streamed, another library reads.
func FuzzAppend(f *testing.F) {
	f.Add(`{"a":1}`, uint16(0))
	f.Add(`{"a":"é😀`, uint16(4000))
	f.Add(`{"a":"漢`, uint16(40000))
	f.Fuzz(func(t *testing.T, pattern string, times uint16) {
		message := `{"a":"` + strings.Repeat(strings.ToValidUTF8(pattern, "?"), int(times)%200000/(len(pattern)+1)+1) + `"}`
		all := frame.Append(nil, []byte(message))
		if got := readByCoder(t, all); got != message {
			t.Errorf("Append(%s) is read as %s", brief(message), brief(got))
		}
		prepared := frame.Prepare([]byte(message)).Append(nil, []byte(`,"t":17}}}`))
		if got := readByCoder(t, prepared); got != message+`,"t":17}}}` {
			t.Errorf("Prepare(%s) is read as %s", brief(message), brief(got))
		}
		var out bytes.Buffer
		stream, err := frame.NewStream(&out, frame.Units([]byte(message)))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []byte(message) {
			if _, err := stream.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Close(); err != nil || !bytes.Equal(out.Bytes(), all) {
			t.Errorf("Stream of %s: %v, or it differs from Append", brief(message), err)
		}
	})
}

// FuzzReaderReadsCoder: what another library writes, as one frame or in fragments, a Reader
// reads.
func FuzzReaderReadsCoder(f *testing.F) {
	f.Add(`{"a":1}`, uint16(1), uint8(3))
	f.Add(`{"a":"é`, uint16(600), uint8(1))
	f.Fuzz(func(t *testing.T, pattern string, times uint16, pieces uint8) {
		message := "{" + strings.Repeat(strings.ToValidUTF8(pattern, "?"), int(times)/(len(pattern)+1)+1)
		client, server := dialCoder(t, nil)
		w, err := client.Writer(t.Context(), websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		size := len(message)/(int(pieces)+1) + 1
		for rest := message; rest != ""; rest = rest[min(size, len(rest)):] {
			if _, err := io.WriteString(w, rest[:min(size, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := read(bytes.NewReader(server.written.Bytes()), frame.ReaderOptions{})
		if len(got) != 2 || got[0] != brief(message) || got[1] != "EOF" {
			t.Errorf("%s is read as %q", brief(message), got)
		}
	})
}

// readByCoder returns the message in the frames: joined, if there are segments.
func readByCoder(t *testing.T, all []byte) string {
	client, _ := dialCoder(t, all)
	next := func() string {
		kind, text, err := client.Read(t.Context())
		if err != nil || kind != websocket.MessageText {
			t.Fatalf("%v, %v", kind, err)
		}
		return string(text)
	}
	message := next()
	if count, err := strconv.Atoi(message); err == nil {
		message = ""
		for range count {
			message += next()
		}
	}
	return message
}

// A faked is a connection without a network: what the server sends is there already.
type faked struct {
	rest    *bytes.Reader
	written bytes.Buffer
}

func (c *faked) Read(p []byte) (int, error)  { return c.rest.Read(p) }
func (c *faked) Write(p []byte) (int, error) { return c.written.Write(p) }
func (c *faked) Close() error                { return nil }

// RoundTrip answers the upgrade.
func (c *faked) RoundTrip(r *http.Request) (*http.Response, error) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	header := http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}
	header.Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: header, Body: c, Request: r}, nil
}

func dialCoder(t *testing.T, all []byte) (*websocket.Conn, *faked) {
	server := &faked{rest: bytes.NewReader(all)}
	client, answer, err := websocket.Dial(context.Background(), "ws://test/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: server}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer // its body is the connection
	client.SetReadLimit(-1)
	t.Cleanup(func() { _ = client.CloseNow() })
	return client, server
}
