//go:build unix

package trust_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdminFlood opens more idle connections to the admin listener than the process
// may have files. The server goes on: writes that make the store open files, and
// health checks, are answered.
func TestAdminFlood(t *testing.T) {
	t.Parallel()
	const files, flood, writes = 300, 600, 8
	p := &process{dir: t.TempDir(), openFiles: files, flags: []string{"--dev", "--admin-addr", "127.0.0.1:0"}}
	p.watchOver(t)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "admin", "addr"))
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSpace(string(text))
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for range flood {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatalf("connection %d: %v", len(conns), err)
		}
		conns = append(conns, conn)
	}
	operator := &client{base: base, http: &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}}
	other := newClient(t, p, 1)
	body := `"` + strings.Repeat("x", 5<<20) + `"`
	for range writes {
		if a, _, err := other.send(request{method: "PUT", target: "/a.json?print=silent", body: body}); err != nil || a.status != http.StatusNoContent {
			t.Fatalf("a write during the flood: %d, %v", a.status, err)
		}
		for _, page := range []string{"/livez", "/readyz"} {
			if a, _, err := operator.send(request{method: "GET", target: page}); err != nil || a.status != http.StatusOK {
				t.Fatalf("GET %s during the flood: %d, %v", page, a.status, err)
			}
		}
	}
}
