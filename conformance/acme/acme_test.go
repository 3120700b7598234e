package acme

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const domain = "db.livetree.test"

// TestChallenges gets a certificate by each way to prove that a name is the
// server's, serves with it, and keeps it over a restart.
func TestChallenges(t *testing.T) {
	t.Run("TLS-ALPN-01", func(t *testing.T) {
		authority := startPebble(t)
		check(t, authority, "--addr", authority.tlsAddr)
	})
	t.Run("HTTP-01", func(t *testing.T) {
		authority := startPebble(t) // nobody answers on its port for TLS
		check(t, authority, "--addr", freeAddr(t), "--http-addr", authority.httpAddr)
	})
}

func check(t *testing.T, authority *pebble, flags ...string) {
	data := t.TempDir()
	flags = append(flags, "--acme-domain", domain, "--acme-email", "op@livetree.test",
		"--acme-directory", authority.directory, "--acme-ca", authority.caFile)
	first := startServer(t, data, flags...)
	leaf := waitForCertificate(t, first.addr, authority)
	if status, text := get(t, first.addr, domain, authority.issuers); status != http.StatusOK || text != "null" {
		t.Errorf("GET with the certificate: %d %s, want 200 null", status, text)
	}
	own := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(data, "tls", "ca.pem"))
	if err != nil || !own.AppendCertsFromPEM(ca) {
		t.Fatalf("our own authority: %v", err)
	}
	if status, _ := get(t, first.addr, "localhost", own); status != http.StatusOK {
		t.Errorf("GET as localhost: %d, want 200 with our own certificate", status)
	}
	info, err := os.Stat(filepath.Join(data, "acme"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory acme: %v, %v; want mode 0700", info, err)
	}
	first.stop(t)
	authority.stop() // the certificate is kept
	again := startServer(t, data, flags...)
	if kept := waitForCertificate(t, again.addr, authority); !kept.Equal(leaf) {
		t.Error("after a restart there is another certificate, want the one that was kept")
	}
	again.stop(t)
}

// waitForCertificate waits until the server shows a certificate of the authority.
func waitForCertificate(t *testing.T, addr string, authority *pebble) *x509.Certificate {
	t.Helper()
	deadline, tick := time.After(2*time.Minute), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := tls.Dial("tcp", addr, &tls.Config{ServerName: domain, RootCAs: authority.issuers})
		if err == nil {
			defer conn.Close()
			return conn.ConnectionState().PeerCertificates[0]
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("there is no certificate after two minutes: %v\npebble says\n%s", err, authority.log.String())
		}
	}
}

// get asks a server by a name.
func get(t *testing.T, addr, name string, roots *x509.CertPool) (int, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{ServerName: name, RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("https://" + addr + "/.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(text))
}
