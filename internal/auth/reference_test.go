package auth_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/tree"
)

// A reference judges tokens by other means than the package: encoding/json,
// crypto/hmac and crypto/ecdsa, straight down the page, and nothing shared. It
// does not know the limits of tree.DecodeClaims, of which it would accept more.
type reference struct {
	secrets  []string
	issuer   string
	audience string
	keys     map[string]crypto.PublicKey // by key id
	now      time.Time
}

var (
	errRefused = errors.New("refused")
	errLate    = errors.New("expired")
)

// judge returns the outcome of a token.
func (r reference) judge(text string) string {
	got, err := r.verify(text)
	switch {
	case errors.Is(err, errLate):
		return expired
	case err != nil:
		return unparsed
	}
	return got
}

func (r reference) verify(text string) (string, error) {
	if len(text) > 8192 || strings.Count(text, ".") != 2 || strings.ContainsAny(text, "\r\n") {
		return "", errRefused
	}
	var decoded [3][]byte
	for i, part := range strings.Split(text, ".") {
		b, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || len(b) == 0 || base64.RawURLEncoding.EncodeToString(b) != part {
			return "", errRefused
		}
		decoded[i] = b
	}
	header, err := strictObject(decoded[0])
	if err != nil {
		return "", err
	}
	claims, err := strictObject(decoded[1])
	if err != nil {
		return "", err
	}
	if !goodHeader(header) {
		return "", errRefused
	}
	signed := text[:strings.LastIndex(text, ".")]
	if header["alg"] == "HS256" {
		return r.legacy(signed, decoded[2], claims)
	}
	return r.issued(signed, decoded[2], header, claims)
}

func goodHeader(header map[string]any) bool {
	_, crit := header["crit"]
	_, b64 := header["b64"]
	if crit || b64 {
		return false
	}
	if kid, ok := header["kid"]; ok {
		if _, ok := kid.(string); !ok {
			return false
		}
	}
	if typ, ok := header["typ"]; ok {
		s, ok := typ.(string)
		if !ok || !slices.Contains([]string{"jwt", "at+jwt", "application/jwt", "application/at+jwt"}, strings.ToLower(s)) {
			return false
		}
	}
	return true
}

func (r reference) legacy(signed string, signature []byte, claims map[string]any) (string, error) {
	authentic := false
	for _, secret := range r.secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(signed))
		authentic = authentic || secret != "" && bytes.Equal(mac.Sum(nil), signature)
	}
	if !authentic {
		return "", errRefused
	}
	v, ok := claims["v"].(json.Number)
	if f, err := v.Float64(); !ok || err != nil || f != 0 {
		return "", errRefused
	}
	var flags []string
	for _, name := range []string{"admin", "debug", "simulate"} {
		value, present := claims[name]
		set, ok := value.(bool)
		if present && !ok {
			return "", errRefused
		}
		if set {
			flags = append(flags, name)
		}
	}
	admin := claims["admin"] == true
	d, present := claims["d"]
	data, ok := d.(map[string]any)
	if present && !ok || !present && !admin {
		return "", errRefused
	}
	uid, present := data["uid"]
	if present && !goodUID(uid) || !present && !admin {
		return "", errRefused
	}
	expires, err := r.period(claims, false)
	if err != nil {
		return "", err
	}
	return describe(flags, expires, normal(data)), nil
}

func goodUID(v any) bool {
	uid, ok := v.(string)
	return ok && uid != "" && utf8.RuneCountInString(uid) < 256
}

