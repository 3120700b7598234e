package auth_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
)

const (
	rs       = `{"alg":"RS256","typ":"JWT","kid":%q}`
	tokenURI = "https://db.example.org/oauth2/token"
	backend  = "backend@chat.livetree.internal"
)

var otherRSAKey = sync.OnceValue(newRSAKey)

func newAccount(t testing.TB, name string, k *rsa.PrivateKey) auth.Account {
	t.Helper()
	id, err := auth.AccountKeyID(&k.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return auth.Account{Name: name, KeyID: id, Key: &k.PublicKey, TokenURI: tokenURI}
}

// asserted is what an SDK claims; a pair in more replaces a claim, or removes it
// if its value is empty.
func asserted(more ...string) string {
	members := []string{"iss", quote(backend), "scope", `"x y"`, "aud", quote(tokenURI),
		"iat", seconds(-10 * time.Second), "exp", seconds(time.Hour - 10*time.Second)}
	for i := 0; i < len(more); i += 2 {
		at := len(members)
		for j := 0; j < len(members); j += 2 {
			if members[j] == more[i] {
				at = j
			}
		}
		members = append(members[:at:at], append(more[i:i+2:i+2], members[min(at+2, len(members)):]...)...)
		if more[i+1] == "" {
			members = append(members[:at], members[at+2:]...)
		}
	}
	return object(members...)
}

// elsewhere says that no audience stands for this server.
func elsewhere(string) bool { return false }

func TestGrant(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{})
	account := newAccount(t, "backend", rsaKey())
	revoked := newAccount(t, "backend", otherRSAKey())
	db := auth.Database{Name: "chat", Secrets: []string{secret}, Accounts: []auth.Account{account}}
	header := fmt.Sprintf(rs, account.KeyID)
	publicPEM := pemOf(t, rsaKey())
	const granted = "granted"
	for name, test := range map[string]struct {
		assertion string
		want      string // a part of the public text
	}{
		"as SDKs sign it":         {forge(header, asserted(), rsaKey()), granted},
		"with sub":                {forge(header, asserted("sub", quote(backend)), rsaKey()), granted},
		"iat a minute ahead":      {forge(header, asserted("iat", seconds(time.Minute), "exp", seconds(time.Hour)), rsaKey()), granted},
		"one second left":         {forge(header, asserted("exp", seconds(time.Second)), rsaKey()), granted},
		"another key's signature": {forge(header, asserted(), otherRSAKey()), "signature"},
		"no signature":            {forge(header, asserted(), nil), "neither"},
		"a revoked key":           {forge(fmt.Sprintf(rs, revoked.KeyID), asserted(), otherRSAKey()), "not known"},
		"an unknown key":          {forge(fmt.Sprintf(rs, strings.Repeat("0", 40)), asserted(), rsaKey()), "not known"},
		"no key id":               {forge(`{"alg":"RS256","typ":"JWT"}`, asserted(), rsaKey()), "not known"},
		"none":                    {forge(strings.Replace(header, "RS256", "none", 1), asserted(), "x"), "algorithm"},
		"HS256 by the public key": {forge(strings.Replace(header, "RS256", "HS256", 1), asserted(), publicPEM), "algorithm"},
		"HS256 by the secret":     {forge(strings.Replace(header, "RS256", "HS256", 1), asserted(), secret), "algorithm"},
		"RS512":                   {forge(strings.Replace(header, "RS256", "RS512", 1), asserted(), rsaKey()), "algorithm"},
		"EdDSA":                   {forge(strings.Replace(header, "RS256", "EdDSA", 1), asserted(), edKey), "algorithm"},
		"another issuer":          {forge(header, asserted("iss", `"other@chat.livetree.internal"`), rsaKey()), "not known"},
		"another database":        {forge(header, asserted("iss", `"backend@shop.livetree.internal"`), rsaKey()), "not known"},
		"no issuer":               {forge(header, asserted("iss", ""), rsaKey()), "not known"},
		"for somebody else":       {forge(header, asserted("sub", `"ann@example.org"`), rsaKey()), "on behalf"},
		"another audience":        {forge(header, asserted("aud", `"https://evil.example.org/oauth2/token"`), rsaKey()), "aud"},
		"two audiences":           {forge(header, asserted("aud", `["`+tokenURI+`"]`), rsaKey()), "aud"},
		"no audience":             {forge(header, asserted("aud", ""), rsaKey()), "aud"},
		"just expired":            {forge(header, asserted("exp", seconds(0)), rsaKey()), "expired"},
		"stale":                   {forge(header, asserted("iat", seconds(-2*time.Hour), "exp", seconds(-time.Hour)), rsaKey()), "expired"},
		"from the future":         {forge(header, asserted("iat", seconds(61*time.Second), "exp", seconds(time.Hour)), rsaKey()), "not valid yet"},
		"too long a life":         {forge(header, asserted("iat", seconds(0), "exp", seconds(time.Hour+time.Second)), rsaKey()), "hour"},
		"no expiry":               {forge(header, asserted("exp", ""), rsaKey()), "iat and exp"},
		"no beginning":            {forge(header, asserted("iat", ""), rsaKey()), "iat and exp"},
		"a repeated claim":        {forge(header, `{"iss":"x",`+asserted()[1:], rsaKey()), "each key once"},
		"oversized":               {forge(header, asserted("x", quote(strings.Repeat("x", 8<<10))), rsaKey()), "too long"},
		"not a token":             {"x.y", "neither"},
		"the secret":              {secret, "neither"},
	} {
		token, err := v.Grant(test.assertion, db, elsewhere)
		if test.want == granted {
			if err != nil || !auth.IsAccessToken(token) {
				t.Errorf("%s: Grant = %q, %v", name, token, err)
			}
			continue
		}
		if token != "" || fault.KindOf(err) != fault.Unauthenticated || !strings.Contains(fault.Public(err), test.want) {
			t.Errorf("%s: Grant = %q, %v; want a refusal with %q", name, token, err, test.want)
		}
		if strings.Contains(fmt.Sprint(err), test.assertion) {
			t.Errorf("%s: the error shows the assertion: %v", name, err)
		}
	}
}

