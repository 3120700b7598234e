package auth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/tree"
)

// The algorithms of tokens, as headers spell them.
const (
	hs256 = "HS256"
	rs256 = "RS256"
	es256 = "ES256"
	eddsa = "EdDSA"
)

// A token is a JSON web token (RFC 7519) in its compact form, taken apart.
// Whether its signature is right is not known yet.
type token struct {
	text      string // all of it
	signed    string // header.claims, as they were sent
	signature []byte
	algorithm string // one of the four
	keyID     string // "" if the header names none
	payload   []byte // the text of the claims
	claims    claims
	node      tree.Node // the claims once more, as rules see them
}

// parseToken takes a token apart. It refuses every spelling but one, so that
// two texts are never the same token.
func parseToken(text string) (*token, error) {
	parts := strings.SplitN(text, ".", 4)
	if len(parts) != 3 {
		return nil, errNoToken
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = decodeSegment(part); err != nil {
			return nil, err
		}
	}
	t := &token{text: text, signed: text[:strings.LastIndexByte(text, '.')], payload: decoded[1], signature: decoded[2]}
	err := t.readHeader(decoded[0])
	if err == nil {
		t.claims, t.node, err = parseClaims(t.payload)
	}
	return t, err
}

// segments are base64url without padding, whose last character has no bits to
// spare.
var segments = base64.RawURLEncoding.Strict()

func decodeSegment(text string) ([]byte, error) {
	if text == "" || strings.ContainsAny(text, "\r\n") { // the decoder would skip them
		return nil, errNoToken
	}
	decoded, err := segments.DecodeString(text)
	if err != nil {
		return nil, errNoToken // err would show a part of the token
	}
	return decoded, nil
}

// tokenTypes are the values of typ for tokens that say who somebody is, in lower
// case. An issuer signs other things with the same key: a logout token must not
// log anybody in (RFC 8725, 3.11).
var tokenTypes = map[string]bool{"jwt": true, "at+jwt": true, "application/jwt": true, "application/at+jwt": true}

// readHeader reads what there is to know from the header. It does not look at
// jku, jwk, x5u and x5c, by which a token would bring its own key.
func (t *token) readHeader(text []byte) error {
	header, _, err := parseClaims(text)
	if err != nil {
		return errHeader
	}
	for _, name := range []string{"crit", "b64"} { // extensions that change what is signed
		if _, ok := header[name]; ok {
			return errHeader
		}
	}
	kind, ok, err := header.text("typ")
	if err != nil || ok && !tokenTypes[strings.ToLower(kind)] {
		return errHeader
	}
	if t.keyID, _, err = header.text("kid"); err != nil {
		return errHeader
	}
	if t.algorithm, _, err = header.text("alg"); err != nil {
		return errHeader
	}
	switch t.algorithm {
	case hs256, rs256, es256, eddsa:
		return nil
	}
	return errAlgorithm
}

// claims are the members of a JSON object, by name. A claim that is there must
// be of its type: null, too, is malformed.
type claims map[string]json.RawMessage

// parseClaims reads one JSON object in which no key is repeated, at any depth.
func parseClaims(text []byte) (claims, tree.Node, error) {
	node, err := tree.DecodeClaims(text) // stricter than encoding/json
	if err != nil {
		return nil, tree.Node{}, errClaims
	}
	var c claims
	if err := json.Unmarshal(text, &c); err != nil || c == nil {
		return nil, tree.Node{}, errClaims
	}
	return c, node, nil
}

// text returns a claim that must be a string if it is there.
func (c claims) text(name string) (value string, ok bool, err error) {
	raw, ok := c[name]
	if !ok {
		return "", false, nil
	}
	if raw[0] != '"' || json.Unmarshal(raw, &value) != nil {
		return "", false, fmt.Errorf("the claim %s is not a string", name)
	}
	return value, true, nil
}

// flag returns a claim that must be a boolean if it is there.
func (c claims) flag(name string) (bool, error) {
	raw, ok := c[name]
	switch {
	case !ok || string(raw) == "false":
		return false, nil
	case string(raw) == "true":
		return true, nil
	}
	return false, fmt.Errorf("the claim %s is not a boolean", name)
}

// number returns a claim that must be a number if it is there.
func (c claims) number(name string) (value float64, ok bool, err error) {
	raw, ok := c[name]
	if !ok {
		return 0, false, nil
	}
	if value, err = strconv.ParseFloat(string(raw), 64); err != nil {
		return 0, false, fmt.Errorf("the claim %s is not a number", name)
	}
	return value, true, nil
}

// maxSeconds bounds the times of tokens: up to here a double holds every second.
const maxSeconds = 1 << 53

// moment returns a claim that must be a number of seconds since 1970 if it is
// there, perhaps with a fraction.
func (c claims) moment(name string) (at time.Time, ok bool, err error) {
	seconds, ok, err := c.number(name)
	if err != nil || !ok {
		return time.Time{}, false, err
	}
	if math.Abs(seconds) > maxSeconds {
		return time.Time{}, false, fmt.Errorf("the claim %s is not a time", name)
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true, nil
}

// maxSkew is how far the clock of whoever made a token may be ahead of ours. An
// expiry is exact: a token that lives a little longer helps only who stole it.
const maxSkew = time.Minute

// A period is when a token is valid: not before nbf and iat, nor from exp on. An
// end that the token does not give is zero.
type period struct{ from, expires time.Time }

// period returns when a token is valid. It fails if that is not now.
func (c claims) period(now time.Time) (p period, err error) {
	for _, name := range []string{"nbf", "iat"} {
		at, ok, err := c.moment(name)
		if err != nil {
			return period{}, err
		}
		if ok && at.After(p.from) {
			p.from = at
		}
	}
	expires, ok, err := c.moment("exp")
	if err != nil {
		return period{}, err
	}
	if ok && expires.IsZero() {
		return period{}, errExpired // long ago; as zero it would be never
	}
	p.expires = expires
	return p, p.check(now)
}

// check returns why a token with that period is not valid now, or nil.
func (p period) check(now time.Time) error {
	switch {
	case p.from.After(now.Add(maxSkew)):
		return errTooSoon
	case !p.expires.IsZero() && !now.Before(p.expires):
		return errExpired
	}
	return nil
}
