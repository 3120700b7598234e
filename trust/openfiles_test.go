//go:build unix

package trust_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestOpenFiles opens more connections than the process may have files. Those who are
// in go on writing, so much that the store needs new files, and when the others have
// left there is room again.
func TestOpenFiles(t *testing.T) {
	t.Parallel()
	const files, flood, writes = 200, 400, 12
	p := &process{dir: t.TempDir(), openFiles: files, flags: []string{"--dev"}}
	p.watchOver(t)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	trusted, err := p.trusted()
	if err != nil {
		t.Fatal(err)
	}
	in, err := tls.Dial("tcp", p.address(), &tls.Config{RootCAs: trusted})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	answers := bufio.NewReader(in)
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for range flood {
		conn, err := net.Dial("tcp", p.address())
		if err != nil {
			t.Fatalf("connection %d: %v", len(conns), err)
		}
		conns = append(conns, conn)
	}
	value := `"` + strings.Repeat("x", 5<<20) + `"`
	for i := range writes {
		_ = in.SetDeadline(time.Now().Add(patience))
		_, err := fmt.Fprintf(in, "PUT /%d.json?print=silent HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n%s", i, len(value), value)
		if err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		response, err := http.ReadResponse(answers, nil)
		if err != nil || response.StatusCode != http.StatusNoContent {
			t.Fatalf("write %d is answered %v, %v", i, response, err)
		}
	}
	if !strings.Contains(p.log.String(), "lowers --max-connections") {
		t.Error("the log does not tell that there are too few files")
	}
	for _, conn := range conns {
		conn.Close()
	}
	other := newClient(t, p, 1)
	for late := time.Now().Add(patience); ; {
		a, _, err := other.send(request{method: "GET", target: "/0.json?shallow=true"})
		if err == nil && a.status == http.StatusOK {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("there is no room for another client: %d, %v", a.status, err)
		}
	}
}
