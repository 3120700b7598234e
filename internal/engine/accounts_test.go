package engine_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

const accountURI = "https://localhost/oauth2/token"

var accountKeys = sync.OnceValue(func() (keys [2]*rsa.PrivateKey) {
	for i := range keys {
		var err error
		if keys[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			panic(err)
		}
	}
	return keys
})

func (f *fixture) addAccount(name string, key *rsa.PrivateKey) auth.Account {
	f.T.Helper()
	a, err := f.AddAccount(context.Background(), auth.Account{Name: name, Key: &key.PublicKey, TokenURI: accountURI})
	if err != nil {
		f.T.Fatal(err)
	}
	return a
}

// comesAs returns who comes with an access token of an account.
func (f *fixture) comesAs(a auth.Account, key *rsa.PrivateKey) (auth.Identity, string) {
	f.T.Helper()
	now := time.Now().Unix()
	text := base64.RawURLEncoding.EncodeToString
	signed := text([]byte(fmt.Sprintf(`{"alg":"RS256","kid":%q}`, a.KeyID))) + "." +
		text([]byte(fmt.Sprintf(`{"iss":%q,"aud":%q,"iat":%d,"exp":%d}`, auth.AccountEmail(a.Name, ""), accountURI, now, now+3600)))
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])
	if err != nil {
		f.T.Fatal(err)
	}
	token, err := f.Grant(signed+"."+text(signature), func(string) bool { return false })
	if err != nil {
		f.T.Fatal(err)
	}
	id, err := f.Identify(context.Background(), token)
	if err != nil || !id.Operator {
		f.T.Fatalf("Identify = %+v, %v", id, err)
	}
	return id, token
}

func TestRevokedAccountsLoseTheirWatches(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {".read": true}}`)
	one, two := f.addAccount("a", accountKeys()[0]), f.addAccount("b", accountKeys()[1])
	first, token := f.comesAs(one, accountKeys()[0])
	second, _ := f.comesAs(two, accountKeys()[1])
	req := whole(t, "/x")
	req.Who = first
	doomed := f.Watch(req)
	asGuest := whole(t, "/x")
	asGuest.Who = first.As(first.Auth)
	guest := f.Watch(asGuest)
	req.Who = second
	stays := f.Watch(req)

	f.Do(`PUT /x 1`)
	const wrote = `put {"path":"/","data":%d}`
	for _, w := range []*enginetest.Watcher{doomed, guest, stays} {
		w.Expect(fmt.Sprintf(wrote, 1))
	}
	if n, err := f.RevokeAccount(t.Context(), "a"); n != 1 || err != nil {
		t.Fatalf("RevokeAccount = %d, %v", n, err)
	}
	doomed.Expect("auth_revoked")
	guest.Expect("auth_revoked")
	stays.Expect()
	f.Do(`PUT /x 2`)
	stays.Expect(fmt.Sprintf(wrote, 2))
	doomed.Expect()
	if _, err := f.Identify(t.Context(), token); fault.KindOf(err) != fault.Unauthenticated {
		t.Errorf("after the revocation: %v", err)
	}
	if _, err := f.RevokeAccount(t.Context(), "a"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("RevokeAccount once more: %v", err)
	}
}

func TestAccountsAreKept(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, store.Options{FS: fs})
	made := f.addAccount("a", accountKeys()[0])
	f.addAccount("a", accountKeys()[1])
	again := auth.Account{Name: "b", Key: &accountKeys()[0].PublicKey}
	if _, err := f.AddAccount(t.Context(), again); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the same key twice: %v", err)
	}
	for _, name := range []string{"", "A", "-a", "a b", "a@b", strings.Repeat("a", 31), made.KeyID} {
		if _, err := f.AddAccount(t.Context(), auth.Account{Name: name, Key: again.Key}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	f.CloseAll()
	f = open(t, store.Options{FS: fs})
	list := f.Accounts()
	if len(list) != 2 || list[0].KeyID != made.KeyID || !list[0].Key.Equal(made.Key) || !list[0].Created.Equal(made.Created) || list[0].TokenURI != accountURI {
		t.Fatalf("after a restart: %+v, want %+v first", list, made)
	}
	f.comesAs(list[1], accountKeys()[1])
	if n, err := f.RevokeAccount(t.Context(), made.KeyID); n != 1 || err != nil {
		t.Errorf("RevokeAccount by key = %d, %v", n, err)
	}
	if n, err := f.RevokeAccount(t.Context(), "a"); n != 1 || err != nil {
		t.Errorf("RevokeAccount by name = %d, %v", n, err)
	}
	if list := f.Accounts(); len(list) != 0 {
		t.Errorf("left: %+v", list)
	}
}

func TestAccountsAreBounded(t *testing.T) {
	if enginetest.Race {
		t.Skip("it counts in one goroutine")
	}
	f := open(t, store.Options{})
	add := func(n int) error {
		// It need not be a key that anybody has.
		modulus := new(big.Int).Add(accountKeys()[0].N, big.NewInt(int64(2*n)))
		_, err := f.AddAccount(context.Background(), auth.Account{Name: "a", Key: &rsa.PublicKey{N: modulus, E: 65537}})
		return err
	}
	for n := range 100 {
		if err := add(n); err != nil {
			t.Fatalf("account %d: %v", n, err)
		}
	}
	if err := add(100); fault.KindOf(err) != fault.Conflict {
		t.Errorf("one too many: %v", err)
	}
	if n, err := f.RevokeAccount(t.Context(), "a"); n != 100 || err != nil {
		t.Errorf("RevokeAccount = %d, %v", n, err)
	}
}
