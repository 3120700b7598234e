package peer_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/peer"
)

var (
	textA = strings.Repeat("a1", 32)
	textB = strings.Repeat("b2", 32)
)

func key(t testing.TB, text string) peer.Key {
	t.Helper()
	k, err := peer.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParseKey(t *testing.T) {
	tests := []struct {
		name, text, fault string
	}{
		{"one line", textA, ""},
		{"a line that ends", textA + "\n", ""},
		{"two lines", textA + "\r\n" + textB + "\n\n", ""},
		{"capitals", strings.ToUpper(textA), ""},
		{"a new one", peer.NewKey(), ""},
		{"nothing", " \n", "is empty"},
		{"three lines", textA + "\n" + textB + "\n" + textA, "has 3 lines"},
		{"too short", textA[1:], "63 characters"},
		{"no digits", strings.Repeat("g", 64), "64 hexadecimal digits"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := peer.ParseKey(test.text)
			if test.fault == "" && err != nil || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
				t.Fatalf("ParseKey = %v, want %q", err, test.fault)
			}
			if err != nil && strings.Contains(err.Error(), textA[:8]) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
	if first, second := peer.NewKey(), peer.NewKey(); first == second {
		t.Error("two new keys are the same")
	}
}

func TestKeyShowsItsFingerprintAlone(t *testing.T) {
	k := key(t, textA+"\n"+textB)
	if k.Fingerprint() != key(t, textA).Fingerprint() || k.Fingerprint() == key(t, textB).Fingerprint() {
		t.Error("the fingerprint is not that of the first line")
	}
	encoded, err := json.Marshal(struct{ K peer.Key }{k})
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("a key", "key", k, "options", peer.Options{Key: k})
	shown := fmt.Sprintf("%v %+v %#v %s %x %d %q ", k, k, k, k, k, k, k) + fmt.Sprintf("%+v %#v ", peer.Options{Key: k}, &k) + string(encoded) + logged.String()
	for _, secret := range []string{textA[:8], textB[:8], "161 161", "178 178", "0xa1, 0xa1", "0xb2, 0xb2"} { // also as decimal digits
		if strings.Contains(shown, secret) {
			t.Errorf("a key shows itself: %s", shown)
		}
	}
	if n := strings.Count(shown, k.Fingerprint()); n != 12 {
		t.Errorf("the fingerprint is shown %d times in %s", n, shown)
	}
}

func TestFilesForEtcd(t *testing.T) {
	now := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	one, two := filepath.Join(t.TempDir(), "cluster-tls"), filepath.Join(t.TempDir(), "cluster-tls")
	files, err := key(t, textA+"\n"+textB).WriteFiles(one, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := key(t, textB).WriteFiles(two, now); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, "ca.pem": 0o600, "node.pem": 0o600, "node.key": 0o600} {
		info, err := os.Stat(filepath.Join(one, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q has %v, %v, want %o", name, info.Mode(), err, mode)
		}
	}
	cas := certificates(t, files.CA)
	if others := certificates(t, filepath.Join(two, "ca.pem")); len(cas) != 2 || len(others) != 1 || !cas[1].Equal(others[0]) {
		t.Errorf("two nodes with the same line work out different authorities")
	}
	node := certificates(t, files.Cert)[0]
	pool := x509.NewCertPool()
	pool.AddCert(cas[0])
	for after, good := range map[time.Duration]bool{-23 * time.Hour: true, 29 * 24 * time.Hour: true, 31 * 24 * time.Hour: false} {
		_, err := node.Verify(x509.VerifyOptions{DNSName: "livetree-node", Roots: pool, CurrentTime: now.Add(after), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if good != (err == nil) {
			t.Errorf("%v after it was issued, a certificate verifies with %v", after, err)
		}
	}
}

func certificates(t *testing.T, name string) (all []*x509.Certificate) {
	t.Helper()
	rest, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
}
