package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMadeCertificateCoversNames(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	names := certificateNames("10.1.2.3:443", "example.org", "Box")
	c := madeFor(t, t.TempDir(), clock, names)
	got := leaf(t, c)
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "[::1]", "10.1.2.3", "box", "example.org", "app.example.org"} {
		if err := verify(t, c.caFile(), got, host, clock.Now()); err != nil {
			t.Errorf("a client of %s: %v, want the certificate to be good", host, err)
		}
	}
	for _, host := range []string{"example.com", "a.b.example.org", "10.1.2.4"} {
		if verify(t, c.caFile(), got, host, clock.Now()) == nil {
			t.Errorf("a client of %s takes the certificate, want it refused", host)
		}
	}
	if life := got.NotAfter.Sub(got.NotBefore); life > 397*day {
		t.Errorf("the certificate lives %v, want at most 397 days", life)
	}
}

func TestMadeFilesAreForTheOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data", "tls")
	c := made(t, dir, newFakeClock(), "localhost")
	if want := filepath.Join(dir, "ca.pem"); c.caFile() != want {
		t.Errorf("caFile() = %q, want %q", c.caFile(), want)
	}
	modes := map[string]fs.FileMode{"": 0o700, "ca.pem": 0o644, "ca-key.pem": 0o600, "cert.pem": 0o600, "key.pem": 0o600}
	for name, want := range modes {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of tls/%s is %o, want %o", name, got, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("the directory holds %v (%v), want four files", entries, err)
	}
}

func TestMadeCertificateIsKept(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), newFakeClock()
	first := leaf(t, made(t, dir, clock, "localhost", "::1"))
	clock.Add(300 * day)
	if again := leaf(t, made(t, dir, clock, "0:0::1", "LOCALHOST")); !again.Equal(first) {
		t.Error("the certificate changed with a restart, want the same one")
	}
	// The key of the authority may be kept elsewhere, also on a machine of another name.
	if err := os.Remove(filepath.Join(dir, "ca-key.pem")); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][]string{{"localhost"}, {"localhost", "10.1.1.1"}} {
		if again := leaf(t, made(t, dir, clock, names...)); !again.Equal(first) {
			t.Error("the certificate changed without the authority's key, want the same one")
		}
	}
	clock.Add(100 * day) // past its end
	_, err := newCertificates(dir, certFiles{}, certNames{needed: []string{"localhost"}}, clock.Now, new(logBook).logger())
	if err == nil || !strings.Contains(err.Error(), "cannot be signed") || !strings.Contains(err.Error(), "dev-cert --renew") {
		t.Errorf("a certificate that has ended without the authority's key: %v, want an error that says what to do", err)
	}
}

func TestMadeCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), newFakeClock()
	c := made(t, dir, clock, "localhost")
	ca := readFile(t, c.caFile())
	first := leaf(t, c)

	clock.Add(366 * day) // 31 days are left, less an hour
	if got := leaf(t, c); !got.Equal(first) {
		t.Fatalf("renewed %v before its end, want 30 days", first.NotAfter.Sub(clock.Now()))
	}
	clock.Add(2 * day)
	second := leaf(t, c)
	if second.Equal(first) {
		t.Fatalf("not renewed %v before its end, want 30 days", first.NotAfter.Sub(clock.Now()))
	}
	clock.Add(100 * day) // past the end of the first
	if err := verify(t, c.caFile(), second, "localhost", clock.Now()); err != nil {
		t.Errorf("the renewed certificate: %v", err)
	}
	third := leaf(t, made(t, dir, clock, "localhost", "10.9.8.7"))
	if err := verify(t, c.caFile(), third, "10.9.8.7", clock.Now()); err != nil {
		t.Errorf("the certificate after a start with a new name: %v", err)
	}
	if readFile(t, c.caFile()) != ca {
		t.Error("the authority changed, want the same one")
	}
}

func TestExpiredAuthorityIsReplaced(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	c := made(t, t.TempDir(), clock, "localhost")
	ca := readFile(t, c.caFile())
	clock.Add(3640 * day)
	last := leaf(t, c)
	if end := last.NotAfter; end.Sub(clock.Now()) > 11*day {
		t.Errorf("the certificate ends at %v, after its authority", end)
	}
	clock.Add(time.Hour)
	if got := leaf(t, c); !got.Equal(last) {
		t.Error("renewed although the authority cannot give it more time")
	}
	clock.Add(20 * day)
	if err := verify(t, c.caFile(), leaf(t, c), "localhost", clock.Now()); err != nil {
		t.Errorf("after the end of the authority: %v, want a new one", err)
	}
	if readFile(t, c.caFile()) == ca {
		t.Error("the authority is the expired one, want a new one")
	}
}

func TestMadeFilesThatAreBroken(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, text string
		want             string // of the error; "" for none
	}{
		{"server key", "key.pem", "broken", ""},
		{"server certificate", "cert.pem", "", ""},
		{"authority", "ca.pem", "broken", "ca.pem: it holds no PEM block: restore"},
		{"authority's certificate", "ca.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "ca.pem: x509: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir, clock := t.TempDir(), newFakeClock()
			made(t, dir, clock, "localhost")
			writeFile(t, filepath.Join(dir, test.file), test.text)
			c, err := newCertificates(dir, certFiles{}, certNames{needed: []string{"localhost"}}, clock.Now, new(logBook).logger())
			checkError(t, err, test.want)
			if err == nil {
				if err := verify(t, c.caFile(), leaf(t, c), "localhost", clock.Now()); err != nil {
					t.Errorf("the certificate made anew: %v", err)
				}
			}
		})
	}
}

func TestAuthorityWithTheKeyOfAnother(t *testing.T) {
	t.Parallel()
	dir, other, clock := t.TempDir(), t.TempDir(), newFakeClock()
	made(t, dir, clock, "localhost")
	made(t, other, clock, "localhost")
	writeFile(t, filepath.Join(dir, "ca-key.pem"), readFile(t, filepath.Join(other, "ca-key.pem")))
	_, err := newCertificates(dir, certFiles{}, certNames{needed: []string{"10.1.1.1"}}, clock.Now, new(logBook).logger())
	checkError(t, err, "it is not the key of ca.pem")
}
