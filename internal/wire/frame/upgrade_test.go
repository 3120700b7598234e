package frame_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/wire/frame"
)

// echo is a server whose websockets send back each message they get.
func echo(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchange.New(w, r)
		x.Header().Set("X-Other", "not to be sent")
		conn, buffered, err := frame.Upgrade(x, r, time.Time{})
		if err != nil {
			return
		}
		defer conn.Close()
		reader := frame.NewReader(conn, frame.ReaderOptions{Buffered: buffered})
		for {
			message, err := reader.Next()
			if err != nil {
				return
			}
			if _, err := conn.Write(frame.Append(nil, message)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// upgrade returns a request with some headers replaced; "" for none.
func upgrade(method, proto string, replace map[string]string) string {
	head := method + " /.ws?v=5 " + proto + "\r\n"
	for _, line := range [][2]string{
		{"Host", "localhost"}, {"Upgrade", "websocket"}, {"Connection", "Upgrade"},
		{"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
		{"Content-Length", ""}, {"Sec-WebSocket-Protocol", ""}, {"Sec-WebSocket-Extensions", ""}, {"Origin", ""}, {"Authorization", ""},
	} {
		value, ok := replace[line[0]]
		if !ok {
			value = line[1]
		}
		if value != "" {
			head += line[0] + ": " + value + "\r\n"
		}
	}
	return head + "\r\n"
}

// accepted is the whole answer to a request that is.
const accepted = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

func TestUpgradeAnswersInTheLeastForm(t *testing.T) {
	t.Parallel()
	server := echo(t)
	for name, replace := range map[string]map[string]string{
		"plain":       nil,
		"Firefox":     {"Connection": "keep-alive, Upgrade"},
		"other case":  {"Upgrade": "WebSocket", "Connection": "upgrade"},
		"offers":      {"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits", "Sec-WebSocket-Protocol": "x"},
		"a bad token": {"Authorization": "Bearer fake-auth-token", "Origin": "https://example.org"},
		"body of 0":   {"Content-Length": "0"},
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// The first message comes with the request: net/http has read it then.
		request := append([]byte(upgrade("GET", "HTTP/1.1", replace)), sent(text(`{"a":1}`), text(object(3000)))...)
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
		want := accepted + string(frame.Append(frame.Append(nil, []byte(`{"a":1}`)), []byte(object(3000))))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil {
			t.Fatalf("%s: %v after %q", name, err, got)
		}
		if string(got) != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestUpgradeRefuses(t *testing.T) {
	t.Parallel()
	server := echo(t)
	tests := []struct {
		name    string
		request string
		want    int
	}{
		{"no Upgrade", upgrade("GET", "HTTP/1.1", map[string]string{"Upgrade": ""}), 426},
		{"another protocol", upgrade("GET", "HTTP/1.1", map[string]string{"Upgrade": "h2c"}), 426},
		{"no Connection", upgrade("GET", "HTTP/1.1", map[string]string{"Connection": ""}), 426},
		{"Connection without it", upgrade("GET", "HTTP/1.1", map[string]string{"Connection": "keep-alive"}), 426},
		{"HTTP/1.0", upgrade("GET", "HTTP/1.0", nil), 426},
		{"no version", upgrade("GET", "HTTP/1.1", map[string]string{"Sec-WebSocket-Version": ""}), 426},
		{"another version", upgrade("GET", "HTTP/1.1", map[string]string{"Sec-WebSocket-Version": "8"}), 426},
		{"no key", upgrade("GET", "HTTP/1.1", map[string]string{"Sec-WebSocket-Key": ""}), 400},
		{"a short key", upgrade("GET", "HTTP/1.1", map[string]string{"Sec-WebSocket-Key": "dGhlIHNhbXBsZQ=="}), 400},
		{"a broken key", upgrade("GET", "HTTP/1.1", map[string]string{"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ"}), 400},
		{"POST", upgrade("POST", "HTTP/1.1", map[string]string{"Content-Length": "0"}), 405},
		{"a body", upgrade("GET", "HTTP/1.1", map[string]string{"Content-Length": "2"}) + "{}", 400},
	}
	for _, test := range tests {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, test.request); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		body, err := io.ReadAll(answer.Body)
		if answer.StatusCode != test.want || err != nil || !strings.Contains(string(body), `"error" : `) {
			t.Errorf("%s: status %d, %q, %v, want status %d", test.name, answer.StatusCode, body, err, test.want)
		}
		if test.want == 426 && (answer.Header.Get("Upgrade") != "websocket" || answer.Header.Get("Sec-WebSocket-Version") != "13") {
			t.Errorf("%s: %v does not say what to upgrade to", test.name, answer.Header)
		}
	}
}

func TestUpgradeRefusesHTTP2(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "/.ws", nil)
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	w := httptest.NewRecorder()
	if _, _, err := frame.Upgrade(w, r, time.Time{}); err != frame.ErrRefused || w.Code != 426 || w.Header().Get("Upgrade") != "" { //nolint:errorlint // it is not wrapped
		t.Errorf("%v, status %d, %v", err, w.Code, w.Header())
	}
}

// TestUpgradeKeepsToTheDeadline: a client that does not read must not hold the handler.
func TestUpgradeKeepsToTheDeadline(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _, err := frame.Upgrade(w, r, time.Unix(1, 0))
		ended <- err
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, upgrade("GET", "HTTP/1.1", nil)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "i/o timeout") {
		t.Errorf("after the deadline: %v", err)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("the client reads %q, %v, want the end", rest, err)
	}
}
