package session_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/session"
)

const credential = "the-credential-of-the-operator-in-tests!"

// A desk is a keeper with a clock that the test holds.
type desk struct {
	t    *testing.T
	file string
	at   time.Time
	*session.Keeper
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, file: filepath.Join(t.TempDir(), "ended.json"), at: time.UnixMilli(1_700_000_000_000)}
	d.restart(credential)
	return d
}

func (d *desk) restart(credential string) {
	d.t.Helper()
	var err error
	if d.Keeper, err = session.Open(session.Options{Credential: credential, File: d.file, Now: func() time.Time { return d.at }}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) good(text string) bool {
	_, ok := d.Find(text)
	return ok
}

func TestSessionsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, begun := range []func() (session.Session, string){
		d.BeginOperator,
		func() (session.Session, string) { return d.BeginDatabase("shop", "a secret of the shop") },
	} {
		want, text := begun()
		got, ok := d.Find(text)
		if !ok || got != want {
			t.Errorf("Find = %+v, %v, want %+v", got, ok, want)
		}
		d.restart(credential)
		if got, ok = d.Find(text); !ok || got != want {
			t.Errorf("after a restart Find = %+v, %v, want %+v", got, ok, want)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	one, oneText := d.BeginOperator()
	_, twoText := d.BeginOperator()
	if err := d.End(one); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if d.good(oneText) || !d.good(twoText) {
			t.Errorf("after the end of one session: it is %v, the other %v", d.good(oneText), d.good(twoText))
		}
		d.restart(credential)
	}
	d.at = d.at.Add(session.Life - time.Millisecond)
	if !d.good(twoText) {
		t.Error("a session ends before its time")
	}
	d.at = d.at.Add(time.Millisecond)
	if d.good(twoText) {
		t.Error("a session outlasts its time")
	}
}

func TestANewCredentialEndsAllSessions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, text := d.BeginOperator()
	d.restart("another-credential-of-the-operator!!")
	if d.good(text) {
		t.Error("a session outlasts the credential")
	}
}

func TestSessionsRestOnTheirSecret(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, text := d.BeginDatabase("shop", "the first secret")
	s, _ := d.Find(text)
	for _, test := range []struct {
		secrets []string
		want    bool
	}{
		{[]string{"another secret", "the first secret"}, true},
		{[]string{"another secret"}, false},
		{nil, false},
		{[]string{""}, false},
	} {
		if got := d.RestsOn(s, test.secrets); got != test.want {
			t.Errorf("RestsOn(%q) = %v, want %v", test.secrets, got, test.want)
		}
	}
	other, _ := d.BeginDatabase("bank", "the first secret")
	other.Database = "shop"
	if d.RestsOn(other, []string{"the first secret"}) {
		t.Error("a session of one database rests on the same secret of another")
	}
}

// Every change of a single character makes another text, which is no session.
func TestForgedSessionsAreNone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, text := d.BeginDatabase("shop", "a secret of the shop")
	for i := range text {
		for _, c := range "Ab0-_." {
			forged := text[:i] + string(c) + text[i+1:]
			if forged != text && d.good(forged) {
				t.Errorf("%q is taken for %q", forged, text)
			}
		}
	}
	signed, sum, _ := strings.Cut(text, ".")
	claims, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(signed, "lts_"))
	wider := "lts_" + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(claims), "database", "operator", 1)))
	for _, forged := range []string{
		"", "lts_", "lts_.", signed, signed + ".", signed + "." + sum + "A", wider + "." + sum, text + "." + sum, " " + text,
		strings.Repeat("x", 5000), "lts_" + strings.Repeat("x", 5000), credential,
	} {
		if d.good(forged) {
			t.Errorf("%.80q is a session", forged)
		}
	}
}

func FuzzFind(f *testing.F) {
	k, err := session.Open(session.Options{Credential: credential, File: filepath.Join(f.TempDir(), "e"), Now: func() time.Time { return time.UnixMilli(1) }})
	if err != nil {
		f.Fatal(err)
	}
	_, text := k.BeginOperator()
	f.Add("lts_e30.AAAA")
	f.Fuzz(func(t *testing.T, given string) {
		if _, ok := k.Find(given); ok && given != text {
			t.Errorf("%q is a session", given)
		}
	})
}

