package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
)

func TestNewRefusesWhatIsNotSafe(t *testing.T) {
	t.Parallel()
	keys := []byte(webKeys(webKey("ed", edKey)))
	audiences := []string{project}
	for name, issuers := range map[string][]auth.Issuer{
		"no URL":                          {{Audiences: audiences, Keys: keys}},
		"no audience":                     {{URL: issuer, Keys: keys}},
		"an empty audience":               {{URL: issuer, Audiences: []string{""}, Keys: keys}},
		"twice":                           {{URL: issuer, Audiences: audiences, Keys: keys}, {URL: issuer, Audiences: audiences, Keys: keys}},
		"no key set":                      {{URL: issuer, Audiences: audiences, Keys: []byte(`{"a":1}`)}},
		"no JSON":                         {{URL: issuer, Audiences: audiences, Keys: []byte(`x`)}},
		"empty keys":                      {{URL: issuer, Audiences: audiences, Keys: []byte{}}},
		"too many keys":                   {{URL: issuer, Audiences: audiences, Keys: []byte(webKeys(strings.Split(strings.Repeat("{} ", 100)+"{}", " ")...))}},
		"keys and a place":                {{URL: issuer, Audiences: audiences, Keys: keys, JWKS: "https://id.example.org/keys"}},
		"plain http":                      {{URL: "http://id.example.org", Audiences: audiences}},
		"plain http for keys":             {{URL: issuer, Audiences: audiences, JWKS: "http://id.example.org/keys"}},
		"plain http to an address":        {{URL: "http://10.0.0.1", Audiences: audiences}},
		"plain http to what looks local":  {{URL: "http://localhost.example.org", Audiences: audiences}},
		"plain http to a local user":      {{URL: "http://localhost@example.org", Audiences: audiences}},
		"a password":                      {{URL: "https://user:hunter2@id.example.org", Audiences: audiences}},
		"no host":                         {{URL: "https:///x", Audiences: audiences}},
		"no URL at all":                   {{URL: "accounts", Audiences: audiences}},
		"another scheme":                  {{URL: issuer, Audiences: audiences, JWKS: "ftp://id.example.org/keys"}},
		"another scheme, local":           {{URL: issuer, Audiences: audiences, JWKS: "ftp://localhost/keys"}},
		"a file that is not there":        {{URL: issuer, Audiences: audiences, JWKS: "file:///nonexistent/keys.json"}},
		"a file without an absolute path": {{URL: issuer, Audiences: audiences, JWKS: "file://keys.json"}},
	} {
		if _, err := auth.New(auth.Options{Issuers: issuers}); err == nil {
			t.Errorf("%s: New succeeds, want an error", name)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
	for name, i := range map[string]auth.Issuer{
		"https":              {URL: issuer, Audiences: audiences},
		"a slash at the end": {URL: issuer + "/", Audiences: audiences},
		"loopback":           {URL: "http://localhost:8080/realms/x", Audiences: audiences},
		"IPv4 loopback":      {URL: "http://127.0.0.1:8080", Audiences: audiences},
		"IPv6 loopback":      {URL: "http://[::1]:8080", Audiences: audiences},
		"keys elsewhere":     {URL: "any name", Audiences: audiences, JWKS: "https://id.example.org/keys"},
		"keys at hand":       {URL: "any name", Audiences: audiences, Keys: keys},
	} {
		if _, err := auth.New(auth.Options{Issuers: []auth.Issuer{i}}); err != nil {
			t.Errorf("%s: New fails: %v", name, err)
		}
	}
}

func TestRS256(t *testing.T) {
	t.Parallel()
	const rs = `{"alg":"RS256","typ":"JWT","kid":"rs"}`
	v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("rs", rsaKey(), `"use":"sig"`, `"alg":"RS256"`))),
	}}})
	accepted := until(time.Hour, issuedIs(issuedClaims()))
	stranger := newRSAKey()
	for _, test := range []tokenCase{
		{name: "a token", text: forge(rs, issuedClaims(), rsaKey()), want: accepted},
		{name: "an x5c that is no certificate", text: forge(`{"alg":"RS256","kid":"rs","x5c":["AAAA"]}`, issuedClaims(), rsaKey()), want: unparsed},
		{name: "jku of the issuer", text: forge(`{"alg":"RS256","kid":"rs","jku":"https://evil.example.com"}`, issuedClaims(), rsaKey()), want: accepted},
		{name: "a strange key", text: forge(rs, issuedClaims(), stranger), want: unparsed},
		{name: "a strange key that the token brings", text: forge(`{"alg":"RS256","kid":"rs","jwk":`+webKey("rs", stranger)+`}`, issuedClaims(), stranger), want: unparsed},
		{name: "another algorithm of the key", text: forge(`{"alg":"RS512","kid":"rs"}`, issuedClaims(), rsaKey()), want: unparsed},
		{name: "HS256 with the modulus", text: forge(`{"alg":"HS256","kid":"rs"}`, issuedClaims(), string(rsaKey().N.Bytes())), want: unparsed},
		{name: "HS256 with the key as published", text: forge(`{"alg":"HS256","kid":"rs"}`, issuedClaims(), webKey("rs", rsaKey())), want: unparsed},
		{name: "ES256 in the header", text: forge(`{"alg":"ES256","kid":"rs"}`, issuedClaims(), rsaKey()), want: unparsed},
		{name: "the digest as it is", text: forge(rs, issuedClaims(), nil) + b64.EncodeToString(make([]byte, 256)), want: unparsed},
	} {
		if got := verify(v, test.text); got != test.want {
			t.Errorf("%s: Verify = %s, want %s", test.name, got, test.want)
		}
	}
}

