package auth_test

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
)

// A tokenCase is a token and what should become of it. The token is text, or
// header and payload, signed by whom the header calls for.
type tokenCase struct {
	name            string
	header, payload string
	text            string
	want            string
}

func (c tokenCase) token() string {
	if c.text != "" {
		return c.text
	}
	return forge(c.header, c.payload, keyFor(c.header))
}

// Headers and claims of good tokens.
const (
	hs     = `{"typ":"JWT","alg":"HS256"}`
	ed     = `{"alg":"EdDSA","kid":"ed"}`
	ec     = `{"alg":"ES256","kid":"ec","typ":"at+jwt"}`
	ann    = `{"v":0,"d":{"uid":"ann"}}`
	annIs  = `{"uid":"ann"}`
	signed = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJ2IjowLCJkIjp7InVpZCI6ImFubiJ9fQ"
)

// legacyClaims are ann's with more members.
func legacyClaims(members ...string) string {
	return object(append([]string{"v", "0", "d", annIs}, members...)...)
}

// issuedClaims are those of a token of the issuer, with more members, which take
// the place of the ordinary ones.
func issuedClaims(members ...string) string {
	ordinary := []string{"iss", quote(issuer), "aud", quote(project), "sub", `"ann"`, "exp", seconds(time.Hour)}
	var all []string
	for i := 0; i < len(ordinary); i += 2 {
		if !replaced(members, ordinary[i]) {
			all = append(all, ordinary[i:i+2]...)
		}
	}
	for i := 0; i < len(members); i += 2 {
		if members[i+1] != "" {
			all = append(all, members[i:i+2]...)
		}
	}
	return object(all...)
}

func replaced(members []string, name string) bool {
	for i := 0; i < len(members); i += 2 {
		if members[i] == name {
			return true
		}
	}
	return false
}

// is is the outcome of a token that is accepted.
func is(auth string, flags ...string) string { return describe(flags, time.Time{}, auth) }

// until is the same for one that expires d from now.
func until(d time.Duration, auth string, flags ...string) string {
	return describe(flags, now.Add(d), auth)
}

// issuedIs is the variable auth for claims of the issuer.
func issuedIs(claims string) string {
	return normal(mustObject(`{"uid":"ann","token":` + claims + `}`))
}

func mustObject(text string) map[string]any {
	object, err := strictObject([]byte(text))
	must(err)
	return object
}

func tokenCases() []tokenCase {
	var all []tokenCase
	for _, group := range [][]tokenCase{
		acceptedCases(), spellingCases(), headerCases(), keyCases(), timeCases(), legacyCases(), issuedCases(),
	} {
		all = append(all, group...)
	}
	return all
}

