package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// panicking panics, after what the path says.
func panicking(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Content-Length", "1000")
	switch r.URL.Path {
	case "/late":
		_, _ = io.WriteString(w, "the beginning")
	case "/flushed":
		w.(http.Flusher).Flush()
	case "/abort":
		panic(http.ErrAbortHandler)
	}
	panic("at the disco")
}

func TestHandlerThatPanics(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(panicking)
	s := startServing(t, servingOptions{secure: handler, plain: handler})
	for _, protocol := range []string{"http", "https", "h2"} {
		client, url := s.client(t, protocol), "https://"+s.addr
		if protocol == "http" {
			url = "http://" + s.addr
		}
		response, body, err := get(client, url+"/?auth=swordfish")
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != 500 || body != "{\n  \"error\" : \"internal error\"\n}\n" ||
			response.Header.Get("Content-Type") != "application/json; charset=utf-8" ||
			response.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: answer to a panic: %d %v %q", protocol, response.StatusCode, response.Header, body)
		}
		if _, _, err := get(client, url+"/a%3Fauth=swordfish"); err != nil {
			t.Error(err)
		}
		for _, path := range []string{"/late", "/flushed", "/abort"} {
			// By a new client: on a kept connection it would try again.
			if _, body, err := get(s.client(t, protocol), url+path); err == nil {
				t.Errorf("%s: %s was answered with %q, want the answer to be cut", protocol, path, body)
			}
		}
	}
	log := s.log.String()
	if n := strings.Count(log, "a handler panicked"); n != 12 {
		t.Errorf("%d panics in the log, want 12: an abort is none", n)
	}
	for text, want := range map[string]bool{"at the disco": true, "guard_test.go": true, "swordfish": false} {
		if strings.Contains(log, text) != want {
			t.Errorf("%q is in the log: %v, want %v", text, !want, want)
		}
	}
}

// TestCutAnswersOfHTTP10: the end of the connection is the end of an answer of HTTP/1.0 without a
// length. One that is cut must not end so.
func TestCutAnswersOfHTTP10(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 64<<10))
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
	})
	s := startServing(t, servingOptions{secure: handler, plain: handler})
	for path, whole := range map[string]bool{"/": true, "/cut": false} {
		plain, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		for name, conn := range map[string]net.Conn{"http": plain, "https": s.dialTLS(t)} {
			write(t, conn, "GET "+path+" HTTP/1.0\r\n\r\n")
			if text, err := io.ReadAll(conn); (err == nil) != whole {
				t.Errorf("%s: %s ends after %d bytes with %v, want no error: %v", name, path, len(text), err, whole)
			}
			conn.Close()
		}
	}
}

func TestGuardPassesControls(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{secure: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
		_, writeErr := io.WriteString(w, "hello")
		if err := errors.Join(err, writeErr, control.Flush()); err != nil {
			t.Error(err)
		}
	})})
	s.wantGet(t, s.client(t, "https"), "https://"+s.addr, "hello")
	s.wantGet(t, s.client(t, "h2"), "https://"+s.addr, "hello")
}