func TestAudienceOfADatabase(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{"livetree/{database}", "all"}, Keys: []byte(webKeys(webKey("ed", edKey))),
	}}})
	for _, test := range []struct {
		aud, database string
		want          bool
	}{
		{`"livetree/chat"`, "chat", true}, {`["livetree/shop","livetree/chat"]`, "chat", true}, {`"all"`, "chat", true}, {`"all"`, "", true},
		{`"livetree/chat"`, "shop", false}, {`"livetree/chat"`, "Chat", false}, {`"livetree/chat"`, "", false}, {`"livetree/"`, "", false},
		{`"livetree/{database}"`, "chat", false}, {`"livetree/"`, "chat", false}, {`"livetree/chat2"`, "chat", false},
	} {
		_, err := v.Verify(t.Context(), forge(ed, issuedClaims("aud", test.aud), edKey), auth.Database{Name: test.database})
		if (err == nil) != test.want {
			t.Errorf("a token for %s in the database %q: %v, want accepted: %t", test.aud, test.database, err, test.want)
		}
	}
}

func TestTwoIssuersKeepTheirKeysApart(t *testing.T) {
	t.Parallel()
	const second = "https://other.example.org"
	v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{
		{URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("ed", edKey)))},
		{URL: second, Audiences: []string{"second"}, Keys: []byte(webKeys(webKey("ed", strangeKey)))},
	}})
	for _, test := range []struct {
		iss, aud string
		key      any
		want     bool
	}{
		{issuer, project, edKey, true}, {second, "second", strangeKey, true},
		{issuer, project, strangeKey, false}, {second, "second", edKey, false},
		{issuer, "second", edKey, false}, {second, project, strangeKey, false},
	} {
		text := forge(ed, issuedClaims("iss", quote(test.iss), "aud", quote(test.aud)), test.key)
		if got := verify(v, text) != unparsed; got != test.want {
			t.Errorf("a token of %s for %s is accepted: %t, want %t", test.iss, test.aud, got, test.want)
		}
	}
}