// Who signs in and out without end costs others nothing.
func TestEndedSessionsAreBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, operator := d.BeginOperator()
	_, other := d.BeginDatabase("bank", "the secret of the bank")
	for range 300 {
		d.at = d.at.Add(time.Millisecond)
		s, text := d.BeginDatabase("shop", "a secret of the shop")
		if err := d.End(s); err != nil {
			t.Fatal(err)
		}
		if d.good(text) {
			t.Fatal("a session that was ended is good")
		}
	}
	if info, err := os.Stat(d.file); err != nil || info.Size() > 256*50 {
		t.Errorf("the file is %d bytes, %v", info.Size(), err)
	}
	if !d.good(operator) || !d.good(other) {
		t.Errorf("sessions of others: the operator's is %v, that of another database %v", d.good(operator), d.good(other))
	}
	d.at = d.at.Add(time.Millisecond)
	if _, text := d.BeginDatabase("shop", "a secret of the shop"); !d.good(text) {
		t.Error("a new session of the same database is not good")
	}
	d.at = d.at.Add(2 * session.Life)
	s, _ := d.BeginOperator()
	if err := d.End(s); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(d.file); strings.Contains(string(text), "shop") {
		t.Errorf("what has expired is still in the file: %s", text)
	}
}

func TestAFileThatMakesNoSenseEndsAllSessions(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "{", "null", "[]", `{"":3}`} {
		d := newDesk(t)
		_, operator := d.BeginOperator()
		_, shop := d.BeginDatabase("shop", "a secret of the shop")
		if err := os.WriteFile(d.file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		d.restart(credential)
		if d.good(operator) || d.good(shop) {
			t.Errorf("with the file %q sessions come back", content)
		}
		d.at = d.at.Add(time.Millisecond)
		if _, text := d.BeginOperator(); !d.good(text) {
			t.Errorf("with the file %q nobody can sign in", content)
		}
	}
}

func TestRequestsEndWithTheirSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	one, _ := d.BeginOperator()
	two, _ := d.BeginDatabase("shop", "a secret of the shop")
	hold := func(s session.Session) context.Context {
		ctx, release := d.Hold(context.Background(), s)
		t.Cleanup(release)
		return ctx
	}
	first, second, third := hold(one), hold(one), hold(two)
	if err := d.End(one); err != nil {
		t.Fatal(err)
	}
	if first.Err() == nil || second.Err() == nil || third.Err() != nil {
		t.Errorf("after the end of a session its requests are %v and %v, another %v", first.Err(), second.Err(), third.Err())
	}
	if late := hold(one); late.Err() == nil {
		t.Error("a request begins for a session that was ended just before")
	}
	d.Review(func(s session.Session) bool { return s.Database != "shop" })
	if third.Err() == nil {
		t.Error("a request goes on when its session is not good any more")
	}
}

func TestHoldersDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				s, _ := d.BeginOperator()
				ctx, release := d.Hold(context.Background(), s)
				if ctx.Err() != nil {
					t.Error("a request of a new session is cut")
				}
				d.Review(func(session.Session) bool { return true })
				release()
			}
		})
	}
	all.Wait()
}

func TestCodesAreGoodOnceAndSoon(t *testing.T) {
	t.Parallel()
	var codes session.Codes
	now := time.UnixMilli(1_700_000_000_000)
	one, expires := codes.Draw(now)
	two, _ := codes.Draw(now)
	if expires != now.Add(10*time.Minute) {
		t.Errorf("a code expires at %v", expires)
	}
	for i, want := range []bool{true, false, false} {
		if got := codes.Take(one, now.Add(9*time.Minute)); got != want {
			t.Errorf("the code is taken the %d. time: %v", i+1, got)
		}
	}
	if codes.Take(two, now.Add(10*time.Minute)) {
		t.Error("a code is good after its time")
	}
	if codes.Take("", now) || codes.Take("guess", now) {
		t.Error("what is no code is taken for one")
	}
	first, _ := codes.Draw(now)
	for range 16 {
		codes.Draw(now)
	}
	if codes.Take(first, now) {
		t.Error("there is no bound to how many codes are good")
	}
}

func TestBrakeHoldsUpThoseWhoGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		brake, began := session.NewBrake(), time.Now()
		answers := make(chan string, 20)
		for range 10 {
			go func() {
				told := brake.Refuse(t.Context())
				answers <- fmt.Sprint(told, time.Since(began))
			}()
			synctest.Wait()
		}
		counts := map[string]int{}
		for range 10 {
			counts[<-answers]++
		}
		if counts["true 250ms"] != 8 || counts["false 0s"] != 2 {
			t.Errorf("ten who guess at once are answered %v", counts)
		}
		if !brake.Refuse(t.Context()) {
			t.Error("the brake stays on")
		}
	})
}