func acceptedCases() []tokenCase {
	role := `{"uid":"ann","https://example.org/role":"editor",".sv":"timestamp","a/b":[true,null,{"$":1.5}]}`
	custom := issuedClaims("admin", "true", "debug", "true", "simulate", "true", "v", "0", "d", `{"uid":"root"}`,
		"https://example.org/role", `"editor"`)
	firebase := issuedClaims("firebase", `{"sign_in_provider":"pass\"word","identities":{"email":["ann@example.org"]}}`)
	return []tokenCase{
		{"a token", hs, ann, "", is(annIs)},
		{"a token of another generator", `{"alg":"HS256"}`, legacyClaims("iat", seconds(0)), "", is(annIs)},
		{"a token with all flags", hs, legacyClaims("admin", "true", "debug", "true", "simulate", "true"), "",
			is(annIs, "admin", "debug", "simulate")},
		{"a token with flags that are off", hs, legacyClaims("admin", "false", "debug", "false", "simulate", "false"), "", is(annIs)},
		{"an admin without uid", hs, `{"v":0,"admin":true,"d":{"x":1}}`, "", is(`{"x":1}`, "admin")},
		{"an admin without d", hs, `{"v":0,"admin":true}`, "", is("null", "admin")},
		{"keys that are no child names", hs, `{"v":0,"d":` + role + `}`, "", is(normal(mustObject(role)))},
		{"white space", " {\n\"alg\" : \"HS256\" } ", " {\t\"v\" : 0 , \"admin\" : true ,\r\n\"exp\" : " + seconds(time.Hour) + "\n, \"d\" : {} } ", "",
			until(time.Hour, "null", "admin")},
		{"escapes", `{"\u0061lg":"\u0048S256"}`, `{"v":0,"\u0064":{"\u0075id":"\u0061nn"}}`, "", is(annIs)},
		{"unknown claims", hs, legacyClaims("admin ", "true", "Admin", "true", "jti", `{"x":[]}`, "aud", `"elsewhere"`), "", is(annIs)},
		{"v spelt at length", hs, `{"v":0.0e1,"d":{"uid":"ann"}}`, "", is(annIs)},

		{"EdDSA", ed, issuedClaims(), "", until(time.Hour, issuedIs(issuedClaims()))},
		{"ES256", ec, issuedClaims(), "", until(time.Hour, issuedIs(issuedClaims()))},
		{"no key id, but only one key for the algorithm", `{"alg":"EdDSA"}`, issuedClaims(), "", until(time.Hour, issuedIs(issuedClaims()))},
		{"several audiences", ed, issuedClaims("aud", `["x","`+project+`"]`), "",
			until(time.Hour, issuedIs(issuedClaims("aud", `["x","`+project+`"]`)))},
		{"an issuer makes nobody an administrator", ed, custom, "", until(time.Hour, issuedIs(custom))},
		{"a provider", ed, firebase, "", until(time.Hour,
			normal(mustObject(`{"uid":"ann","provider":"pass\"word","token":`+firebase+`}`)))},
		{"a provider that is none", ed, issuedClaims("firebase", `{"sign_in_provider":7}`), "",
			until(time.Hour, issuedIs(issuedClaims("firebase", `{"sign_in_provider":7}`)))},
	}
}

// spellingCases are texts that are almost a token.
func spellingCases() []tokenCase {
	good := forge(hs, ann, secret)
	mac := good[len(signed)+1:]
	// The last character of a SHA-256 stands for two bits that must be zero.
	respelt := good[:len(good)-1] + string(rune(good[len(good)-1])+1)
	padded := b64.EncodeToString([]byte(hs)) + "==." + strings.Split(good, ".")[1] + "." + mac
	var cases []tokenCase
	for name, text := range map[string]string{
		"no dot": "x", "one dot": "x.y", "dots alone": "..", "three dots": good + ".", "five parts": good + ".x.y",
		"no signature": signed + ".", "no dot and no signature": signed, "no header": good[strings.Index(good, "."):],
		"no claims": strings.Split(good, ".")[0] + ".." + mac, "space before": " " + good, "space behind": good + " ",
		"line end behind": good + "\n", "line end inside": good[:10] + "\r\n" + good[10:], "line end in the signature": good[:len(good)-5] + "\n" + good[len(good)-5:],
		"another spelling of the signature": respelt, "padding": good + "=", "padding of the header": padded,
		"standard base64": strings.NewReplacer("-", "+", "_", "/").Replace(forge(hs, `{"v":0,"d":{"uid":"ÿÿÿ>>>???"}}`, secret)),
		"short signature": good[:len(good)-2], "long signature": good + "AA", "another signature": signed + "." + strings.Repeat("A", 43),
		"signature of the claims of somebody else": strings.Split(forge(hs, `{"v":0,"d":{"uid":"eve"}}`, secret), ".")[0] + "." +
			strings.Split(forge(hs, `{"v":0,"d":{"uid":"eve"}}`, secret), ".")[1] + "." + mac,
		"in quotes": `"` + good + `"`, "NUL behind": good + "\x00", "the JSON form": `{"payload":"` + strings.Split(good, ".")[1] + `"}`,
		"Bearer": "Bearer " + good, "not base64": "!!!.???.***", "an encrypted token": forge(`{"alg":"dir","enc":"A128GCM"}`, ann, secret) + ".x.y",
		"1 MiB":             forge(hs, legacyClaims("x", quote(strings.Repeat("x", 1<<20))), secret),
		"a little too long": forge(hs, legacyClaims("x", quote(strings.Repeat("x", 8<<10))), secret),
		"a million dots":    strings.Repeat(".", 1<<20), "the emulator's": forge(`{"alg":"none"}`, ann, nil),
	} {
		cases = append(cases, tokenCase{name: name, text: text, want: unparsed})
	}
	return cases
}

