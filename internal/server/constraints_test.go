package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAuthorityIsConstrained: a certificate for another site, signed with the key of
// the authority, is refused by whoever trusts the authority.
func TestAuthorityIsConstrained(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), newFakeClock()
	c := madeFor(t, dir, clock, certificateNames("203.0.113.7:443", "db.example.org", "box"))
	a := newAuthority(dir, certNames{}, clock.Now, new(logBook).logger())
	if err := a.open(); err != nil {
		t.Fatal(err)
	}
	signer, err := a.key()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for host, good := range map[string]bool{
		"localhost": true, "app.localhost": true, "box": true, "db.example.org": true, "shop.db.example.org": true,
		"127.0.0.1": true, "::1": true, "10.0.2.2": true, "192.168.1.9": true, "fd00::1": true, "203.0.113.7": true,
		"example.org": false, "bank.example.com": false, "xdb.example.org": false, "com": false,
		"203.0.113.8": false, "8.8.8.8": false, "2001:db8::1": false,
	} {
		forged := a.template()
		if ip := net.ParseIP(host); ip != nil {
			forged.IPAddresses = []net.IP{ip}
		} else {
			forged.DNSNames = []string{host}
		}
		der, err := x509.CreateCertificate(rand.Reader, forged, a.ca, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t, c.caFile(), cert, host, clock.Now()); (err == nil) != good {
			t.Errorf("a certificate of the authority for %s: %v, want it good: %t", host, err, good)
		}
		if permits(a.ca, host) != good {
			t.Errorf("permits(%s) = %t, want as clients see it, %t", host, !good, good)
		}
	}
}

// TestNameOutsideOfConstraints: the server does not start with a certificate that
// nobody would accept.
func TestNameOutsideOfConstraints(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "tls"), newFakeClock()
	made(t, dir, clock, "localhost")
	_, err := newCertificates(dir, certFiles{}, certNames{needed: []string{"localhost", "*.new.example.org"}}, clock.Now, new(logBook).logger())
	if err == nil || !strings.Contains(err.Error(), "may not sign for *.new.example.org: run livetree dev-cert --renew --data "+filepath.Dir(dir)) {
		t.Errorf("a start with a name that the authority may not sign for: %v, want the command that helps", err)
	}
}

// TestMachineOfAnotherName: the data directory of a container sees another name with
// each start, which is no reason not to start.
func TestMachineOfAnotherName(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), newFakeClock()
	first := madeFor(t, dir, clock, certificateNames(":9000", "", "box-1"))
	second := madeFor(t, dir, clock, certificateNames(":9000", "", "box-2"))
	if err := verify(t, first.caFile(), leaf(t, first), "box-1", clock.Now()); err != nil {
		t.Error(err)
	}
	if err := verify(t, second.caFile(), leaf(t, second), "localhost", clock.Now()); err != nil {
		t.Error(err)
	}
}

// TestUnconstrainedAuthorityIsKept: those of older versions are trusted already.
func TestUnconstrainedAuthorityIsKept(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), newFakeClock()
	made(t, dir, clock, "localhost")
	a := newAuthority(dir, certNames{}, clock.Now, new(logBook).logger())
	if err := a.open(); err != nil {
		t.Fatal(err)
	}
	signer, err := a.key()
	if err != nil {
		t.Fatal(err)
	}
	old := *a.ca
	old.PermittedDNSDomains, old.PermittedIPRanges, old.ExtraExtensions = nil, nil, nil
	der, err := x509.CreateCertificate(rand.Reader, &old, &old, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	c := made(t, dir, clock, "localhost", "any.example.com")
	if err := verify(t, c.caFile(), leaf(t, c), "any.example.com", clock.Now()); err != nil {
		t.Errorf("a new name with an authority of an older version: %v", err)
	}
	if readFile(t, c.caFile()) != string(text) {
		t.Error("the authority was replaced")
	}
}
