package server

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/livetree/livetree/internal/acmecert"
)

const acmeDomain = "db.example.com"

// issuer returns who has issued what a server shows to those who ask for a name.
func issuer(t *testing.T, addr, name string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Issuer.CommonName
}

// freePort returns an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", ownHost()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// getAs makes a request as a client that knows the server by a name.
func (f *fakeACME) getAs(t *testing.T, addr, name string) int {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(f.root)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("https://" + addr + "/.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func TestACME(t *testing.T) {
	t.Parallel()
	for _, challenge := range []string{"tls-alpn-01", "http-01"} {
		t.Run(challenge, func(t *testing.T) {
			data, authority, httpAddr := t.TempDir(), newFakeACME(t, challenge), freePort(t)
			with := func(c *Config) {
				c.ACME = authority.config("DB.example.com.", acmeDomain)
				if challenge == "http-01" {
					c.HTTPAddr = httpAddr
				}
			}
			m := startManaged(t, data, with)
			addr := strings.TrimPrefix(m.public, "https://")
			if got := issuer(t, addr, acmeDomain); !strings.Contains(got, "Livetree") {
				t.Errorf("before there is a certificate, that of %q is shown, want our own authority's", got)
			}
			authority.reach(addr, httpAddr)
			wait(t, "the certificate", func() bool { return issuer(t, addr, acmeDomain) == "fake authority" })
			if status := authority.getAs(t, addr, "Db.Example.com"); status != http.StatusForbidden {
				t.Errorf("GET by the certified name: %d, want 403", status)
			}
			for _, name := range []string{"", "localhost", "x." + acmeDomain} {
				if got := issuer(t, addr, name); !strings.Contains(got, "Livetree") {
					t.Errorf("to %q the certificate of %q is shown, want our own authority's", name, got)
				}
			}
			info, err := os.Stat(filepath.Join(data, "acme"))
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the directory of the certificates: %v, %v; want mode 0700", info.Mode(), err)
			}
			m.stop()

			again := startManaged(t, data, with)
			addr = strings.TrimPrefix(again.public, "https://")
			wait(t, "the certificate after a restart", func() bool { return issuer(t, addr, acmeDomain) == "fake authority" })
			if n := authority.count(); n != 1 {
				t.Errorf("%d certificates were ordered, want that the first is kept", n)
			}
		})
	}
}

// TestACMETellsWhyNot: the reason is the authority's, and it goes with advice. No test runs beside it, because of verifyNone.
func TestACMETellsWhyNot(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	authority := newFakeACME(t, "http-01")
	httpAddr := freePort(t)
	m := startManaged(t, t.TempDir(), func(c *Config) {
		c.ACME = authority.config(acmeDomain)
		c.HTTPAddr = httpAddr
	})
	addr := strings.TrimPrefix(m.public, "https://")
	authority.reach(addr, freePort(t)) // the domain leads elsewhere
	wait(t, "the complaint", func() bool { return strings.Contains(m.log.String(), "no certificate could be got") })
	for _, want := range []string{"connection refused", "challenge=http-01", "domain=" + acmeDomain, "port 80", "retry_in=2m"} {
		if !strings.Contains(m.log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, m.log)
		}
	}
	if got := issuer(t, addr, acmeDomain); !strings.Contains(got, "Livetree") {
		t.Errorf("without a certificate that of %q is shown, want our own authority's", got)
	}
	m.stop() // although it is to be tried again
	authority.Close()
	verifyNone(t, ignore)
}

// TestACMEEndsWhileItAsks: an authority that does not answer holds nobody up.
func TestACMEEndsWhileItAsks(t *testing.T) {
	t.Parallel()
	authority := newFakeACME(t, "http-01")
	m := startManaged(t, t.TempDir(), func(c *Config) { c.ACME = authority.config(acmeDomain) })
	m.stop()
	close(authority.known)
}

func TestACMESettings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		acme acmecert.Config
		cert string
		want string
	}{
		{"none", acmecert.Config{}, "", ""},
		{"a domain", acmecert.Config{Domains: []string{acmeDomain}}, "", ""},
		{"no domain", acmecert.Config{Email: "op@example.com"}, "", "give one"},
		{"two ways", acmecert.Config{Domains: []string{acmeDomain}}, "cert.pem", "choose one"},
		{"a wildcard", acmecert.Config{Domains: []string{"*.example.com"}}, "", "give every name"},
		{"an address", acmecert.Config{Domains: []string{"192.0.2.1"}}, "", "public names"},
		{"this machine", acmecert.Config{Domains: []string{"localhost"}}, "", "public names"},
		{"a URL", acmecert.Config{Domains: []string{"https://db.example.com/"}}, "", "without scheme"},
		{"a port", acmecert.Config{Domains: []string{"db.example.com:443"}}, "", "without scheme"},
		{"no TLS", acmecert.Config{Domains: []string{acmeDomain}, Directory: "http://ca.example.com/"}, "", "https: URL"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkError(t, test.acme.Check(test.cert), test.want)
		})
	}
	_, err := acmecert.New(acmecert.Config{Domains: []string{acmeDomain}, CAFile: "missing.pem"}, t.TempDir(), "", new(logBook).logger())
	checkError(t, err, "--acme-ca")
}