// headerCases are what a header may try, over claims that are good.
func headerCases() []tokenCase {
	var cases []tokenCase
	for _, header := range []string{
		`{}`, `null`, `[]`, `"HS256"`, ``, `{`, `{"alg":"HS256"}{}`, `{"alg":"HS256"} x`, `{"typ":"JWT"}`,
		`{"alg":"none"}`, `{"alg":"None"}`, `{"alg":"NONE"}`, `{"alg":"nOnE"}`, `{"alg":""}`, `{"alg":null}`, `{"alg":0}`,
		`{"alg":["HS256"]}`, `{"alg":"hs256"}`, `{"alg":"HS256 "}`, `{"alg":" HS256"}`, `{"alg":"HS256\u0000"}`, `{"Alg":"HS256"}`,
		`{"alg":"HS384"}`, `{"alg":"HS512"}`, `{"alg":"RS384"}`, `{"alg":"PS256"}`, `{"alg":"ES256K"}`, `{"alg":"Ed25519"}`, `{"alg":"dir"}`,
		`{"alg":"RS256"}`, `{"alg":"RS256","kid":"ed"}`,
		`{"alg":"HS256","alg":"HS256"}`, `{"alg":"none","alg":"HS256"}`, `{"alg":"HS256","\u0061lg":"none"}`, `{"alg":"HS256","x":{"a":1,"a":1}}`,
		`{"alg":"HS256","typ":"logout+jwt"}`, `{"alg":"HS256","typ":""}`, `{"alg":"HS256","typ":null}`, `{"alg":"HS256","typ":["JWT"]}`,
		`{"alg":"HS256","crit":["exp"]}`, `{"alg":"HS256","crit":[]}`, `{"alg":"HS256","crit":null}`, `{"alg":"HS256","b64":false}`,
		`{"alg":"HS256","b64":true}`, `{"alg":"HS256","b64":false,"crit":["b64"]}`, `{"alg":"HS256","kid":7}`, `{"alg":"HS256","kid":null}`,
		`{"alg":"HS256","x":"` + "\xff" + `"}`, `{"alg":"HS256","x":"\ud800"}`, `{"alg":"HS256",}`, `{'alg':'HS256'}`,
	} {
		cases = append(cases, tokenCase{name: "header " + header, header: header, payload: ann, want: unparsed})
	}
	for _, header := range []string{
		`{"alg":"EdDSA","kid":"ed","typ":"logout+jwt"}`, `{"alg":"EdDSA","kid":"ed","typ":"dpop+jwt"}`, `{"alg":"EdDSA","kid":"ed","crit":["x"],"x":1}`,
		`{"alg":"EdDSA","kid":"ec"}`, `{"alg":"ES256","kid":"ed"}`, `{"alg":"EdDSA","kid":"ED"}`, `{"alg":"EdDSA","kid":"ed "}`,
		`{"alg":"EdDSA","kid":"../../../../dev/null"}`, `{"alg":"EdDSA","kid":"x' UNION SELECT 'key"}`, `{"alg":"EdDSA","kid":"ed\u0000"}`,
		`{"alg":"EdDSA","kid":["ed"]}`, `{"alg":"EdDSA","kid":"ed","kid":"ed"}`, `{"alg":"HS256","kid":"ed"}`, `{"alg":"RS256","kid":"ed"}`,
	} {
		cases = append(cases, tokenCase{name: "header " + header, header: header, payload: issuedClaims(), want: unparsed})
	}
	return cases
}

