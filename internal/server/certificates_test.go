package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const day = 24 * time.Hour

// A fakeClock stands still until it is moved.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A logBook is a logger's output, to be looked at.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// made starts certificates without files, as the server does.
func made(t *testing.T, dir string, clock *fakeClock, names ...string) *certificates {
	t.Helper()
	return madeFor(t, dir, clock, certNames{needed: names})
}

func madeFor(t *testing.T, dir string, clock *fakeClock, names certNames) *certificates {
	t.Helper()
	c, err := newCertificates(dir, certFiles{}, names, clock.Now, new(logBook).logger())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// leaf returns the certificate that a client would be shown now.
func leaf(t *testing.T, c *certificates) *x509.Certificate {
	t.Helper()
	certificate, err := c.certificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return certificate.Leaf
}

// verify checks a certificate as a client does that trusts caFile.
func verify(t *testing.T, caFile string, leaf *x509.Certificate, host string, at time.Time) error {
	t.Helper()
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots(t, caFile), CurrentTime: at})
	return err
}

func roots(t *testing.T, caFile string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(readFile(t, caFile))) {
		t.Fatalf("%s holds no certificate", caFile)
	}
	return pool
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCertificateNames(t *testing.T) {
	t.Parallel()
	always := []string{"localhost", "127.0.0.1", "::1"}
	tests := []struct {
		addr, domain, machine string
		more                  []string
		called                string
	}{
		{addr: "0.0.0.0:9000"},
		{addr: "[::]:9000"},
		{addr: ":9000"},
		{addr: "db.example.org:443", machine: "Box", more: []string{"db.example.org"}, called: "Box"},
		{addr: "10.1.2.3:443", domain: "example.org", more: []string{"10.1.2.3", "example.org", "*.example.org"}},
		{addr: "[fe80::1%eth0]:443", machine: "müller", more: []string{"fe80::1"}},
	}
	for _, test := range tests {
		got := certificateNames(test.addr, test.domain, test.machine)
		if want := append(slices.Clone(always), test.more...); !slices.Equal(got.needed, want) || got.machine != test.called {
			t.Errorf("names for %q, %q, %q are %q, want %q and %q", test.addr, test.domain, test.machine, got, want, test.called)
		}
	}
}

// checkError wants one line that contains want, or no error if that is empty.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("error %q, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want one with %q", err, want)
	case err != nil && strings.Contains(err.Error(), "\n"):
		t.Errorf("error %q, want one line", err)
	}
}

func TestGivenFilesThatAreBroken(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	made(t, dir, newFakeClock(), "localhost")
	made(t, other, newFakeClock(), "localhost")
	broken := filepath.Join(dir, "broken.pem")
	writeFile(t, broken, "-----BEGIN NOTHING")
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	tests := []struct{ name, cert, key, want string }{
		{"good", cert, key, ""},
		{"no key", cert, "", "go together"},
		{"no certificate", "", key, "go together"},
		{"missing", cert + "x", key, "cert.pemx: no such file"},
		{"missing key", cert, key + "x", "key.pemx: no such file"},
		{"a directory", dir, key, "is a directory"},
		{"broken", broken, key, "failed to find any PEM data in certificate"},
		{"broken key", cert, broken, "failed to find any PEM data in key"},
		{"switched", key, cert, "switched"},
		{"other key", cert, filepath.Join(other, "key.pem"), "private key does not match"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := newCertificates("", certFiles{test.cert, test.key}, certNames{}, newFakeClock().Now, new(logBook).logger())
			checkError(t, err, test.want)
			if err == nil && c.caFile() != "" {
				t.Errorf("caFile() = %q, want none for given files", c.caFile())
			}
		})
	}
}

// install puts the certificate of a new authority into dir, with a time of
// change of its own, as if it were written a while later.
func install(t *testing.T, dir string, clock *fakeClock) {
	t.Helper()
	source := t.TempDir()
	made(t, source, clock, "localhost")
	for _, name := range []string{"cert.pem", "key.pem"} {
		writeFile(t, filepath.Join(dir, name), readFile(t, filepath.Join(source, name)))
		if err := os.Chtimes(filepath.Join(dir, name), clock.Now(), clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGivenFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir, clock, log := t.TempDir(), newFakeClock(), new(logBook)
	install(t, dir, clock)
	files := certFiles{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	c, err := newCertificates("", files, certNames{}, clock.Now, log.logger())
	if err != nil {
		t.Fatal(err)
	}
	first := leaf(t, c)

	clock.Add(999 * time.Millisecond)
	install(t, dir, clock)
	if !leaf(t, c).Equal(first) {
		t.Error("the files were looked at within a second, want not yet")
	}
	clock.Add(time.Millisecond)
	second := leaf(t, c)
	if second.Equal(first) {
		t.Error("the certificate is the old one, want the one in the files")
	}

	for range 5 {
		clock.Add(time.Minute)
		leaf(t, c)
	}
	if n := strings.Count(log.String(), "was replaced"); n != 1 {
		t.Errorf("the files were taken %d times for new ones, want once", n)
	}

	// A certificate without its key, as while they are being replaced.
	writeFile(t, files.key, "broken")
	for range 5 {
		clock.Add(time.Minute)
		if !leaf(t, c).Equal(second) {
			t.Fatal("the certificate changed with broken files, want the old one to stay")
		}
	}
	if n := strings.Count(log.String(), "could not be replaced"); n != 1 {
		t.Errorf("the broken file was logged %d times, want once:\n%s", n, log)
	}
	clock.Add(-time.Hour) // and a clock that was set back
	install(t, dir, clock)
	if leaf(t, c).Equal(second) {
		t.Error("the certificate is the old one after the files were mended, want the new one")
	}
}

func TestCertificatesFromManyHandshakes(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	c := made(t, t.TempDir(), clock, "localhost")
	var handshakes sync.WaitGroup
	for range 8 {
		handshakes.Go(func() {
			for range 20 {
				clock.Add(20 * day)
				if _, err := c.certificate(nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	handshakes.Wait()
	if err := verify(t, c.caFile(), leaf(t, c), "localhost", clock.Now()); err != nil {
		t.Error(err)
	}
}
