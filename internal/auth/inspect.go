package auth

import (
	"encoding/json"
	"strings"
	"time"
)

// An Inspection is what can be seen of a token, for somebody who wonders why it
// is refused.
type Inspection struct {
	// Header and Claims are their JSON texts; nil if they cannot be read.
	Header json.RawMessage `json:"header,omitempty"`
	Claims json.RawMessage `json:"claims,omitempty"`
	// Signature is matches, differs or, if no secret for it was given, unchecked.
	Signature string `json:"signature"`
	// Expires is zero for a token without an expiry.
	Expires time.Time `json:"expires,omitzero"`
	// Problems say why the token would be refused, as far as can be told here.
	Problems []string `json:"problems"`
}

// Inspect takes a token apart and tells all that is wrong with it, where Verify
// stops at the first. It goes to no network, so it does not know whether the
// signature of an issuer is right.
func Inspect(text string, now time.Time, secrets []string) Inspection {
	i := Inspection{Signature: "unchecked", Problems: []string{}}
	if len(text) > maxCredentialBytes {
		i.add(errTooLong)
	}
	parts := strings.SplitN(text, ".", 4)
	if len(parts) != 3 {
		i.Problems = append(i.Problems, "a token has three parts with dots between them")
		return i
	}
	i.Header, i.Claims = readable(parts[0]), readable(parts[1])
	t, err := parseToken(text)
	if err != nil {
		i.add(err)
		return i
	}
	if t.algorithm == hs256 {
		i.legacy(t, secrets)
	} else {
		i.issued(t)
	}
	valid, err := t.claims.period(now)
	i.Expires = valid.expires
	i.add(err)
	return i
}

// readable returns a segment if it is JSON.
func readable(segment string) json.RawMessage {
	text, err := decodeSegment(segment)
	if err != nil || !json.Valid(text) {
		return nil
	}
	return text
}

func (i *Inspection) add(err error) {
	if err != nil {
		i.Problems = append(i.Problems, err.Error())
	}
}

// legacy looks at a token that is signed with an app secret.
func (i *Inspection) legacy(t *token, secrets []string) {
	if len(secrets) > 0 {
		i.Signature = "matches"
		if _, ok := t.signer(secrets); !ok {
			i.Signature = "differs"
			i.add(errSignature)
		}
	}
	if version, ok, err := t.claims.number("v"); err != nil || !ok || version != 0 {
		i.add(errVersion)
	}
	admin, err := t.claims.flag("admin")
	i.add(err)
	for _, name := range []string{"debug", "simulate"} {
		_, err := t.claims.flag(name)
		i.add(err)
	}
	_, err = legacyAuth(t.claims["d"], admin)
	i.add(err)
}

// issued looks at a token of an identity provider.
func (i *Inspection) issued(t *token) {
	if issuer, ok, err := t.claims.text("iss"); err != nil || !ok || issuer == "" {
		i.Problems = append(i.Problems, "the token names no issuer: the claim iss")
	}
	if _, ok := t.claims["aud"]; !ok {
		i.add(errAudience)
	}
	if uid, ok, err := t.claims.text("sub"); err != nil || !ok || !validUID(uid) {
		i.add(errUID)
	}
	if _, ok := t.claims["exp"]; !ok {
		i.add(errNoExpiry)
	}
}