// keyCases are tokens signed with a key that is not one for them.
func keyCases() []tokenCase {
	public := edKey.Public()
	der, err := x509.MarshalPKIXPublicKey(public)
	must(err)
	pemText := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	strange := webKey("ed", strangeKey)
	cases := []tokenCase{
		{name: "another secret", text: forge(hs, ann, "VN8bMrtLvbjTWwPRbpsbSsUfnMBKmz7DLZ9s0Qkw")},
		{name: "a part of the secret", text: forge(hs, ann, secret[:39])},
		{name: "the secret and a space", text: forge(hs, ann, secret+" ")},
		{name: "the secret and a line end", text: forge(hs, ann, secret+"\n")},
		{name: "the secret in lower case", text: forge(hs, ann, strings.ToLower(secret))},
		{name: "the empty secret", text: forge(hs, ann, "")},
		{name: "a zero byte for a secret", text: forge(hs, ann, "\x00")},
		{name: "an HMAC with the public key", text: forge(`{"alg":"HS256","kid":"ed"}`, issuedClaims(), string(edPublic()))},
		{name: "an HMAC with the public key in PEM", text: forge(`{"alg":"HS256","kid":"ed"}`, issuedClaims(), pemText)},
		{name: "an HMAC with the public key as it is published", text: forge(hs, ann, webKey("ed", edKey))},
		{name: "an HMAC in the name of EdDSA", text: forge(ed, issuedClaims(), string(edPublic()))},
		{name: "an HMAC with the secret in the name of EdDSA", text: forge(ed, issuedClaims(), secret)},
		{name: "an issuer's key in the name of HS256", text: forge(hs, ann, edKey)},
		{name: "a strange key", text: forge(ed, issuedClaims(), strangeKey)},
		{name: "the issuer's key under the id of another", text: forge(`{"alg":"ES256","kid":"ec"}`, issuedClaims(), edKey)},
		{name: "no signature", text: forge(ed, issuedClaims(), nil)},
		{name: "r and s of zero", text: zeroSignature(ec, issuedClaims())},
		{name: "its own key in jwk", text: forge(`{"alg":"EdDSA","kid":"ed","jwk":`+strange+`}`, issuedClaims(), strangeKey)},
		{name: "its own key in jwk, without an id", text: forge(`{"alg":"EdDSA","jwk":`+strange+`}`, issuedClaims(), strangeKey)},
		{name: "a symmetric key in jwk", text: forge(`{"alg":"HS256","jwk":{"kty":"oct","k":"AAAA"}}`, ann, "\x00\x00\x00")},
	}
	for _, place := range []string{"jku", "x5u"} {
		header := `{"alg":"EdDSA","kid":"evil","` + place + `":"https://evil.example.com/keys.json"}`
		cases = append(cases, tokenCase{name: "keys elsewhere, in " + place, text: forge(header, issuedClaims(), strangeKey)})
	}
	for i := range cases {
		cases[i].want = unparsed
	}
	return cases
}

func edPublic() []byte { return edKey[32:] }

func zeroSignature(header, payload string) string {
	return forge(header, payload, nil) + b64.EncodeToString(make([]byte, 64))
}

