package watch_test

import (
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/store"
)

// TestRulesBesideWrites: rules change beside writes, and all of it is handed on at a time. A watch that was allowed
// every state of it is told the writes one by one. One that was not, or of which that is not known, is told what is
// there in the end.
func TestRulesBesideWrites(t *testing.T) {
	const (
		open1  = `rules {"rules": {"a": {".read": true}}}`
		open2  = `rules {"rules": {".read": true}}`
		closed = `rules {"rules": {}}`
		member = `rules {"rules": {"a": {".read": "root.child('m').val() === 1"}}}`
		timed  = `rules {"rules": {"a": {".read": "now > 0"}}}`
	)
	for name, c := range map[string]struct {
		rules, steps string // of the beginning; of one delivery
		want         string // what is told, by a line each
	}{
		"rules first":     {open1, open2 + "\nPUT /a/b 1", `put {"path":"/b","data":1}`},
		"rules last":      {open1, "PUT /a/b 1\n" + open2, `put {"path":"/b","data":1}`},
		"in between":      {open1, "PUT /a/b 1\n" + open2 + "\nPUT /a/b 2", `put {"path":"/b","data":1}` + "\n" + `put {"path":"/b","data":2}`},
		"twice":           {open1, closed + "\nPUT /a/b 1\n" + open2 + "\nPUT /a/b 2", `first {"path":"/","data":{"b":2}}`},
		"back again":      {open1, closed + "\nPUT /a/b 1\n" + open1 + "\nPUT /a/b 2", `first {"path":"/","data":{"b":2}}`},
		"to one member":   {open1, member + "\nPUT /a/b 1", `put {"path":"/b","data":1}`},
		"from a member":   {member, "PUT /a/b 1\n" + open1, `put {"path":"/b","data":1}`},
		"member leaves":   {member, "PUT /m 0\nPUT /a/b 1\nPUT /m 1\n" + open1, `first {"path":"/","data":{"b":1}}`},
		"member comes":    {open1, member + "\nPUT /m 0\nPUT /a/b 1\nPUT /m 1", `first {"path":"/","data":{"b":1}}`},
		"parent replaced": {member, "PUT / {\"a\":{\"b\":3}}\nPUT /m 1\n" + open1, `first {"path":"/","data":{"b":3}}`},
		"to the time":     {open1, timed + "\nPUT /a/b 1", `first {"path":"/","data":{"b":1}}`},
		"from the time":   {timed, "PUT /a/b 1\n" + open1, `first {"path":"/","data":{"b":1}}`},
		"member only":     {member, "PUT /m 0\nPUT /a/b 1\nPUT /m 1", `first {"path":"/","data":{"b":1}}`},
		"too many":        {open1, member + strings.Repeat("\nPUT /a/b 1\nPUT /a/b 2", 100), `first {"path":"/","data":{"b":2}}`},
		"not any more":    {open1, "PUT /a/b 1\n" + closed, "cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, store.Options{})
			do := func(step string) {
				t.Helper()
				if rules, ok := strings.CutPrefix(step, "rules "); ok {
					if err := setRules(f, rules); err != nil {
						t.Fatal(err)
					}
					return
				}
				f.Do(step)
			}
			f.Do(`PUT /m 1`)
			do(c.rules)
			w := f.Watch(as(auth.Identity{}, whole(t, "/a")))
			held := f.Watches().HoldDispatcher()
			for step := range strings.SplitSeq(c.steps, "\n") {
				do(step)
			}
			held.Take()()
			held.Release()
			w.Expect(strings.Split(c.want, "\n")...)
		})
	}
}

// TestAccountsBeforeAndAfter: the key of a service account is revoked and comes back, beside writes, and all of it is handed on at a time.
func TestAccountsBeforeAndAfter(t *testing.T) {
	f := open(t, store.Options{})
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	add := func() {
		t.Helper()
		if _, err := f.AddAccount(t.Context(), auth.Account{Name: "a", Key: &key.PublicKey, TokenURI: "https://localhost/token"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SetSecrets(t.Context(), "secret"); err != nil {
		t.Fatal(err)
	}
	who, err := f.Identify(t.Context(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	add()
	w := f.Watch(as(who, whole(t, "/a")))
	held := f.Watches().HoldDispatcher()
	if _, err := f.RevokeAccount(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	f.Do(`PUT /a/b 1`)
	add()
	f.Do(`PUT /a/b 2`)
	held.Take()()
	held.Release()
	w.Expect(`first {"path":"/","data":{"b":2}}`)
}

// TestSecretsBeforeAndAfter: a secret is replaced and comes back, beside writes, and all of it is handed on at a time.
func TestSecretsBeforeAndAfter(t *testing.T) {
	f := open(t, store.Options{})
	set := func(secret string) {
		t.Helper()
		if err := f.SetSecrets(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	set("first")
	who, err := f.Identify(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	w := f.Watch(as(who, whole(t, "/a")))
	held := f.Watches().HoldDispatcher()
	set("second")
	f.Do(`PUT /a/b 1`)
	set("first")
	f.Do(`PUT /a/b 2`)
	held.Take()()
	held.Release()
	w.Expect(`first {"path":"/","data":{"b":2}}`)
}