// TestKeysThatAreForSomethingElse puts each odd key beside a good one: it must
// not be used, and not be in the way.
func TestKeysThatAreForSomethingElse(t *testing.T) {
	t.Parallel()
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	must(err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(err)
	point, err := p384.PublicKey.Bytes()
	must(err)
	for name, test := range map[string]struct{ key, token string }{
		"for encryption":        {webKey("odd", edKey, `"use":"enc"`), forge(`{"alg":"EdDSA","kid":"odd"}`, issuedClaims(), edKey)},
		"for another algorithm": {webKey("odd", rsaKey(), `"alg":"RS512"`), forge(`{"alg":"RS256","kid":"odd"}`, issuedClaims(), rsaKey())},
		"private":               {webKey("odd", edKey, `"d":"`+b64.EncodeToString(edKey.Seed())+`"`), forge(`{"alg":"EdDSA","kid":"odd"}`, issuedClaims(), edKey)},
		"symmetric":             {`{"kty":"oct","kid":"odd","k":"` + b64.EncodeToString([]byte("symmetric")) + `"}`, forge(`{"alg":"HS256","kid":"odd"}`, issuedClaims(), "symmetric")},
		"symmetric, d":          {`{"kty":"oct","kid":"odd","k":"` + b64.EncodeToString([]byte("symmetric")) + `"}`, forge(`{"alg":"HS256","kid":"odd"}`, ann, "symmetric")},
		"weak":                  {webKey("odd", weak), forge(`{"alg":"RS256","kid":"odd"}`, issuedClaims(), weak)},
		"on another curve": {`{"kty":"EC","crv":"P-384","kid":"odd","x":"` + b64.EncodeToString(point[1:49]) + `","y":"` + b64.EncodeToString(point[49:]) + `"}`,
			forge(`{"alg":"ES256","kid":"odd"}`, issuedClaims(), ecKey())},
		"off its curve": {`{"kty":"EC","crv":"P-256","kid":"odd","x":"` + b64.EncodeToString(make([]byte, 32)) + `","y":"` + b64.EncodeToString(make([]byte, 32)) + `"}`,
			forge(`{"alg":"ES256","kid":"odd"}`, issuedClaims(), ecKey())},
		"of an unknown type": {`{"kty":"AKP","kid":"odd"}`, forge(`{"alg":"EdDSA","kid":"odd"}`, issuedClaims(), edKey)},
		"no object":          {`7`, forge(`{"alg":"EdDSA","kid":"odd"}`, issuedClaims(), edKey)},
	} {
		v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{{
			URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(test.key, webKey("ed", strangeKey))),
		}}})
		if got := verify(v, test.token); got != unparsed {
			t.Errorf("a key that is %s is used: %s", name, got)
		}
		if got := verify(v, forge(ed, issuedClaims(), strangeKey)); got == unparsed {
			t.Errorf("a key that is %s spoils the one beside it", name)
		}
	}
}

func TestKeyIDs(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{project},
		Keys: []byte(webKeys(webKey("a", edKey), webKey("b", strangeKey), webKey("b", ecKey()), webKey("", rsaKey()))),
	}}})
	for _, test := range []struct {
		header string
		key    any
		want   bool
	}{
		{`{"alg":"EdDSA","kid":"a"}`, edKey, true}, {`{"alg":"EdDSA","kid":"b"}`, strangeKey, true}, {`{"alg":"ES256","kid":"b"}`, ecKey(), true},
		{`{"alg":"ES256"}`, ecKey(), true}, {`{"alg":"RS256"}`, rsaKey(), true}, {`{"alg":"RS256","kid":""}`, rsaKey(), true},
		{`{"alg":"EdDSA"}`, edKey, false}, // there are two
		{`{"alg":"EdDSA","kid":"b"}`, edKey, false}, {`{"alg":"EdDSA","kid":"a"}`, strangeKey, false}, {`{"alg":"RS256","kid":"c"}`, rsaKey(), false},
	} {
		if got := verify(v, forge(test.header, issuedClaims(), test.key)) != unparsed; got != test.want {
			t.Errorf("a token with the header %s is accepted: %t, want %t", test.header, got, test.want)
		}
	}
}

func TestKeysInAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(webKeys(webKey("one", edKey)))
	clock := now
	v := newVerifier(t, auth.Options{
		Now:     func() time.Time { return clock },
		Issuers: []auth.Issuer{{URL: "the intranet", Audiences: []string{project}, JWKS: "file://" + path}},
	})
	claims := issuedClaims("iss", `"the intranet"`)
	one, two := forge(`{"alg":"EdDSA","kid":"one"}`, claims, edKey), forge(`{"alg":"EdDSA","kid":"two"}`, claims, strangeKey)
	check := func(when string, oneWant, twoWant bool) {
		t.Helper()
		if verify(v, one) != unparsed != oneWant || verify(v, two) != unparsed != twoWant {
			t.Errorf("%s: one gives %s, two gives %s", when, verify(v, one), verify(v, two))
		}
	}
	check("at first", true, false)
	write(webKeys(webKey("two", strangeKey)))
	clock = clock.Add(time.Minute)
	check("after a minute", false, true)
	write(strings.Repeat(" ", 1<<20))
	clock = clock.Add(time.Minute)
	check("after the file was spoilt", false, true)
	must(os.Remove(path))
	clock = clock.Add(time.Minute)
	check("after the file is gone", false, true)
}