func timeCases() []tokenCase {
	skew := time.Minute
	cases := []tokenCase{
		{"exp a second ahead", hs, legacyClaims("exp", seconds(time.Second)), "", until(time.Second, annIs)},
		{"exp a fraction ahead", hs, legacyClaims("exp", seconds(0)+".25"), "", until(time.Second/4, annIs)},
		{"exp now", hs, legacyClaims("exp", seconds(0)), "", expired},
		{"exp a second ago", hs, legacyClaims("exp", seconds(-time.Second)), "", expired},
		{"exp zero", hs, legacyClaims("exp", "0"), "", expired},
		{"exp before 1970", hs, legacyClaims("exp", "-1.5"), "", expired},
		{"exp in milliseconds", hs, legacyClaims("exp", seconds(time.Hour)+"000"), "",
			describe(nil, time.Unix(now.Add(time.Hour).Unix()*1000, 0), annIs)},
		{"an admin expires", hs, legacyClaims("exp", seconds(0), "admin", "true"), "", expired},
		{"nbf a minute ahead", hs, legacyClaims("nbf", seconds(skew)), "", is(annIs)},
		{"iat a minute ahead", hs, legacyClaims("iat", seconds(skew)), "", is(annIs)},
		{"nbf more than a minute ahead", hs, legacyClaims("nbf", seconds(skew+time.Second)), "", unparsed},
		{"nbf a little more than a minute ahead", hs, legacyClaims("nbf", seconds(skew)+".5"), "", unparsed},
		{"iat more than a minute ahead", hs, legacyClaims("iat", seconds(skew+time.Second)), "", unparsed},
		{"issued: exp now", ed, issuedClaims("exp", seconds(0)), "", expired},
		{"issued: exp a second ago", ed, issuedClaims("exp", seconds(-time.Second)), "", expired},
		{"issued: no exp", ed, issuedClaims("exp", ""), "", unparsed},
		{"issued: exp is null", ed, issuedClaims("exp", "null"), "", unparsed},
		{"issued: nbf ahead", ed, issuedClaims("nbf", seconds(skew+time.Second)), "", unparsed},
		{"issued: iat ahead", ed, issuedClaims("iat", seconds(skew+time.Second)), "", unparsed},
		{"an expired token that nobody signed", "", "", forge(hs, legacyClaims("exp", "1"), other+"x"), unparsed},
	}
	for _, name := range []string{"exp", "nbf", "iat"} {
		for _, value := range []string{`"` + seconds(time.Hour) + `"`, "null", "true", "{}", "[]", "[1]", "1e300", "-1e300", "1e999", "9007199254740994", "NaN", "Infinity", "01", "0x7fffffff"} {
			cases = append(cases, tokenCase{name: name + " is " + value, header: hs, payload: legacyClaims(name, value), want: unparsed})
		}
	}
	return cases
}

func legacyCases() []tokenCase {
	var cases []tokenCase
	for _, payload := range []string{
		``, `null`, `[]`, `{}`, `"x"`, `7`, `{"v":0}`, `{"d":{"uid":"ann"}}`, `{"v":1,"d":{"uid":"ann"}}`, `{"v":"0","d":{"uid":"ann"}}`,
		`{"v":null,"d":{"uid":"ann"}}`, `{"v":false,"d":{"uid":"ann"}}`, `{"v":0.1,"d":{"uid":"ann"}}`, `{"v":[],"d":{"uid":"ann"}}`,
		`{"v":0,"d":null}`, `{"v":0,"d":null,"admin":true}`, `{"v":0,"d":[],"admin":true}`, `{"v":0,"d":"ann","admin":true}`,
		`{"v":0,"d":{}}`, `{"v":0,"d":{"uid":null}}`, `{"v":0,"d":{"uid":7}}`, `{"v":0,"d":{"uid":["ann"]}}`, `{"v":0,"d":{"uid":""}}`,
		`{"v":0,"d":{"uid":true},"admin":true}`, `{"v":0,"d":{"UID":"ann"}}`, `{"v":0,"uid":"ann"}`, `{"v":0,"d":{"d":{"uid":"ann"}}}`,
		`{"v":0,"d":{"uid":` + quote(strings.Repeat("u", 256)) + `}}`,
		// claims twice
		`{"v":0,"d":{"uid":"ann"},"d":{"uid":"ann"}}`, `{"v":0,"d":{"uid":"ann"},"\u0064":{"uid":"eve"}}`, `{"v":0,"v":0,"d":{"uid":"ann"}}`,
		`{"v":0,"d":{"uid":"ann","uid":"eve"}}`, `{"v":0,"d":{"uid":"ann","x":{"y":1,"y":1}}}`, `{"v":0,"d":{"uid":"ann"},"exp":9e9,"exp":9e9}`,
		`{"v":0,"d":{"uid":"ann"},"admin":false,"admin":true}`, `{"v":0,"d":{"uid":"ann"},"x":{},"x":{}}`, `{"v":0,"d":{"uid":"ann","":1,"":2}}`,
		// not JSON
		ann + "x", ann + ann, `{"v":0,"d":{"uid":"ann"},}`, `{"v":0,"d":{"uid":"` + "\xff" + `"}}`, `{"v":0,"d":{"uid":"\udfff"}}`, `{"v":0,"d":{"uid":"ann"}`,
		"\ufeff" + ann, `{"v":0,"d":{"uid":"ann"},"x":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`,
		// neither yes nor no
		legacyClaims("admin", `"true"`), legacyClaims("admin", "1"), legacyClaims("admin", "null"), legacyClaims("admin", "{}"), legacyClaims("admin", "[true]"),
		legacyClaims("debug", `"false"`), legacyClaims("debug", "0"), legacyClaims("simulate", `""`), legacyClaims("simulate", "null"),
		// an issuer's claims do not do
		issuedClaims(),
	} {
		cases = append(cases, tokenCase{name: "claims " + payload, header: hs, payload: payload, want: unparsed})
	}
	long := `{"uid":` + quote(strings.Repeat("ü", 255)) + `}`
	return append(cases, tokenCase{name: "the longest uid", header: hs, payload: `{"v":0,"d":` + long + `}`, want: is(long)})
}

