package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
)

// TestLeftRestsOnACredential: what was left by a credential is judged by it when it is made, also
// after a restart. If the secret or the key was taken away meanwhile, it is judged as nobody's;
// that its time is over does not matter.
func TestLeftRestsOnACredential(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const secret, other = "the first secret of the database", "the other secret of the database"
	for _, test := range []struct {
		name string
		then func(f *fixture) error // after something was left
		made bool
	}{
		{"nothing happens", func(*fixture) error { return nil }, true},
		{"another secret is added", func(f *fixture) error { return f.SetSecrets(ctx, secret, other) }, true},
		{"the secret is removed", func(f *fixture) error { return f.SetSecrets(ctx, other) }, false},
		{"the secret is removed, and comes back", func(f *fixture) error {
			return errors.Join(f.SetSecrets(ctx, other), f.SetSecrets(ctx, other, secret))
		}, true},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s crash=%t", test.name, crash), func(t *testing.T) {
				t.Parallel()
				disk := vfs.NewCrashableMem()
				clock := time.UnixMilli(1_700_000_000_000)
				f := openVerifying(t, disk, clock)
				f.Rule(`{"rules":{"free":{".write":true}}}`)
				if err := f.SetSecrets(ctx, secret); err != nil {
					t.Fatal(err)
				}
				who, err := f.Identify(ctx, secret)
				if err != nil {
					t.Fatal(err)
				}
				who.Expires = clock.Add(time.Minute)
				l := f.leaver(who)
				l.leave(`PUT /free/1 1`, `PUT /a 1`)
				if err := test.then(f); err != nil {
					t.Fatal(err)
				}
				want, a := engine.Made{Made: 2}, "1"
				if !test.made {
					want, a = engine.Made{Made: 1, Dropped: 1}, "null"
				}
				if crash {
					f = openVerifying(t, disk.CrashClone(vfs.CrashCloneCfg{}), clock.Add(time.Hour))
					f.runLeft(want)
				} else {
					l.run(want)
				}
				f.expect("/a", a)
				f.expect("/free/1", "1")
			})
		}
	}
}

// TestLeftByAnAccount: so it is with the key of a service account, and with those whom it asks for.
func TestLeftByAnAccount(t *testing.T) {
	t.Parallel()
	for _, revoked := range []bool{false, true} {
		disk := vfs.NewCrashableMem()
		f := openVerifying(t, disk, time.Now())
		f.Rule(`{"rules":{"ann":{".write":"auth.uid == 'ann'"}}}`)
		account := f.addAccount("robot", accountKeys()[0])
		who, _ := f.comesAs(account, accountKeys()[0])
		f.leaver(who).leave(`PUT /a 1`)
		f.leaver(who.As(user(t, `{"uid":"ann"}`).Auth)).leave(`PUT /ann 1`)
		want, data := engine.Made{Made: 2}, `{"a":1,"ann":1}`
		if revoked {
			want, data = engine.Made{Dropped: 2}, "null"
			if _, err := f.RevokeAccount(context.Background(), "robot"); err != nil {
				t.Fatal(err)
			}
		}
		f = openVerifying(t, disk.CrashClone(vfs.CrashCloneCfg{}), time.Now())
		f.runLeft(want)
		f.expect("/", data)
	}
}

// openVerifying opens a database with a verifier like that of a server.
func openVerifying(t *testing.T, disk vfs.FS, now time.Time) *fixture {
	t.Helper()
	f := openFixture(t, disk)
	key, err := auth.AccessKey(f.Store.ETagKey())
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.New(auth.Options{Now: func() time.Time { return now }, AccessKey: key})
	if err != nil {
		t.Fatal(err)
	}
	f.Reopen(engine.Options{Clock: f.Clock, Verifier: verifier})
	return f
}
