package auth_test

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
)

// certificate returns a certificate of a key, signed by itself, in PEM.
func certificate(t *testing.T, key crypto.Signer) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestCertificatesById: the keys of an issuer may come as certificates by the ids
// of their keys.
func TestCertificatesById(t *testing.T) {
	t.Parallel()
	set := func(members map[string]string) []byte {
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{project}, Keys: set(map[string]string{"rs": certificate(t, rsaKey()), "ec": certificate(t, ecKey())}),
	}}})
	for header, want := range map[string]bool{
		`{"alg":"RS256","kid":"rs"}`: true,
		`{"alg":"RS256","kid":"ec"}`: false, // that key is for ES256
		`{"alg":"RS256","kid":"xx"}`: false,
	} {
		got := verify(v, forge(header, issuedClaims(), rsaKey()))
		if (got != unparsed) != want {
			t.Errorf("a token with the header %s: %s, want it accepted: %v", header, got, want)
		}
	}
	for name, text := range map[string][]byte{
		"no certificate":  set(map[string]string{"rs": "text"}),
		"another block":   set(map[string]string{"rs": strings.ReplaceAll(certificate(t, rsaKey()), "CERTIFICATE", "PRIVATE KEY")}),
		"empty":           set(nil),
		"another object":  []byte(`{"rs":{"kty":"RSA"}}`),
		"cut certificate": set(map[string]string{"rs": certificate(t, rsaKey())[:200]}),
	} {
		if _, err := auth.New(auth.Options{Issuers: []auth.Issuer{{URL: issuer, Audiences: []string{project}, Keys: text}}}); err == nil {
			t.Errorf("%s is accepted as a key set", name)
		}
	}
}