func issuedCases() []tokenCase {
	var cases []tokenCase
	for _, payload := range []string{
		issuedClaims("iss", ""), issuedClaims("iss", "null"), issuedClaims("iss", `""`), issuedClaims("iss", quote(issuer+"/")), issuedClaims("iss", quote(strings.ToUpper(issuer))),
		issuedClaims("iss", quote(issuer+"#x")), issuedClaims("iss", `["`+issuer+`"]`), issuedClaims("iss", `"https://evil.example.com"`), issuedClaims("iss", `{}`),
		issuedClaims("aud", ""), issuedClaims("aud", "null"), issuedClaims("aud", `""`), issuedClaims("aud", `[]`), issuedClaims("aud", `[""]`), issuedClaims("aud", `"*"`),
		issuedClaims("aud", `"`+project+`2"`), issuedClaims("aud", `"`+project+` "`), issuedClaims("aud", `["`+project+`",7]`), issuedClaims("aud", `{"0":"`+project+`"}`), issuedClaims("aud", `[["`+project+`"]]`),
		issuedClaims("sub", ""), issuedClaims("sub", "null"), issuedClaims("sub", `""`), issuedClaims("sub", "7"), issuedClaims("sub", `["ann"]`), issuedClaims("sub", quote(strings.Repeat("u", 256))),
		strings.Replace(issuedClaims(), `"sub":`, `"sub":"eve","sub":`, 1), strings.Replace(issuedClaims(), `"exp":`, `"exp":1,"exp":`, 1),
		strings.Replace(issuedClaims(), `"aud":`, `"aud":"x","aud":`, 1), strings.Replace(issuedClaims(), `"iss":`, `"iss":"x","\u0069ss":`, 1),
		issuedClaims("x", strings.Repeat("[", 31)+"1"+strings.Repeat("]", 31)), ann, `{}`, `null`,
	} {
		cases = append(cases, tokenCase{name: "issued " + payload, header: ed, payload: payload, want: unparsed})
	}
	return cases
}

func TestTokens(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("ed", edKey), webKey("ec", ecKey()))),
	}}})
	judge := reference{
		secrets: database.Secrets, issuer: issuer, audience: project, now: now,
		keys: map[string]crypto.PublicKey{"ed": edKey.Public(), "ec": ecKey().Public()},
	}
	for _, c := range tokenCases() {
		text := c.token()
		if got := verify(v, text); got != c.want {
			t.Errorf("%.100s: Verify = %s, want %s", c.name, got, c.want)
		}
		agree(t, v, judge, text)
	}
}

// TestChangedTokens changes every character of tokens into others, and takes each
// one away.
func TestChangedTokens(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("ed", edKey))),
	}}})
	for good, alphabet := range map[string]string{
		forge(hs, ann, secret):                          "ABCDQabc089-_.=\n",
		forge(`{"alg":"EdDSA"}`, issuedClaims(), edKey): "A_5", // it takes longer
	} {
		if got := verify(v, good); got == unparsed {
			t.Fatalf("Verify(%s) = %s", good, got)
		}
		for i := range good {
			changed := []string{good[:i] + good[i+1:]}
			for j := range alphabet {
				changed = append(changed, good[:i]+alphabet[j:j+1]+good[i+1:])
			}
			for _, text := range changed {
				if text != good && verify(v, text) != unparsed {
					t.Errorf("Verify accepts %s, changed at %d from %s", text, i, good)
				}
			}
		}
	}
}