func pemOf(t testing.TB, k *rsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestGrantHere(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{})
	account := newAccount(t, "backend", rsaKey())
	db := auth.Database{Name: "chat", Accounts: []auth.Account{account}}
	const moved = "https://new.example.org/oauth2/token"
	assertion := forge(fmt.Sprintf(rs, account.KeyID), asserted("aud", quote(moved)), rsaKey())
	var asked string
	_, err := v.Grant(assertion, db, func(audience string) bool { asked = audience; return true })
	if err != nil || asked != moved {
		t.Errorf("an audience that is here: %v, asked for %q", err, asked)
	}
}

// TestGrantForGoogle: the libraries for Python and Java name Google's endpoint even
// when they ask here. Nothing like it will do.
func TestGrantForGoogle(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, auth.Options{Now: func() time.Time { return now }})
	account := newAccount(t, "backend", rsaKey())
	db := auth.Database{Name: "chat", Accounts: []auth.Account{account}}
	for audience, want := range map[string]bool{
		"https://oauth2.googleapis.com/token":      true,
		"https://oauth2.googleapis.com/token/":     false,
		"http://oauth2.googleapis.com/token":       false,
		"https://oauth2.googleapis.com.evil/token": false,
	} {
		_, err := v.Grant(forge(fmt.Sprintf(rs, account.KeyID), asserted("aud", quote(audience)), rsaKey()), db, elsewhere)
		if (err == nil) != want {
			t.Errorf("the audience %s: %v, want it granted: %t", audience, err, want)
		}
	}
}

// TestAssertionsAreUsedOnce uses assertions again: without a jti two programs may
// have signed the same one, in the seconds after iat and never later.
func TestAssertionsAreUsedOnce(t *testing.T) {
	t.Parallel()
	const granted, used, sec = "", "used before", time.Second
	type use struct {
		after time.Duration // since now
		want  string        // granted, or a part of the public text
	}
	account := newAccount(t, "backend", rsaKey())
	db := auth.Database{Name: "chat", Accounts: []auth.Account{account}}
	for name, test := range map[string]struct {
		iat  time.Duration // since now
		jti  string
		uses []use
	}{
		"as it is signed":                           {0, "", []use{{0, granted}, {0, granted}, {20 * sec, granted}, {20*sec + 1, used}, {time.Hour - 1, used}, {time.Hour, "expired"}}},
		"as Go signs it":                            {-10 * sec, "", []use{{0, granted}, {0, granted}, {10 * sec, granted}, {10*sec + 1, used}, {time.Hour - 10*sec, "expired"}}},
		"by a clock that is ahead":                  {60 * sec, "", []use{{0, granted}, {20 * sec, granted}, {20*sec + 1, used}, {70 * sec, used}}},
		"by a clock that is ahead, first used late": {60 * sec, "", []use{{70 * sec, granted}, {80 * sec, granted}, {80*sec + 1, used}}},
		"first used late":                           {0, "", []use{{20*sec + 1, granted}, {20*sec + 1, used}, {time.Minute, used}}},
		"by a clock that is slow":                   {-time.Minute, "", []use{{0, granted}, {0, used}}},
		"with a jti":                                {0, `"1"`, []use{{0, granted}, {0, used}, {sec, used}, {time.Hour - 1, used}, {time.Hour, "expired"}}},
		"with a jti, as Go signs":                   {-10 * sec, `"1"`, []use{{0, granted}, {0, used}}},
		"with an empty jti":                         {0, `""`, []use{{0, granted}, {0, used}}},
		"with a jti of a kind that there is not":    {0, `1`, []use{{0, "jti is not a string"}, {0, "jti is not a string"}}},
	} {
		clock := now
		v := newVerifier(t, auth.Options{Now: func() time.Time { return clock }})
		claims := asserted("iat", seconds(test.iat), "exp", seconds(test.iat+time.Hour), "jti", test.jti)
		assertion := forge(fmt.Sprintf(rs, account.KeyID), claims, rsaKey())
		for i, u := range test.uses {
			clock = now.Add(u.after)
			_, err := v.Grant(assertion, db, elsewhere)
			if got := fault.Public(err); (err == nil) != (u.want == granted) || err != nil && !strings.Contains(got, u.want) {
				t.Errorf("%s: use %d, after %v: %v, want %q", name, i+1, u.after, err, u.want)
			}
		}
		clock = now
		other := forge(fmt.Sprintf(rs, account.KeyID), asserted("jti", `"2"`), rsaKey())
		if _, err := v.Grant(other, db, elsewhere); err != nil {
			t.Errorf("%s: a new assertion: %v", name, err)
		}
	}
}

