package people

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"time"
)

// What tokens of the issuer carry.
const (
	IssuerURL = "https://accounts.example.org/bench"
	Audience  = "bench"
	keyID     = "bench-1"
)

// An Issuer is an identity provider that signs with RS256.
type Issuer struct{ key *rsa.PrivateKey }

// NewIssuer makes the key of an issuer.
func NewIssuer() (*Issuer, error) {
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, err
	}
	return &Issuer{key}, nil
}

var b64 = base64.RawURLEncoding

// KeySet returns the public key as servers fetch it.
func (i *Issuer) KeySet() ([]byte, error) {
	return json.Marshal(map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": keyID,
		"n": b64.EncodeToString(i.key.N.Bytes()), "e": b64.EncodeToString(big.NewInt(int64(i.key.E)).Bytes()),
	}}})
}

// Token returns what a person shows, good for a day. It holds as much as identity
// providers put into one.
func (i *Issuer) Token(uid string, now time.Time) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": keyID})
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(map[string]any{
		"iss": IssuerURL, "aud": Audience, "sub": uid, "user_id": uid, "iat": now.Unix(), "auth_time": now.Unix(),
		"exp": now.Add(24 * time.Hour).Unix(), "name": "A Person", "email": uid + "@example.org", "email_verified": true,
		"picture":  "https://example.org/a/" + uid + ".png",
		"firebase": map[string]any{"identities": map[string]any{"email": []string{uid + "@example.org"}}, "sign_in_provider": "password"},
	})
	if err != nil {
		return "", err
	}
	signed := b64.EncodeToString(header) + "." + b64.EncodeToString(payload)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, i.key, crypto.SHA256, digest[:])
	if err != nil {
		return "", err
	}
	return signed + "." + b64.EncodeToString(signature), nil
}
