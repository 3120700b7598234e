package auth_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
)

// A world is all that decides about a credential beside itself, to be changed.
type world struct {
	clock    time.Time
	database auth.Database
	keys     map[string]string // what the issuer serves, by URL; nothing if it is down
}

const keysURL = "https://keys.example.org/jwks.json"

// verifier returns one that lives in the world, and counts its fetches.
func (w *world) verifier(t testing.TB, fetches *int) *auth.Verifier {
	return newVerifier(t, auth.Options{
		Now:     func() time.Time { return w.clock },
		Issuers: []auth.Issuer{{URL: issuer, Audiences: []string{project, "app-{database}"}, JWKS: keysURL}},
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			*fetches++
			return transport(w.keys)(r)
		}),
		AccessKey: []byte(strings.Repeat("k", 32)),
	})
}

// change changes one thing in the world, and says what.
func (w *world) change(rng *rand.Rand, accounts []auth.Account) string {
	switch rng.IntN(6) {
	case 0:
		w.database.Secrets = [][]string{{secret}, {other}, {secret, "", other}, {other, secret}, nil}[rng.IntN(5)]
		return fmt.Sprintf("secrets %q", w.database.Secrets)
	case 1:
		w.database.Accounts = accounts[:rng.IntN(len(accounts)+1)]
		return fmt.Sprintf("%d accounts", len(w.database.Accounts))
	case 2:
		w.database.Name = []string{"chat", "shop"}[rng.IntN(2)]
		return "database " + w.database.Name
	case 3:
		served := [][]string{{webKey("ed", edKey)}, {webKey("ed", strangeKey)}, {webKey("ed", edKey), webKey("x", strangeKey)}, {}}[rng.IntN(4)]
		w.keys = map[string]string{keysURL: webKeys(served...)}
		return fmt.Sprintf("the issuer serves %d keys", len(served))
	case 4:
		w.keys = nil
		return "the issuer is down"
	}
	by := []time.Duration{time.Nanosecond, time.Second, time.Minute, 10 * time.Minute, 61 * time.Minute, -time.Minute, -time.Hour}[rng.IntN(7)]
	w.clock = w.clock.Add(by)
	return fmt.Sprintf("%v passes", by)
}

// credentials returns some of every kind, none of which is good always.
func (w *world) credentials(t *testing.T, accounts []auth.Account) []string {
	list := []string{
		secret, other, "", "owner",
		forge(hs, ann, secret), forge(hs, ann, other), forge(hs, ann, strings.ToLower(secret)),
		forge(hs, legacyClaims("admin", "true", "debug", "true"), secret),
		forge(hs, legacyClaims("exp", seconds(time.Minute)), secret), forge(hs, legacyClaims("exp", seconds(time.Hour)), other),
		forge(hs, legacyClaims("nbf", seconds(2*time.Minute)), secret), forge(hs, legacyClaims("iat", seconds(time.Minute)), secret),
		forge(ed, issuedClaims(), edKey), forge(ed, issuedClaims("aud", `"app-shop"`), edKey), forge(ed, issuedClaims(), strangeKey),
		forge(ed, issuedClaims("nbf", seconds(10*time.Minute), "exp", seconds(24*time.Hour)), edKey),
		forge(`{"alg":"EdDSA"}`, issuedClaims("exp", seconds(24*time.Hour)), edKey),
	}
	var fetches int
	v := w.verifier(t, &fetches)
	for i, a := range accounts {
		key := []any{rsaKey(), otherRSAKey()}[i]
		token, err := v.Grant(forge(fmt.Sprintf(rs, a.KeyID), asserted(), key), auth.Database{Name: "chat", Accounts: accounts}, elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, token)
	}
	return list
}