func TestAccessTokens(t *testing.T) {
	t.Parallel()
	clock := now
	key, err := auth.AccessKey([]byte("a secret of the store"))
	if err != nil {
		t.Fatal(err)
	}
	opts := auth.Options{Now: func() time.Time { return clock }, AccessKey: key}
	v := newVerifier(t, opts)
	account, second := newAccount(t, "backend", rsaKey()), newAccount(t, "backend", otherRSAKey())
	db := auth.Database{Name: "chat", Secrets: []string{secret}, Accounts: []auth.Account{account, second}}
	token, err := v.Grant(forge(fmt.Sprintf(rs, account.KeyID), asserted(), rsaKey()), db, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.Verify(t.Context(), token, db)
	if err != nil || !id.Admin || !id.Operator || !id.Expires.Equal(now.Add(time.Hour)) || id.Auth.IsObject() {
		t.Fatalf("Verify = %+v, %v; want the operator for an hour", id, err)
	}
	if _, err := newVerifier(t, opts).Verify(t.Context(), token, db); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	t.Run("refused", func(t *testing.T) {
		shop := auth.Database{Name: "shop", Accounts: db.Accounts}
		without := auth.Database{Name: "chat", Secrets: []string{secret}, Accounts: []auth.Account{second}}
		flipped := token[:30] + string(token[30]^1) + token[31:]
		for name, test := range map[string]struct {
			v          *auth.Verifier
			credential string
			database   auth.Database
		}{
			"in another database": {v, token, shop},
			"after a revocation":  {v, token, without},
			"by another server":   {newVerifier(t, auth.Options{}), token, db},
			"altered":             {v, flipped, db},
			"cut":                 {v, token[:len(token)-1], db},
			"longer":              {v, token + "A", db},
			"twice the prefix":    {v, "lt1." + token, db},
			"nothing but prefix":  {v, "lt1.", db},
			"with white space":    {v, token + "\n", db},
		} {
			if got := outcome(test.v.Verify(t.Context(), test.credential, test.database)); got != unparsed {
				t.Errorf("%s: %s, want %s", name, got, unparsed)
			}
		}
		if v.Holds(id, without) || !v.Holds(id, db) {
			t.Error("Holds is not by the keys that are left")
		}
		clock = now.Add(time.Hour)
		if got := outcome(v.Verify(t.Context(), token, db)); got != expired {
			t.Errorf("after an hour: %s, want %s", got, expired)
		}
		if v.Holds(id, db) {
			t.Error("Holds after the expiry")
		}
	})
}

func TestParseAccountKey(t *testing.T) {
	t.Parallel()
	good := pemOf(t, rsaKey())
	if key, err := auth.ParseAccountKey(good); err != nil || !key.Equal(&rsaKey().PublicKey) {
		t.Errorf("ParseAccountKey = %v, %v", key, err)
	}
	for name, text := range map[string]string{
		"empty":       "",
		"no PEM":      "x",
		"two blocks":  good + good,
		"private":     string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey())})),
		"not a key":   string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})),
		"not RSA":     ecPEM(t),
		"half of one": good[:len(good)/2],
	} {
		if _, err := auth.ParseAccountKey(text); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

func ecPEM(t testing.TB) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&ecKey().PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestAssertedDatabase(t *testing.T) {
	t.Parallel()
	header := fmt.Sprintf(rs, "x")
	for issuer, want := range map[string]string{
		backend:                           "chat",
		"a@b.c.livetree.internal":         "b.c",
		"backend@chat.example.org":        "",
		"chat.livetree.internal":          "",
		"@.livetree.internal":             "",
		"x@iam.gserviceaccount.com":       "",
		"backend@chat.livetree.internal ": "",
	} {
		got, err := auth.AssertedDatabase(forge(header, asserted("iss", quote(issuer)), rsaKey()))
		if got != want || err != nil && fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("AssertedDatabase of %q = %q, %v; want %q", issuer, got, err, want)
		}
	}
}
