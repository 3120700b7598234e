package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
)

// This file makes tokens, good and bad, with nothing but the standard library.

const (
	secret  = "VN8bMrtLvbjTWwPRbpsbSsUfnMBKmz7DLZ9s0Qkv"
	other   = "OLD0secret0that0is0still0good0xxxxxxxxxx"
	issuer  = "https://id.example.org/realm"
	project = "livetree-test"
)

// now is what the clock says in every test that does not move it.
var now = time.Unix(1_800_000_000, 0)

var database = auth.Database{Name: "chat", Secrets: []string{secret, "", other}}

var b64 = base64.RawURLEncoding

// forge joins a token from texts and the signature of a key.
func forge(header, payload string, k any) string {
	signed := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(payload))
	return signed + "." + b64.EncodeToString(signature(signed, k))
}

// signature signs with whatever the key is for: a secret is a string.
func signature(signed string, k any) []byte {
	digest := sha256.Sum256([]byte(signed))
	switch k := k.(type) {
	case string:
		mac := hmac.New(sha256.New, []byte(k))
		mac.Write([]byte(signed))
		return mac.Sum(nil)
	case *rsa.PrivateKey:
		s, err := rsa.SignPKCS1v15(nil, k, crypto.SHA256, digest[:])
		must(err)
		return s
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, k, digest[:])
		must(err)
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case ed25519.PrivateKey:
		return ed25519.Sign(k, []byte(signed))
	}
	return nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// The keys of the issuer, and one that is not.
var (
	rsaKey     = sync.OnceValue(newRSAKey)
	ecKey      = sync.OnceValue(newECKey)
	edKey      = ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	strangeKey = ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", ed25519.SeedSize)))
)

func newRSAKey() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	return k
}

func newECKey() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	return k
}

// webKey is a key as a member of a key set; more are further members.
func webKey(id string, private any, more ...string) string {
	var members []string
	switch k := private.(type) {
	case *rsa.PrivateKey:
		members = []string{`"kty":"RSA"`, `"n":"` + b64.EncodeToString(k.N.Bytes()) + `"`,
			`"e":"` + b64.EncodeToString(big.NewInt(int64(k.E)).Bytes()) + `"`}
	case *ecdsa.PrivateKey:
		point, err := k.PublicKey.Bytes()
		must(err)
		members = []string{`"kty":"EC"`, `"crv":"P-256"`,
			`"x":"` + b64.EncodeToString(point[1:33]) + `"`, `"y":"` + b64.EncodeToString(point[33:]) + `"`}
	case ed25519.PrivateKey:
		members = []string{`"kty":"OKP"`, `"crv":"Ed25519"`, `"x":"` + b64.EncodeToString(k.Public().(ed25519.PublicKey)) + `"`}
	}
	if id != "" {
		members = append(members, fmt.Sprintf(`"kid":%q`, id))
	}
	return "{" + strings.Join(append(members, more...), ",") + "}"
}

func webKeys(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

// object is the JSON text of an object whose members are name, value, name, …;
// a value is a piece of JSON.
func object(members ...string) string {
	var parts []string
	for i := 0; i < len(members); i += 2 {
		parts = append(parts, fmt.Sprintf("%q:%s", members[i], members[i+1]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// seconds is a time of a token, d away from now.
func seconds(d time.Duration) string { return fmt.Sprint(now.Add(d).Unix()) }

func newVerifier(t testing.TB, opts auth.Options) *auth.Verifier {
	t.Helper()
	if opts.Now == nil {
		opts.Now = func() time.Time { return now }
	}
	v, err := auth.New(opts)
	if err != nil {
		t.Fatalf("New fails: %v", err)
	}
	return v
}

// outcome is what became of a credential, in one line: the identity, or the text
// that a client sees.
func outcome(id auth.Identity, err error) string {
	if err != nil {
		if fault.KindOf(err) != fault.Unauthenticated {
			return fmt.Sprintf("%v: %v", fault.KindOf(err), err)
		}
		return fault.Public(err)
	}
	var flags []string
	for name, set := range map[string]bool{"admin": id.Admin, "operator": id.Operator, "debug": id.Debug, "simulate": id.Simulate} {
		if set {
			flags = append(flags, name)
		}
	}
	return describe(flags, id.Expires, export(id.Auth))
}

const (
	unparsed = "Could not parse auth token."
	expired  = "Auth token is expired"
)

func verify(v *auth.Verifier, credential string) string {
	return outcome(v.Verify(context.Background(), credential, database))
}

func quote(s string) string {
	text, err := json.Marshal(s)
	must(err)
	return string(text)
}
