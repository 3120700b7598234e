package conformance_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestHeadSize proves, of our decisions about requests, "request line and
// headers together 128 KiB (a legal path alone can take 73); over it 431".
func TestHeadSize(t *testing.T) {
	t.Parallel()
	s := start(t, []string{"dev"})
	longest := "/" + strings.Repeat(strings.Repeat("%C3%A9", 384)+"/", 32) + ".json"
	for _, major := range []int{1, 2} {
		r := newRunner(t, s, major)
		for _, request := range []step{
			{method: "PUT", target: longest, body: "1", want: answer{status: 200, body: "1"}},
			{method: "GET", target: longest + "?auth=<secret>", want: answer{status: 200, body: "1"}},
			{method: "GET", target: "/a.json", header: []field{{"X-Long", strings.Repeat("x", 120<<10)}}, want: answer{status: 200, body: "null"}},
		} {
			if problem := r.step(request, texts{"secret": secret}); problem != "" {
				t.Errorf("HTTP/%d: %s", major, problem)
			}
		}
	}
	for size, want := range map[int]string{127 << 10: "HTTP/1.1 200 ", 129 << 10: "HTTP/1.1 431 ", 2 << 20: "HTTP/1.1 431 "} {
		if got := s.raw(t, "GET /a.json HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Long: "+strings.Repeat("x", size)+"\r\n\r\n"); !strings.HasPrefix(got, want) {
			t.Errorf("a header of %d bytes is answered %.100q, want %s", size, got, want)
		}
		if got := s.raw(t, "GET /"+strings.Repeat("a/", size/2)+".json HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"); size > 128<<10 && !strings.HasPrefix(got, want) {
			t.Errorf("a path of %d bytes is answered %.100q, want %s", size, got, want)
		}
	}
}

// raw sends bytes over TLS and returns the answer.
func (i *instance) raw(t *testing.T, text string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", i.addr, &tls.Config{RootCAs: i.trusted})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, text) // it may be answered before its end
	}()
	answer, err := io.ReadAll(conn)
	if err != nil && len(answer) == 0 {
		return fmt.Sprint(err)
	}
	conn.Close()
	<-sent
	return string(answer)
}
