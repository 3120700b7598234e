package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/tree"
)

// This file is about the tokens that whoever has the app secret signs with it:
// those of the Firebase token generators.

// legacyProof returns what a token proves that names HS256. The only keys for
// that algorithm are the app secrets.
func (v *Verifier) legacyProof(t *token, database Database) (*proof, error) {
	secret, ok := t.signer(database.Secrets)
	if !ok {
		return nil, errSignature
	}
	version, ok, err := t.claims.number("v")
	if err != nil || !ok || version != 0 {
		return nil, errVersion
	}
	id := Identity{Basis: v.secretBasis(secret)}
	for name, flag := range map[string]*bool{"admin": &id.Admin, "debug": &id.Debug, "simulate": &id.Simulate} {
		if *flag, err = t.claims.flag(name); err != nil {
			return nil, err
		}
	}
	if id.Auth, err = legacyAuth(t.claims["d"], id.Admin); err != nil {
		return nil, err
	}
	valid, err := t.claims.period(v.now())
	if err != nil {
		return nil, err
	}
	id.Expires = valid.expires
	return &proof{identity: id, from: valid.from}, nil
}

// signer returns the secret that the token was signed with.
func (t *token) signer(secrets []string) (string, bool) {
	found := -1
	for i, secret := range secrets {
		if secret != "" {
			match := subtle.ConstantTimeCompare(sign(secret, t.signed), t.signature)
			found = subtle.ConstantTimeSelect(match, i, found)
		}
	}
	if found < 0 {
		return "", false
	}
	return secrets[found], true
}

// sign returns the HS256 signature of header.claims.
func sign(secret, text string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// legacyAuth returns the variable auth that the claim d gives. Only an
// administrator may do without one, or without a uid in it.
func legacyAuth(d json.RawMessage, admin bool) (tree.Node, error) {
	if d == nil && admin {
		return tree.Node{}, nil
	}
	data, auth, err := parseClaims(d)
	if err != nil {
		return tree.Node{}, errors.New("the claim d is not an object")
	}
	uid, ok, err := data.text("uid")
	if err != nil || !ok && !admin || ok && !validUID(uid) {
		return tree.Node{}, errUID
	}
	return auth, nil
}

// maxUIDLength is in characters: the generators refused longer ones.
const maxUIDLength = 255

func validUID(uid string) bool {
	return uid != "" && utf8.RuneCountInString(uid) <= maxUIDLength
}

// Claims are what a token says that is signed with an app secret.
type Claims struct {
	// Data is the variable auth of rules. It needs a string "uid" unless Admin.
	Data map[string]any
	// IssuedAt, NotBefore and Expires are left out of the token if they are zero.
	// They are rounded down to seconds.
	IssuedAt, NotBefore, Expires time.Time
	Admin, Debug, Simulate       bool
}

// Mint returns a token that is signed with an app secret. It fails if no
// database would accept such a token.
func Mint(secret string, c Claims) (string, error) {
	if secret == "" {
		return "", errors.New("a token needs a secret to be signed with")
	}
	members := map[string]any{"v": 0}
	if c.Data != nil {
		members["d"] = c.Data
	}
	for name, at := range map[string]time.Time{"iat": c.IssuedAt, "nbf": c.NotBefore, "exp": c.Expires} {
		if !at.IsZero() {
			members[name] = at.Unix()
		}
	}
	for name, flag := range map[string]bool{"admin": c.Admin, "debug": c.Debug, "simulate": c.Simulate} {
		if flag {
			members[name] = true
		}
	}
	payload, err := json.Marshal(members)
	if err != nil {
		return "", err
	}
	read, _, err := parseClaims(payload)
	if err != nil {
		return "", err
	}
	if _, err := legacyAuth(read["d"], c.Admin); err != nil {
		return "", err
	}
	signed := segments.EncodeToString([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + segments.EncodeToString(payload)
	text := signed + "." + segments.EncodeToString(sign(secret, signed))
	if len(text) > maxCredentialBytes {
		return "", errTooLong
	}
	return text, nil
}
