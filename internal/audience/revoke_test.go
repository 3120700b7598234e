package audience_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

const (
	firstSecret  = "the-first-secret-is-long-enough-for-all"
	secondSecret = "the-second-secret-is-long-enough-for-all"
)

// bySecret returns a user whose identity rests on a secret.
func bySecret(t *testing.T, f *enginetest.Fixture, secret string) auth.Identity {
	t.Helper()
	who, err := f.Identify(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return who.As(enginetest.User(t, `{"uid":"ann"}`).Auth)
}

// TestSecretRemoved: when the secret behind a login is removed, the client is told so. Listens
// that rest on the login end, those to what everybody may read go on, and are told nothing again.
// It does not matter who notices first: a listen, a look now and then, or a request.
func TestSecretRemoved(t *testing.T) {
	t.Parallel()
	for _, notices := range []string{"listen", "check", "request", "login"} {
		t.Run(notices, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := enginetest.Open(t, store.Options{})
				f.Rule(`{"rules":{"open":{".read":true},"own":{".read":"auth.uid == 'ann'"},".write":true}}`)
				f.Put("/open", `{"a":1}`)
				if err := f.SetSecrets(t.Context(), firstSecret, secondSecret); err != nil {
					t.Fatal(err)
				}
				a := audience.New(f.Database, audience.Options{Wake: func() {}})
				defer a.Close()
				told := func() (log []string) {
					for {
						synctest.Wait()
						item, ok := a.Next()
						if !ok {
							slices.Sort(log)
							return log
						}
						log = append(log, describe(t, item))
					}
				}
				a.Identify(bySecret(t, f, firstSecret))
				for i, at := range []string{"/own", "/open", `/open?limitToLast=1&orderBy="$key"`} {
					req := audience.ListenRequest{Cookie: at}
					at, parameters, filtered := strings.Cut(at, "?")
					if req.Path = enginetest.Path(t, at); filtered {
						req.Query = enginetest.Filtered(t, at, parameters).Query
					}
					a.Listen(int64(i), req)
				}
				told()
				if err := f.SetSecrets(t.Context(), secondSecret); err != nil {
					t.Fatal(err)
				}
				f.WaitForWatches()
				want := []string{`/open 1 / {"b":2}`, `/open?limitToLast=1&orderBy="$key" 1 / {"a":null,"b":2}`, `/own over 3`, `answer 4 <nil>`,
					`logout credential is no longer valid`}
				switch notices {
				case "check":
					a.Check()
				case "request":
					a.Reply(9, nil, nil)
					want = slices.Insert(want, 4, `answer 9 <nil>`)
				case "login":
					a.Identify(bySecret(t, f, secondSecret))
					want = []string{want[0], want[1], `/own 0 / 2`, want[3]}
				}
				got := told()
				req, err := enginetest.ParseRequest(`PATCH / {"open/b":2,"own":2}`)
				if err != nil {
					t.Fatal(err)
				}
				a.Write(4, req)
				got = append(got, told()...)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("the client was told\n%q, want\n%q", got, want)
				}
			})
		})
	}
}

// describe returns an item as text.
func describe(t *testing.T, item audience.Item) string {
	t.Helper()
	switch e := item.Event; {
	case item.Logout != nil:
		return fmt.Sprintf("logout %v", item.Logout)
	case item.Answer != nil:
		return fmt.Sprintf("answer %d %v", item.Answer.ID, item.Answer.Err)
	case e.Kind >= watch.Cancel:
		return fmt.Sprintf("%s over %d", item.Listen.Cookie, e.Kind)
	default:
		return strings.TrimSpace(fmt.Sprintf("%s %d %s %s%s", item.Listen.Cookie, e.Kind, e.Path, e.Value, content(t, e.Content)))
	}
}

// TestCloseWaitsForLogout: when the time of a login is over, a goroutine works out what the listens
// may still see. Nothing of it is left when the audience is closed: the database may be, next.
func TestCloseWaitsForLogout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := enginetest.Open(t, store.Options{})
		var isShut atomic.Bool
		gate := make(chan struct{})
		a := audience.New(f.Database, audience.Options{Wake: func() {
			if isShut.Load() {
				<-gate
			}
		}})
		who := enginetest.User(t, `{"uid":"ann"}`)
		who.Expires = time.Now().Add(time.Minute)
		a.Identify(who)
		isShut.Store(true)
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		synctest.Wait()
		var closed atomic.Bool
		go func() {
			a.Close()
			closed.Store(true)
		}()
		synctest.Wait()
		if closed.Load() {
			t.Error("the audience is closed while a login ends")
		}
		close(gate)
		synctest.Wait()
		if !closed.Load() {
			t.Error("the audience is not closed when the login has ended")
		}
	})
}

// TestRevokedWhileLoggingIn: a secret is removed when the login by it was judged, and the beat comes before the client is who it
// logs in as. The first request finds out.
func TestRevokedWhileLoggingIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := enginetest.Open(t, store.Options{})
		f.Rule(`{"rules":{"own":{".read":"auth.uid == 'ann'",".write":"auth.uid == 'ann'"}}}`)
		if err := f.SetSecrets(t.Context(), firstSecret, secondSecret); err != nil {
			t.Fatal(err)
		}
		a := audience.New(f.Database, audience.Options{Wake: func() {}})
		defer a.Close()
		who := bySecret(t, f, firstSecret)
		if err := f.SetSecrets(t.Context(), secondSecret); err != nil {
			t.Fatal(err)
		}
		a.Check()
		a.Identify(who)
		req, err := enginetest.ParseRequest(`PUT /own 1`)
		if err != nil {
			t.Fatal(err)
		}
		a.Write(1, req)
		a.Get(2, enginetest.Path(t, "/own"), nil)
		f.WaitForWatches()
		synctest.Wait()
		var log []string
		for item, ok := a.Next(); ok; item, ok = a.Next() {
			log = append(log, describe(t, item))
		}
		want := []string{`logout credential is no longer valid`, `answer 1 Permission denied`, `answer 2 Permission denied`}
		if !slices.Equal(log, want) {
			t.Errorf("the client was told\n%q, want\n%q", log, want)
		}
	})
}
