package auth_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

func unsignedToken(header, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(claims)) + "."
}

func TestUnsigned(t *testing.T) {
	t.Parallel()
	const header = `{"alg":"none","type":"JWT"}`
	// As createMockUserToken of the JS SDK makes it.
	token := unsignedToken(header, `{"iss":"https://securetoken.google.com/demo","aud":"demo","iat":0,"exp":3600,"auth_time":0,`+
		`"sub":"alice","user_id":"alice","firebase":{"sign_in_provider":"custom","identities":{}},"admin":true}`)
	id, err := auth.Unsigned(token)
	if err != nil {
		t.Fatal(err)
	}
	if id.Admin || id.Operator || !id.Expires.IsZero() || id.Basis != "" {
		t.Errorf("an unsigned token makes %+v, want no administrator, and no end", id)
	}
	for path, want := range map[string]string{"/uid": `"alice"`, "/provider": `"custom"`, "/token/admin": `true`, "/token/exp": `3600`} {
		p, err := tree.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(tree.AppendJSON(nil, id.Auth.At(p), tree.Plain)); got != want {
			t.Errorf("auth%s is %s, want %s", path, got, want)
		}
	}
	if !auth.IsUnsigned(token) || auth.IsUnsigned("a.b.c") || auth.IsUnsigned("owner") || auth.IsUnsigned("a.") {
		t.Error("IsUnsigned does not tell tokens apart")
	}
	for _, text := range []string{
		"", "owner", "..", "a.b.", "a.b.c", "a.b", token + "x", token + ".", strings.TrimSuffix(token, "."),
		unsignedToken(`{"alg":"HS256"}`, `{"sub":"a"}`), unsignedToken(`{}`, `{"sub":"a"}`), unsignedToken(`[]`, `{"sub":"a"}`),
		unsignedToken(header, `{}`), unsignedToken(header, `{"sub":""}`), unsignedToken(header, `{"sub":7}`), unsignedToken(header, `7`),
		unsignedToken(header, `{"sub":"a","x":"`+strings.Repeat("x", 9000)+`"}`),
	} {
		if id, err := auth.Unsigned(text); fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("Unsigned(%.60s) = %+v, %v, want an unauthenticated fault", text, id, err)
		}
	}
}