func (r reference) issued(signed string, signature []byte, header, claims map[string]any) (string, error) {
	if claims["iss"] != r.issuer {
		return "", errRefused
	}
	aud, _ := claims["aud"].([]any)
	for _, one := range aud {
		if _, ok := one.(string); !ok && one != nil {
			return "", errRefused
		}
	}
	if claims["aud"] != r.audience && !slices.Contains(aud, any(r.audience)) {
		return "", errRefused
	}
	kid, _ := header["kid"].(string)
	if !slices.ContainsFunc(r.candidates(kid, header["alg"]), func(k crypto.PublicKey) bool { return authentic(k, signed, signature) }) {
		return "", errRefused
	}
	if !goodUID(claims["sub"]) {
		return "", errRefused
	}
	expires, err := r.period(claims, true)
	if err != nil {
		return "", err
	}
	auth := map[string]any{"uid": claims["sub"], "token": claims}
	if firebase, ok := claims["firebase"].(map[string]any); ok {
		if provider, ok := firebase["sign_in_provider"].(string); ok {
			auth["provider"] = provider
		}
	}
	return describe(nil, expires, normal(auth)), nil
}

// candidates returns the keys by id, and without one the only key for the
// algorithm.
func (r reference) candidates(kid string, alg any) []crypto.PublicKey {
	var list []crypto.PublicKey
	for id, k := range r.keys {
		if (kid == "" || kid == id) && algorithm(k) == alg {
			list = append(list, k)
		}
	}
	if kid == "" && len(list) > 1 {
		return nil
	}
	return list
}

func algorithm(k crypto.PublicKey) string {
	switch k.(type) {
	case *rsa.PublicKey:
		return "RS256"
	case *ecdsa.PublicKey:
		return "ES256"
	default:
		return "EdDSA"
	}
}

func authentic(k crypto.PublicKey, signed string, signature []byte) bool {
	digest := sha256.Sum256([]byte(signed))
	switch k := k.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(k, crypto.SHA256, digest[:], signature) == nil
	case *ecdsa.PublicKey:
		if len(signature) != 64 {
			return false
		}
		return ecdsa.Verify(k, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
	case ed25519.PublicKey:
		return ed25519.Verify(k, []byte(signed), signature)
	}
	return false
}

func (r reference) period(claims map[string]any, needed bool) (expires time.Time, err error) {
	limit := map[string]float64{"nbf": 60, "iat": 60, "exp": math.Inf(1)}
	now := float64(r.now.Unix())
	for _, name := range []string{"nbf", "iat", "exp"} {
		value, ok := claims[name]
		if !ok {
			continue
		}
		number, ok := value.(json.Number)
		at, err := number.Float64()
		if !ok || err != nil || math.Abs(at) > 1<<53 || at > now+limit[name] {
			return time.Time{}, errRefused
		}
		if name == "exp" {
			if at <= now {
				return time.Time{}, errLate
			}
			expires = time.Unix(int64(at), int64((at-math.Floor(at))*1e9))
		}
	}
	if needed && expires.IsZero() {
		return time.Time{}, errRefused
	}
	return expires, nil
}

// strictObject reads one object in which no key is repeated.
func strictObject(text []byte) (map[string]any, error) {
	if !json.Valid(text) || !utf8.Valid(text) {
		return nil, errRefused
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	value, err := strictValue(d)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errRefused
	}
	return object, nil
}

func strictValue(d *json.Decoder) (any, error) {
	next, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch next {
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			key := name.(string)
			if _, repeated := object[key]; repeated {
				return nil, errRefused
			}
			if object[key], err = strictValue(d); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := strictValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return next, nil
}

// normal is the text of a value in the form that nodes print in.
func normal(value any) string {
	text, err := json.Marshal(value)
	must(err)
	node, err := tree.DecodeClaims(text)
	if err != nil {
		return "beyond the limits of nodes"
	}
	return export(node)
}

func export(n tree.Node) string { return string(tree.AppendJSON(nil, n, tree.Export)) }

// describe is an identity in one line.
func describe(flags []string, expires time.Time, auth string) string {
	slices.Sort(flags)
	until := "never"
	if !expires.IsZero() {
		until = fmt.Sprint(expires.UnixNano())
	}
	return fmt.Sprintf("%v until %s, auth %s", flags, until, auth)
}