// TestRememberingChangesNothing changes the world at random and holds a verifier
// that remembers to the same words, and the same fetches, as one that does not.
func TestRememberingChangesNothing(t *testing.T) {
	t.Parallel()
	accounts := []auth.Account{newAccount(t, "backend", rsaKey()), newAccount(t, "backend", otherRSAKey())}
	for range 20 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		w := &world{clock: now, database: auth.Database{Name: "chat", Secrets: []string{secret}, Accounts: accounts},
			keys: map[string]string{keysURL: webKeys(webKey("ed", edKey))}}
		credentials := w.credentials(t, accounts)
		var fetches, wantFetches int
		v, anew := w.verifier(t, &fetches), w.verifier(t, &wantFetches)
		var history []string
		for range 60 {
			for range rng.IntN(8) {
				credential := credentials[rng.IntN(len(credentials))]
				anew.Forget()
				got := outcome(v.Verify(t.Context(), credential, w.database))
				want := outcome(anew.Verify(t.Context(), credential, w.database))
				if got != want || fetches != wantFetches {
					t.Fatalf("seed %d, after %s: Verify(%.60q)\n= %s after %d fetches, want\n  %s after %d",
						seed, strings.Join(history, ", "), credential, got, fetches, want, wantFetches)
				}
			}
			history = append(history, w.change(rng, accounts))
		}
	}
}

// TestMemoryIsOfOneCredential changes one byte of a credential that is remembered.
func TestMemoryIsOfOneCredential(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{})
	for _, good := range []string{secret, forge(hs, ann, secret)} {
		if got := verify(v, good); got == unparsed {
			t.Fatalf("Verify(%q) = %s", good, got)
		}
		for i := range good {
			for _, flip := range []byte{1, 0x20, 0x80} {
				changed := []byte(good)
				changed[i] ^= flip
				if got := verify(v, string(changed)); got != unparsed {
					t.Errorf("Verify(%q) = %s after %q was accepted", changed, got, good)
				}
			}
		}
		for _, changed := range []string{good + "A", good[:len(good)-1], good + good, " " + good} {
			if got := verify(v, changed); got != unparsed {
				t.Errorf("Verify(%q) = %s after %q was accepted", changed, got, good)
			}
		}
	}
	// The texts that are hashed must not run together.
	for _, db := range []auth.Database{
		{Name: "chat", Secrets: []string{secret + other}}, {Name: "chat" + secret, Secrets: []string{other}},
		{Name: "chat", Secrets: []string{other}}, {Name: "", Secrets: []string{"chat", other}}, {Name: "chat"},
	} {
		if got := outcome(v.Verify(t.Context(), secret, db)); got != unparsed {
			t.Errorf("the secret is %s in the database %+v", got, db)
		}
	}
}

// TestMemoryIsBounded sends many tokens, and large ones.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{})
	verifyAs := func(database string, credential string) {
		if _, err := v.Verify(t.Context(), credential, auth.Database{Name: database, Secrets: []string{secret}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * auth.MaxProofs {
		verifyAs(fmt.Sprint(i), secret)
	}
	if n, _ := v.Remembered(); n < auth.MaxProofs || n > 2*auth.MaxProofs {
		t.Errorf("%d credentials are remembered, want %d to %d", n, auth.MaxProofs, 2*auth.MaxProofs)
	}
	large := forge(hs, `{"v":0,"d":{"uid":"ann","list":[`+strings.Repeat("0,", 2000)+`0]}}`, secret)
	for i := range 1000 {
		verifyAs(fmt.Sprint("large", i), large)
	}
	if _, bytes := v.Remembered(); bytes > 2*auth.MaxProofBytes+1<<20 {
		t.Errorf("%d bytes are remembered, want at most two halves of %d", bytes, auth.MaxProofBytes)
	}
	if before, _ := v.Remembered(); before > 0 {
		for i := range 1000 {
			verify(v, fmt.Sprint("no credential ", i))
		}
		if after, _ := v.Remembered(); after != before {
			t.Errorf("refused credentials are remembered: %d, not %d", after, before)
		}
	}
}

// poolAllocations is how many there may be without being any of ours.
func poolAllocations() float64 {
	if raceEnabled {
		return 2
	}
	return 0
}

// allocations counts those of verifying a credential once more.
func allocations(v *auth.Verifier, credential string) float64 {
	return testing.AllocsPerRun(100, func() { _, _ = v.Verify(context.Background(), credential, database) })
}

func TestKnownCredentialsCostNoAllocation(t *testing.T) {
	v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("ed", edKey))),
	}}})
	for name, credential := range map[string]string{"secret": secret, "HS256": forge(hs, ann, secret), "EdDSA": forge(ed, issuedClaims(), edKey)} {
		if n := allocations(v, credential); n > poolAllocations() {
			t.Errorf("%s: Verify makes %v allocations for a credential that it knows, want none", name, n)
		}
	}
}

