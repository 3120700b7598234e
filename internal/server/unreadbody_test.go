package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestBodiesThatNobodyReads: a request that announces a body and does not send it is answered, and
// its connection ends, on every port, and with the lanes as without them.
func TestBodiesThatNobodyReads(t *testing.T) {
	t.Parallel()
	heads := []string{
		"GET /a.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
		"GET /a.json HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
		"OPTIONS /a.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
		"DELETE /a.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n1",
		"PUT /a.json HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
		"GET /a.json HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nContent-Length: 10\r\n\r\n",
	}
	for _, noLane := range []bool{false, true} {
		s := startServing(t, servingOptions{noLane: noLane, limits: servingLimits{head: 2 * time.Second, body: 10 * time.Millisecond}})
		for _, head := range heads {
			for name, dial := range s.eachWay(t) {
				conn := dial() // now: one that waits for its request is cut
				if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conn, head); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn)
				if err != nil || !strings.Contains(string(answer), " 200 OK\r\n") {
					t.Errorf("%s, without lanes %v: %.30q is answered %q, %v; want an answer and the end", name, noLane, head, answer, err)
				}
			}
		}
	}
}

// TestBodiesOfRefusedHeads: nor does net/http wait without end for the body of a request whose headers are too many.
func TestBodiesOfRefusedHeads(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{limits: servingLimits{body: 10 * time.Millisecond}})
	for _, length := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
		head := "PUT /a.json HTTP/1.1\r\nHost: localhost\r\n" + length + strings.Repeat("\r\nX: y", maxHeaderLines+1) + "\r\n\r\n"
		for name, dial := range s.eachWay(t) {
			conn := dial()
			if err := conn.SetDeadline(time.Now().Add(patience / 6)); err != nil {
				t.Fatal(err)
			}
			write(t, conn, head)
			answer, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 431 ") {
				t.Errorf("%s: a request with a body that does not come, of %s, is answered %q, %v; want 431 and the end", name, length, answer, err)
			}
		}
	}
}

// eachWay returns how to connect, for each way to send a request.
func (s *testServing) eachWay(t *testing.T) map[string]func() net.Conn {
	t.Helper()
	ways := map[string]func() net.Conn{"https": func() net.Conn { return s.dialTLS(t) }}
	for name, addr := range map[string]string{"http": s.addr, "http on a port of its own": s.httpAddr().String()} {
		ways[name] = func() net.Conn {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			return conn
		}
	}
	return ways
}

// TestTheDeadlineOfABodyEndsWithIt: an answer that takes longer than a body may, to a request whose
// body has come, is not cut.
func TestTheDeadlineOfABodyEndsWithIt(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Millisecond
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		began := time.Now()
		for time.Since(began) < 3*window {
			select {
			case <-time.After(window):
			case <-r.Context().Done():
				fmt.Fprint(w, "ended")
				return
			}
		}
		fmt.Fprint(w, "whole")
	})
	s := startServing(t, servingOptions{secure: handler, plain: handler, limits: servingLimits{body: window}})
	for _, protocol := range []string{"https", "h2"} {
		client := s.client(t, protocol)
		text, err := sendNull(t, client, "https://"+s.addr+"/a")
		for tries := 0; tries < 20 && (text != "whole" || err != nil); tries++ {
			text, err = sendNull(t, client, "https://"+s.addr+"/a") // on a busy machine a body may really be late
		}
		if text != "whole" || err != nil {
			t.Errorf("%s: the answer is %q, %v", protocol, text, err)
		}
	}
}

// sendNull sends a request with a body, and reads the answer.
func sendNull(t *testing.T, client *http.Client, url string) (text string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", url, strings.NewReader("null"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return string(answer), err
}
