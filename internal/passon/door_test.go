package passon_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/passon"
)

// TestRequestsCountForTheirClients: at the home a request comes from the client's address, as the other node says. What the client says of
// itself does not count.
func TestRequestsCountForTheirClients(t *testing.T) {
	door := passon.NewDoor()
	server := &http.Server{
		ConnContext: passon.ConnContext,
		Handler: passon.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "%s %q", r.RemoteAddr, clientaddr.ForwardedHost(r))
		})),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(door) }()
	for body, want := range map[string]string{
		`{"remote":"192.0.2.7:1234"}`:                                 `192.0.2.7:1234 ""`,
		`{"remote":"[2001:db8::1]:99","host":"db.example.org"}`:       `[2001:db8::1]:99 "db.example.org"`,
		`{"remote":"198.51.100.1:5","host":"a.example.org","more":1}`: `198.51.100.1:5 "a.example.org"`,
	} {
		here, there := net.Pipe()
		go door.Take("node", []byte(body), there)
		go func() {
			_, _ = io.WriteString(here, "GET /.ws HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Host: made.up\r\nConnection: close\r\n\r\n")
		}()
		response, err := http.ReadResponse(bufio.NewReader(here), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		if err != nil || string(got) != want {
			t.Errorf("a request with %s comes from %s, %v, want %s", body, got, err, want)
		}
		_ = here.Close()
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	<-served
}

// TestDoorThatIsShut closes what it does not take: what says nothing of a client, and what comes after the end.
func TestDoorThatIsShut(t *testing.T) {
	door := passon.NewDoor()
	shut := func(what, body string) {
		here, there := net.Pipe()
		door.Take("node", []byte(body), there)
		if _, err := io.Copy(io.Discard, here); err != nil && !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s: %v", what, err)
		}
	}
	shut("garbage", "GET /")
	_ = door.Close()
	_ = door.Close()
	shut("a door that was closed", `{"remote":"192.0.2.7:1234"}`)
	if _, err := door.Accept(); err == nil {
		t.Error("a closed door accepts")
	}
}
