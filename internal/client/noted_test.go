package client_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/client"
)

// A noted directory is a data directory that says where servers are.
type noted struct {
	*testing.T
	dir string
}

func (n noted) write(text string, names ...string) {
	n.Helper()
	name := filepath.Join(append([]string{n.dir}, names...)...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		n.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		n.Fatal(err)
	}
}

// listDatabases asks the admin listener as livetree db list does.
func listDatabases(dir, address, token string) error {
	o := client.Operator{Data: dir, URL: address, Lookup: func(string) (string, bool) { return token, token != "" }}
	_, err := o.Ask(context.Background(), http.MethodGet, "/v1/databases", nil)
	return err
}

// TestCredentialDoesNotFollowANote: what a data directory says does not lead a credential of the environment to another
// machine, and the error says what to do. One that the user names is asked.
func TestCredentialDoesNotFollowANote(t *testing.T) {
	t.Parallel()
	n := noted{t, t.TempDir()}
	n.write("https://evil.invalid:9001\n", "admin", "addr")
	n.write("https://evil.invalid:9000\n\n", "url")
	err := listDatabases(n.dir, "", "horse")
	if err == nil || !strings.Contains(err.Error(), "--admin-url") || !strings.Contains(err.Error(), "evil.invalid") {
		t.Errorf("db list with a note that leads elsewhere: %v, want an error that names --admin-url", err)
	}
	if err := listDatabases(n.dir, "https://evil.invalid:9001", "horse"); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("db list at an address that the user names: %v, want it asked", err)
	}
	_, err = client.New(client.Options{Data: n.dir, Auth: "horse"})
	if err == nil || !strings.Contains(err.Error(), "--url") || strings.Contains(err.Error(), "horse") {
		t.Errorf("a client with a note that leads elsewhere: %v, want an error that names --url", err)
	}
	if _, err := client.New(client.Options{Data: n.dir}); err != nil {
		t.Errorf("a client with nothing to lose: %v", err)
	}
	n.write("https://127.0.0.1:9000\n\n", "url")
	if _, err := client.New(client.Options{Data: n.dir, Auth: "horse"}); err != nil {
		t.Errorf("a client with a note that leads to this machine: %v", err)
	}
}

// TestAuthorityHere: the certificate in ./livetree-data is trusted for this machine, and for no other.
func TestAuthorityHere(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"databases":[]}`))
	}))
	defer server.Close()
	dir := t.TempDir()
	t.Chdir(dir)
	n := noted{t, filepath.Join(dir, "livetree-data")}
	n.write(pemOf(server.Certificate()), "tls", "ca.pem")
	if err := listDatabases("./livetree-data", server.URL, "horse"); err != nil {
		t.Errorf("a server on this machine: %v", err)
	}
	n.write("no certificate", "tls", "ca.pem")
	err := listDatabases("./livetree-data", "https://evil.invalid", "horse")
	if err == nil || strings.Contains(err.Error(), "ca.pem") {
		t.Errorf("another machine: %v, want ./livetree-data/tls/ca.pem left alone", err)
	}
	if _, err := client.New(client.Options{URL: "https://evil.invalid", Data: "./livetree-data"}); err != nil {
		t.Errorf("a client of another machine: %v, want ./livetree-data/tls/ca.pem left alone", err)
	}
	for _, data := range []string{"", "./livetree-data"} {
		if _, err := client.New(client.Options{URL: server.URL, Data: data}); err == nil || !strings.Contains(err.Error(), "ca.pem") {
			t.Errorf("a client of this machine, with --data %q: %v, want the certificate read", data, err)
		}
	}
	if _, err := client.New(client.Options{URL: "https://evil.invalid", Data: n.dir}); err == nil || !strings.Contains(err.Error(), "ca.pem") {
		t.Errorf("a client of another machine, with --data: %v, want the certificate read", err)
	}
	if asked.Load() != 1 {
		t.Errorf("the server was asked %d times, want once", asked.Load())
	}
}

func pemOf(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}
