package auth_test

import (
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
)

func TestFailuresAreCountedByReason(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	v, err := auth.New(auth.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	mint := func(secret string, c auth.Claims) string {
		t.Helper()
		token, err := auth.Mint(secret, c)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	data := map[string]any{"uid": "ann"}
	database := auth.Database{Name: "db", Secrets: []string{"the-secret-of-the-database"}}
	credentials := map[string]string{
		"":          mint(database.Secrets[0], auth.Claims{Data: data}),
		"expired":   mint(database.Secrets[0], auth.Claims{Data: data, Expires: now.Add(-time.Second)}),
		"too_soon":  mint(database.Secrets[0], auth.Claims{Data: data, NotBefore: now.Add(time.Hour)}),
		"signature": mint("another-secret", auth.Claims{Data: data}),
		"malformed": "neither",
	}
	for _, credential := range credentials {
		_, _ = v.Verify(t.Context(), credential, database)
	}
	for reason, n := range v.Failures() {
		want := uint64(0)
		if _, ok := credentials[reason]; ok {
			want = 1
		}
		if n != want {
			t.Errorf("%d credentials were refused for %s, want %d", n, reason, want)
		}
	}
}