// TestOneUserStaysRemembered uses one token all the while that others come by.
func TestOneUserStaysRemembered(t *testing.T) {
	v := newVerifier(t, auth.Options{})
	token := forge(hs, ann, secret)
	for i := range 3 * auth.MaxProofs {
		if _, err := v.Verify(t.Context(), secret, auth.Database{Name: fmt.Sprint(i), Secrets: []string{secret}}); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			verify(v, token)
		}
	}
	if n := allocations(v, token); n > poolAllocations() {
		t.Errorf("the token was forgotten: Verify makes %v allocations", n)
	}
}

// TestManyVerifyAtOnce is for the race detector.
func TestManyVerifyAtOnce(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{Issuers: []auth.Issuer{{
		URL: issuer, Audiences: []string{project}, Keys: []byte(webKeys(webKey("ed", edKey))),
	}}})
	tokens := []string{secret, forge(hs, ann, secret), forge(hs, ann, other), forge(ed, issuedClaims(), edKey)}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 400 {
				if got := verify(v, tokens[i%len(tokens)]); got == unparsed {
					t.Errorf("Verify(%q) = %s", tokens[i%len(tokens)], got)
				}
				if i%50 == 0 {
					v.Forget()
				}
			}
		})
	}
	all.Wait()
}

// TestFingerprints: each part of what a credential is for makes its fingerprint another one, also where the parts
// together are the same text; another process has other fingerprints, and none keeps the credential.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{})
	cases := []struct {
		credential string
		database   auth.Database
	}{
		{"token", auth.Database{Name: "db", Secrets: []string{"one", "two"}}},
		{"token", auth.Database{Name: "db", Secrets: []string{"onetwo"}}},
		{"token", auth.Database{Name: "db", Secrets: []string{"two", "one"}}},
		{"token", auth.Database{Name: "db", Secrets: []string{"one"}}},
		{"twotoken", auth.Database{Name: "db", Secrets: []string{"one"}}},
		{"token", auth.Database{Name: "dbone", Secrets: []string{"two"}}},
		{"tokem", auth.Database{Name: "db", Secrets: []string{"one", "two"}}},
		{"token\x00", auth.Database{Name: "db", Secrets: []string{"one", "two"}}},
		{strings.Repeat("token", 1000), auth.Database{Name: "db"}},
	}
	seen := map[[16]byte]int{}
	for i, c := range cases {
		f := v.Fingerprint(c.credential, c.database)
		if other, ok := seen[f]; ok {
			t.Errorf("cases %d and %d have the same fingerprint", other, i)
		}
		if seen[f] = i; v.Keeps(c.credential) {
			t.Errorf("case %d: the credential is kept", i)
		}
		if v.Fingerprint(c.credential, c.database) != f {
			t.Errorf("case %d has two fingerprints", i)
		}
	}
	other := newVerifier(t, auth.Options{AccessKey: []byte(strings.Repeat("k", 32))}).Fingerprint(cases[0].credential, cases[0].database)
	if _, ok := seen[other]; ok {
		t.Error("two processes have the same fingerprint")
	}
}

// BenchmarkFingerprint has tokens as they are in requests: one signed with the app secret, and one of an issuer.
func BenchmarkFingerprint(b *testing.B) {
	v := newVerifier(b, auth.Options{})
	for _, size := range []int{250, 900} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			credential, database := strings.Repeat("t", size), auth.Database{Name: "default", Secrets: []string{strings.Repeat("s", 32)}}
			for b.Loop() {
				v.Fingerprint(credential, database)
			}
		})
	}
}
