package auth_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{})
	for credential, want := range map[string]string{
		secret:                             is("null", "admin", "operator"),
		other:                              is("null", "admin", "operator"),
		"":                                 is("null"),
		secret[:39]:                        unparsed,
		secret + secret[39:]:               unparsed,
		secret + " ":                       unparsed,
		" " + secret:                       unparsed,
		secret + "\n":                      unparsed,
		secret + "\n" + other:              unparsed,
		secret + "\x00":                    unparsed,
		strings.ToLower(secret):            unparsed,
		"\x00":                             unparsed,
		"owner":                            unparsed,
		"null":                             unparsed,
		strings.Repeat("a", 40):            unparsed,
		strings.Repeat("a", 1<<20):         unparsed,
		"Bearer " + secret:                 unparsed,
		secret[:20] + "." + secret[20:]:    unparsed,
		forge(hs, ann, secret) + "|" + ann: unparsed,
	} {
		if got := verify(v, credential); got != want {
			t.Errorf("Verify(%.60q) = %s, want %s", credential, got, want)
		}
	}
}

func TestDatabaseWithoutSecrets(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{})
	for _, secrets := range [][]string{nil, {}, {""}, {"", ""}} {
		for _, credential := range []string{secret, "x", forge(hs, ann, secret), forge(hs, ann, "")} {
			database := auth.Database{Name: "chat", Secrets: secrets}
			if got := outcome(v.Verify(t.Context(), credential, database)); got != unparsed {
				t.Errorf("Verify(%q) with the secrets %q = %s, want it refused", credential, secrets, got)
			}
		}
	}
}

func TestTokensAreForOneDatabase(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{})
	elsewhere := auth.Database{Name: "shop", Secrets: []string{"the0secret0of0another0database0xxxxxxxxx"}}
	for _, credential := range []string{secret, forge(hs, ann, secret), forge(hs, legacyClaims("admin", "true"), other)} {
		if got := verify(v, credential); got == unparsed {
			t.Errorf("Verify(%q) in its own database = %s", credential, got)
		}
		if got := outcome(v.Verify(t.Context(), credential, elsewhere)); got != unparsed {
			t.Errorf("Verify(%q) in another database = %s, want it refused", credential, got)
		}
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	clock := now
	v := newVerifier(t, auth.Options{
		Now:     func() time.Time { return clock },
		Issuers: []auth.Issuer{{URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("ed", edKey)))}},
	})
	identify := func(credential string) auth.Identity {
		t.Helper()
		id, err := v.Verify(t.Context(), credential, database)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	all := map[string]auth.Identity{
		"nobody":                    identify(""),
		"owner":                     {Admin: true, Operator: true},
		"secret":                    identify(secret),
		"other secret":              identify(other),
		"token":                     identify(forge(hs, ann, secret)),
		"token of other secret":     identify(forge(hs, ann, other)),
		"token for an hour":         identify(forge(hs, legacyClaims("exp", seconds(time.Hour)), other)),
		"issued for an hour":        identify(forge(ed, issuedClaims(), edKey)),
		"admin as somebody":         identify(forge(hs, legacyClaims("admin", "true"), secret)).As(tree.Node{}),
		"admin as ann, for an hour": identify(forge(hs, legacyClaims("admin", "true", "exp", seconds(time.Hour)), other)).As(tree.Node{}),
	}
	check := func(when string, database auth.Database, lost ...string) {
		t.Helper()
		for name, id := range all {
			want := true
			for _, other := range lost {
				want = want && name != other
			}
			if got := v.Holds(id, database); got != want {
				t.Errorf("%s: Holds(%s) = %t, want %t", when, name, got, want)
			}
		}
	}
	without := auth.Database{Name: "chat", Secrets: []string{other}}
	resting := []string{"secret", "token", "admin as somebody"}
	passing := []string{"token for an hour", "issued for an hour", "admin as ann, for an hour"}
	check("at once", database)
	check("without the secret", without, resting...)
	clock = now.Add(time.Hour - 1)
	check("shortly before an hour", database)
	clock = now.Add(time.Hour)
	check("after an hour", database, passing...)
	check("after an hour, without the secret", without, append(resting, passing...)...)

	if id := all["secret"]; strings.Contains(id.Basis, secret) || id.Basis == "" || id.Basis == all["other secret"].Basis {
		t.Errorf("the secret's basis is %q", id.Basis)
	}
	if newVerifier(t, auth.Options{}).Holds(all["token"], database) {
		t.Error("another verifier knows the basis: it must be of no use to whoever sees it")
	}
}

func TestAsTakesPrivilegesAway(t *testing.T) {
	t.Parallel()
	variable, err := tree.DecodeClaims([]byte(`{"uid":"ben"}`))
	must(err)
	id := auth.Identity{Admin: true, Operator: true, Debug: true, Simulate: true, Expires: now, Basis: "b"}
	want := auth.Identity{Auth: variable, Debug: true, Simulate: true, Expires: now, Basis: "b"}
	if got := id.As(variable); got != want {
		t.Errorf("As = %+v, want %+v", got, want)
	}
}

