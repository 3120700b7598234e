package bench_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/bench"
	"github.com/livetree/livetree/internal/wire/frame"
)

const upgraded = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"

// TestSocket has the client read what a server says to an SDK.
func TestSocket(t *testing.T) {
	t.Parallel()
	hello := string(frame.Append(nil, []byte(`{"t":"c","d":{}}`)))
	ok := string(frame.Append(nil, []byte(`{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}`)))
	denied := string(frame.Append(nil, []byte(`{"t":"d","d":{"r":1,"b":{"s":"permission_denied","d":""}}}`)))
	push := func(bytes int) string {
		return string(frame.Append(nil, []byte(`{"t":"d","d":{"a":"d","b":{"p":"a","d":"`+strings.Repeat("x", bytes)+`"}}}`)))
	}
	for _, test := range []struct {
		name, says string
		events     int
		failure    string
	}{
		{"an answer", upgraded + hello + ok, 0, ""},
		{"events first", upgraded + hello + push(1) + push(200) + push(10_000) + ok, 3, ""},
		{"many frames", upgraded + hello + push(100_000) + ok, 8, ""}, // each segment, and their number
		{"a refusal", upgraded + hello + denied, 0, "permission_denied"},
		{"no upgrade", "HTTP/1.1 503 Service Unavailable\r\n\r\n", 0, "503"},
		{"no hello", upgraded + ok, 0, "instead of a hello"},
		{"the end", upgraded + hello + string(frame.AppendClose(nil, 1000, "")), 0, "closed"},
		{"a masked frame", upgraded + hello + "\x81\x80\x00\x00\x00\x00", 0, "a frame that begins with 8180"},
		{"half a message", upgraded + hello + ok[:10], 0, "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				reader := bufio.NewReader(server)
				if _, err := http.ReadRequest(reader); err != nil {
					return
				}
				go func() { _, _ = reader.WriteTo(nowhere{}) }()
				_, _ = server.Write([]byte(test.says))
			}()
			events, err := bench.AskOverSocket(client)
			if events != test.events || (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
				t.Errorf("the client has %d events and ends with %v, want %d and %q", events, err, test.events, test.failure)
			}
		})
	}
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
