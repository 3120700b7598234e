package auth_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
)

func TestInspect(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	secrets := []string{"the-secret-of-the-database"}
	mint := func(secret string, c auth.Claims) string {
		t.Helper()
		token, err := auth.Mint(secret, c)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	ann := map[string]any{"uid": "ann"}
	good := mint(secrets[0], auth.Claims{Data: ann, Expires: now.Add(time.Hour)})
	parts := strings.Split(good, ".")
	for _, test := range []struct {
		name, token, signature string
		secrets                []string
		problems               []string
	}{
		{"good", good, "matches", secrets, []string{}},
		{"without a secret", good, "unchecked", nil, []string{}},
		{"of another secret", good, "differs", []string{"another"}, []string{"the signature of the token does not match"}},
		{"old, and of another", mint("another", auth.Claims{Data: ann, Expires: now.Add(-time.Hour)}), "differs", secrets,
			[]string{"the signature of the token does not match", "the token has expired"}},
		{"changed", parts[0] + "." + parts[1] + "x." + parts[2], "unchecked", secrets, []string{"neither an app secret of the database nor a token"}},
		{"no token", "word", "unchecked", secrets, []string{"a token has three parts with dots between them"}},
	} {
		got := auth.Inspect(test.token, now, test.secrets)
		if got.Signature != test.signature || !slices.Equal(got.Problems, test.problems) {
			t.Errorf("%s: the signature %s, the problems %q; want %s and %q", test.name, got.Signature, got.Problems, test.signature, test.problems)
		}
		for _, problem := range got.Problems {
			for _, part := range strings.Split(test.token, ".") {
				if strings.Contains(problem, part) {
					t.Errorf("%s: the problem %q shows a part of the token", test.name, problem)
				}
			}
		}
	}
	if got := auth.Inspect(good, now, nil); !strings.Contains(string(got.Claims), `"ann"`) || !got.Expires.Equal(now.Add(time.Hour)) {
		t.Errorf("the claims are %s, the expiry %v", got.Claims, got.Expires)
	}
}