func TestMint(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{})
	for _, test := range []struct {
		name   string
		claims auth.Claims
		want   string
	}{
		{"a user", auth.Claims{Data: map[string]any{"uid": "ann"}}, is(annIs)},
		{"a user with more", auth.Claims{Data: map[string]any{"uid": "<ann>", "https://x/y": []int{1}}}, is(`{"https://x/y":{"0":1},"uid":"<ann>"}`)},
		{"an admin", auth.Claims{Admin: true}, is("null", "admin")},
		{"all flags", auth.Claims{Data: map[string]any{"uid": "ann"}, Admin: true, Debug: true, Simulate: true}, is(annIs, "admin", "debug", "simulate")},
		{"all times", auth.Claims{Data: map[string]any{"uid": "ann"}, IssuedAt: now, NotBefore: now, Expires: now.Add(time.Hour)}, until(time.Hour, annIs)},
		{"expired", auth.Claims{Data: map[string]any{"uid": "ann"}, Expires: now}, expired},
		{"too early", auth.Claims{Data: map[string]any{"uid": "ann"}, NotBefore: now.Add(time.Hour)}, unparsed},
	} {
		text, err := auth.Mint(secret, test.claims)
		if err != nil {
			t.Errorf("%s: Mint fails: %v", test.name, err)
		}
		if got := verify(v, text); got != test.want {
			t.Errorf("%s: the token gives %s, want %s", test.name, got, test.want)
		}
	}
	for name, claims := range map[string]auth.Claims{
		"nobody": {}, "no uid": {Data: map[string]any{"x": 1}}, "a uid that is a number": {Data: map[string]any{"uid": 1}, Admin: true},
		"an empty uid": {Data: map[string]any{"uid": ""}}, "a long uid": {Data: map[string]any{"uid": strings.Repeat("u", 256)}},
		"no JSON":   {Data: map[string]any{"uid": "ann", "f": func() {}}},
		"too large": {Data: map[string]any{"uid": "ann", "x": strings.Repeat("x", 10_000)}},
	} {
		if text, err := auth.Mint(secret, claims); err == nil {
			t.Errorf("%s: Mint gives %s, want an error", name, text)
		}
	}
	if text, err := auth.Mint("", auth.Claims{Admin: true}); err == nil {
		t.Errorf("Mint without a secret gives %s, want an error", text)
	}
}

// TestNothingIsGivenAway looks for credentials and for what is in them, in
// everything that a verifier says.
func TestNothingIsGivenAway(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	v := newVerifier(t, auth.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Issuers: []auth.Issuer{
			{URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("ed", edKey), webKey("ec", ecKey())))},
			{URL: "https://down.example.org", Audiences: []string{project}},
		},
		Transport: transport(nil),
	})
	credentials := []string{secret + " ", secret[:39]}
	for _, c := range tokenCases() {
		credentials = append(credentials, c.token())
	}
	for _, mark := range []string{"MARK1", "MARK2"} {
		for _, header := range []string{hs, ed, `{"alg":"MARK1"}`, `{"MARK1":1,"MARK1":2}`, `{"alg":"HS256","typ":"MARK1"}`, `{"alg":"EdDSA","kid":"MARK1"}`} {
			credentials = append(credentials,
				forge(header, legacyClaims(mark, "1", mark, "2"), secret), forge(header, legacyClaims("exp", quote(mark)), secret),
				forge(header, `{"v":"`+mark+`"}`, secret), forge(header, `{"v":0,"d":{"uid":["`+mark+`"]}}`, secret),
				forge(header, issuedClaims("iss", `"https://down.example.org"`, mark, quote(mark)), edKey), forge(header, issuedClaims("iss", quote(mark)), edKey),
				forge(header, mark, secret), mark+"."+mark+"."+mark)
		}
	}
	refused := 0
	for _, credential := range credentials {
		_, err := v.Verify(context.Background(), credential, database)
		if err == nil {
			continue
		}
		refused++
		pieces := append(strings.Split(credential, "."), credential, secret, other, secret[:20], "MARK1", "MARK2", "evil.example.com")
		for _, piece := range pieces {
			if len(piece) > 4 && strings.Contains(err.Error()+log.String(), piece) {
				t.Errorf("after %.80q: %.20q is in the error %q or in the log %q", credential, piece, err, log.String())
			}
		}
		if text := fault.Public(err); text != unparsed && text != expired && fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a client reads %q", text)
		}
	}
	if refused < 200 {
		t.Errorf("only %d credentials were refused", refused)
	}
	if !strings.Contains(log.String(), "down.example.org") {
		t.Errorf("the log does not say that an issuer cannot be reached: %s", log.String())
	}
}

func BenchmarkVerify(b *testing.B) {
	v := newVerifier(b, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("rs", rsaKey()), webKey("ec", ecKey()), webKey("ed", edKey))),
	}}})
	for name, credential := range map[string]string{
		"secret": secret, "HS256": forge(hs, ann, secret),
		"RS256": forge(`{"alg":"RS256","kid":"rs"}`, issuedClaims(), rsaKey()), "ES256": forge(ec, issuedClaims(), ecKey()), "EdDSA": forge(ed, issuedClaims(), edKey),
	} {
		run := func(b *testing.B, before func()) {
			b.ReportAllocs()
			for b.Loop() {
				before()
				if _, err := v.Verify(b.Context(), credential, database); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(name+"/anew", func(b *testing.B) { run(b, v.Forget) })
		b.Run(name+"/known", func(b *testing.B) { run(b, func() {}) })
	}
}

// TestBasisOutlivesTheVerifier: with the same key another Verifier knows on what an identity rests.
func TestBasisOutlivesTheVerifier(t *testing.T) {
	database := auth.Database{Name: "db", Secrets: []string{"a secret that is long enough"}}
	basis := func(key string) auth.Identity {
		t.Helper()
		v, err := auth.New(auth.Options{AccessKey: []byte(key)})
		if err != nil {
			t.Fatal(err)
		}
		id, err := v.Verify(t.Context(), database.Secrets[0], database)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if a, b := basis("key"), basis("key"); a.Basis != b.Basis {
		t.Errorf("with one key the basis is %q, then %q", a.Basis, b.Basis)
	}
	for _, key := range []string{"", "another"} {
		if basis(key).Basis == basis("key").Basis {
			t.Errorf("the basis is the same with the key %q", key)
		}
	}
}
