package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/tree"
)

// FuzzToken looks for a token that is accepted though it should not be, in three
// ways: a text as it is, against the reference; a header and claims of any kind
// with a right signature, against the reference; and the same with one byte
// changed, which must never be accepted.
func FuzzToken(f *testing.F) {
	// RSA would be too slow; its keys take the same way as those of ES256.
	v := newVerifier(f, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("ed", edKey), webKey("ec", ecKey()))),
	}}})
	judge := reference{
		secrets: database.Secrets, issuer: issuer, audience: project, now: now,
		keys: map[string]crypto.PublicKey{"ed": edKey.Public(), "ec": ecKey().Public()},
	}
	for _, c := range tokenCases() {
		if text := c.token(); len(text) < 32<<10 { // long ones only slow it down
			f.Add(text, c.header, c.payload, uint(len(c.payload)), byte(1))
		}
	}
	f.Fuzz(func(t *testing.T, raw, header, payload string, at uint, flip byte) {
		agree(t, v, judge, raw)
		if id, err := v.Verify(t.Context(), raw, database); err == nil && raw != "" && !id.Operator && !isHonest(raw) {
			t.Fatalf("the token %q is accepted, which nobody signed", raw)
		}
		good := forge(header, payload, keyFor(header))
		agree(t, v, judge, good)
		changed := []byte(good)
		changed[at%uint(len(changed))] ^= flip
		if string(changed) == good {
			return
		}
		if id, err := v.Verify(t.Context(), string(changed), database); err == nil {
			t.Fatalf("the token %s is accepted as %s, but it was %s", changed, outcome(id, nil), good)
		}
	})
}

// isHonest reports whether a token is to the letter what the owner of the key
// would send. ES256 signs at random, so there it is left to the reference.
func isHonest(token string) bool {
	parts := strings.Split(token, ".")
	header, err := b64.DecodeString(parts[0])
	must(err)
	payload, err := b64.DecodeString(parts[1])
	must(err)
	k := keyFor(string(header))
	_, random := k.(*ecdsa.PrivateKey)
	return random || slices.ContainsFunc([]any{k, other}, func(k any) bool {
		return forge(string(header), string(payload), k) == token
	})
}

// keyFor returns the key of an honest signer for what a header says.
func keyFor(header string) any {
	var h struct{ Alg any }
	_ = json.Unmarshal([]byte(header), &h) // if it is no JSON, the secret will do
	switch h.Alg {
	case "EdDSA":
		return edKey
	case "ES256":
		return ecKey()
	default:
		return secret
	}
}

// agree fails if the verifier and the reference say different things. The
// verifier alone may refuse what a node cannot hold.
func agree(t *testing.T, v *auth.Verifier, judge reference, credential string) {
	t.Helper()
	if credential == "" || slices.Contains(database.Secrets, credential) {
		return
	}
	got, want := verify(v, credential), judge.judge(credential)
	if got == want || got == unparsed && beyondNodes(credential) {
		return
	}
	t.Errorf("the token %q\ngives   %s\nbut the reference says\n        %s", credential, got, want)
}

// beyondNodes reports whether header or claims cannot be nodes.
func beyondNodes(credential string) bool {
	for _, part := range strings.Split(credential, ".") {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return false
		}
		// The claims of an issuer are one level down in auth.
		if _, err := tree.DecodeClaims([]byte(`{"token":` + string(text) + `}`)); err != nil {
			return true
		}
	}
	return false
}

// TestReferenceIsStrict keeps the reference from agreeing for the wrong reason.
func TestReferenceIsStrict(t *testing.T) {
	t.Parallel()
	judge := reference{secrets: []string{secret}, now: now}
	good := forge(`{"alg":"HS256"}`, `{"v":0,"d":{"uid":"a"}}`, secret)
	if got := judge.judge(good); got != describe(nil, time.Time{}, `{"uid":"a"}`) {
		t.Errorf("the reference says %s to a good token", got)
	}
	for _, bad := range []string{good + "A", good[1:], forge(`{"alg":"HS256"}`, `{"v":0,"v":0,"d":{"uid":"a"}}`, secret)} {
		if got := judge.judge(bad); got != unparsed {
			t.Errorf("the reference says %s to %s", got, bad)
		}
	}
}
