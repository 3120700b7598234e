package server

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/cluster/assembly"
)

// TestFilesOfTheAuthority: nodes that join get the authority with its key; without the key they get the certificate that it has signed; without that nothing.
func TestFilesOfTheAuthority(t *testing.T) {
	t.Parallel()
	tests := []struct{ have, want []string }{
		{nil, nil},
		{[]string{authorityCert}, nil},
		{[]string{authorityCert, authorityKey}, []string{"tls/ca.pem", "tls/ca-key.pem"}},
		{[]string{authorityCert, authorityKey, serverCert, serverKey}, []string{"tls/ca.pem", "tls/ca-key.pem"}},
		{[]string{authorityCert, serverCert, serverKey}, []string{"tls/ca.pem", "tls/cert.pem", "tls/key.pem"}},
		{[]string{authorityCert, serverCert}, nil},
		{[]string{serverCert, serverKey}, nil},
	}
	for _, test := range tests {
		data := t.TempDir()
		if err := os.Mkdir(filepath.Join(data, "tls"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range test.have {
			if err := os.WriteFile(filepath.Join(data, "tls", name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := assembly.FirstWhole(data, authorityFiles); !slices.Equal(got, test.want) {
			t.Errorf("with %v, nodes that join get %v, want %v", test.have, got, test.want)
		}
	}
}
