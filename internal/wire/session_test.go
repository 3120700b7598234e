package wire

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/store"
)

// A talk is a session without a connection: the test says what the client sends, and
// looks at what it is told.
type talk struct {
	t       testing.TB
	session *session
	woken   chan struct{}
	closed  string // how the session wanted to end
	met     bool
}

func (k *talk) wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

func (k *talk) meet() { k.met = true }

func (k *talk) isEnding() bool { return k.closed != "" }

func (k *talk) close(_ int, _ outbox.Reason, text string) { k.closed = text }

// newFront returns a front for sessions without connections.
func newFront(on bool) *Front {
	return New(Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now, MaxBody: 1 << 20, Dev: dev.Guard{On: on}})
}

// nameOf returns a name for a database.
func nameOf(db *enginetest.Fixture) string { return fmt.Sprintf("%p", db) }

// begin begins a session and takes its hello.
func begin(t testing.TB, f *Front, db *enginetest.Fixture) *talk {
	t.Helper()
	return beginAt(t, f, db, netip.Addr{})
}

// beginAt is begin for a client at an address.
func beginAt(t testing.TB, f *Front, db *enginetest.Fixture, addr netip.Addr) *talk {
	t.Helper()
	session, err := f.newSession(found{db.Database, nameOf(db)}, http.Header{}, addr)
	if err != nil {
		t.Fatal(err)
	}
	k := &talk{t: t, session: session, woken: make(chan struct{}, 1)}
	k.session.begin(k, "db.example.org:9000")
	t.Cleanup(func() {
		if f.find(nameOf(db), k.session.id) != nil {
			k.session.release()
		}
	})
	hello := k.next()
	if !regexp.MustCompile(`^\{"t":"c","d":\{"t":"h","d":\{"ts":\d{12,13},"v":"5","h":"db\.example\.org:9000","s":"[A-Za-z0-9]{32}"\}\}\}$`).MatchString(hello) {
		t.Errorf("the hello is %s", hello)
	}
	return k
}

// send sends requests; each is r a b.
func (k *talk) send(requests ...string) {
	k.t.Helper()
	for _, request := range requests {
		parts := strings.SplitN(request, " ", 3)
		k.sendText(`{"t":"d","d":{"r":` + parts[0] + `,"a":"` + parts[1] + `","b":` + parts[2] + `}}`)
	}
}

func (k *talk) sendText(text string) {
	k.t.Helper()
	if err := k.session.receive([]byte(text)); err != nil {
		k.t.Fatalf("receive(%s): %v", text, err)
	}
}

// next waits for what the client is told next.
func (k *talk) next() string {
	k.t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		say, ok := k.session.next()
		if ok && say.ending != nil {
			return "end: " + say.ending.text
		}
		if ok {
			text, err := say.message()
			if err != nil {
				k.t.Fatal(err)
			}
			return string(text)
		}
		select {
		case <-k.woken:
		case <-timeout:
			k.t.Fatal("the client is told nothing for 10 seconds")
		}
	}
}

// expect waits for messages. A reply is given as r status data, a push as its action and
// its body.
func (k *talk) expect(want ...string) {
	k.t.Helper()
	for _, message := range want {
		if got := shorten(k.next()); got != message {
			k.t.Fatalf("the client is told %s\nwant               %s", got, message)
		}
	}
}

// quiet looks that there is nothing more.
func (k *talk) quiet() {
	k.t.Helper()
	k.send(`99 s {"c":{}}`)
	k.expect(`99 ok ""`)
}

var (
	replies = regexp.MustCompile(`^\{"t":"d","d":\{"r":(\d+),"b":\{"s":"(\w+)","d":(.*)\}\}\}$`)
	pushes  = regexp.MustCompile(`^\{"t":"d","d":\{"a":"(\w+)","b":(.*)\}\}$`)
)

// shorten returns a message as expect wants it.
func shorten(text string) string {
	if m := replies.FindStringSubmatch(text); m != nil {
		return m[1] + " " + m[2] + " " + m[3]
	}
	if m := pushes.FindStringSubmatch(text); m != nil {
		return m[1] + " " + m[2]
	}
	return text
}

const openRules = `{"rules":{".read":true,".write":true,"list":{".indexOn":"n"}}}`

// open opens a database with rules.
func open(t testing.TB, rules string) *enginetest.Fixture {
	t.Helper()
	f := enginetest.Open(t, store.Options{})
	if _, err := f.SetRules(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSession(t *testing.T) {
	t.Parallel()
	k := begin(t, newFront(false), open(t, openRules))
	k.send(`0 s {"c":{"sdk.js.12-19-0":1}}`, `1 q {"p":"/a","h":""}`)
	k.expect(`0 ok ""`, `1 ok {}`) // nothing is there, and the client knows
	k.send(`2 p {"p":"/a/b","d":{"c":1,"d":2}}`)
	k.expect(`d {"p":"a/b","d":{"c":1,"d":2}}`, `2 ok ""`)
	k.send(`3 m {"p":"/a","d":{"b/c":null,"x":7}}`)
	k.expect(`m {"p":"a","d":{"x":7,"b/c":null}}`, `3 ok ""`)
	k.send(`4 g {"p":"/a","q":{}}`, `5 g {"p":"/nothing","q":{}}`)
	k.expect(`4 ok {"b":{"d":2},"x":7}`, `5 ok null`)
	k.send(`6 n {"p":"/a"}`, `7 p {"p":"/a/x","d":8}`, `8 n {"p":"/never"}`)
	k.expect(`6 ok ""`, `7 ok ""`, `8 ok ""`)
	if counts := k.session.front.SDKs(); counts["js"] != 1 {
		t.Errorf("the SDKs are counted as %v, want one js", counts)
	}
	if !k.met {
		t.Error("a client that listens is a stranger")
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	k := begin(t, newFront(false), open(t, openRules))
	k.sendText(`{"t":"c","d":{"t":"p","d":{}}}`)
	k.expect(`{"t":"c","d":{"t":"o","d":{}}}`)
	k.sendText(`{"t":"c","d":{"t":"whatever","d":{}}}`)
	for range 10 * maxPongs {
		k.sendText(`{"t":"c","d":{"t":"p","d":{}}}`)
	}
	for range maxPongs {
		k.expect(`{"t":"c","d":{"t":"o","d":{}}}`)
	}
	k.quiet()
	if err := k.session.receive([]byte(`{"t":"x"}`)); !isUnreadable(err) {
		t.Errorf("an unreadable message: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	db := open(t, `{"rules":{"open":{".read":true,".write":true},"n":{".read":true,".write":"newData.isNumber()"}}}`)
	k := begin(t, newFront(false), db)
	for request, want := range map[string]string{
		`1 q {"p":"/closed","h":""}`:          `1 permission_denied "Permission denied"`,
		`2 p {"p":"/closed","d":1}`:           `2 permission_denied "Permission denied"`,
		`3 p {"p":"/n","d":"x"}`:              `3 permission_denied "Permission denied"`,
		`4 g {"p":"/closed","q":{}}`:          `4 permission_denied "Permission denied"`,
		`5 q {"p":"/.info/connected","h":""}`: `5 invalid_parameters "Invalid token in path"`,
		`6 zz {}`:                             `6 failure "unknown action"`,
		`7 p {"p":"/open","d":1,"h":"AAAAAAAAAAAAAAAAAAAAAAAAAAA="}`:  `7 datastale "Transaction hash does not match"`,
		`8 g {"p":"/open","q":{"i":"x","l":1,"vf":"l"}}`:              `8 failure "Index not defined, add \".indexOn\": \"x\", for path \"/open\", to the rules"`,
		`9 p {"p":"/open","d":{"a.b":1}}`:                             `9 invalid_parameters "Invalid data; couldn't parse key beginning at 1:2. Key value can't be empty or contain $ # [ ] / or . (1:2: invalid child name: \"a.b\" holds \".\")"`,
		`10 p {"p":"/open","d":"` + strings.Repeat("x", 1<<20) + `"}`: `10 too_big "Data to write exceeds the maximum size that can be modified with a single request: 1048576 bytes"`,
		`11 auth {"cred":"nonsense"}`:                                 `11 invalid_token "Could not parse auth token."`,
		`12 auth {"cred":"owner"}`:                                    `12 invalid_token "Could not parse auth token."`,
		`13 o {"p":"/closed","d":1}`:                                  `13 permission_denied "Permission denied"`,
	} {
		k.send(request)
		k.expect(want)
	}
	if k.met {
		t.Error("a client that was only refused is no stranger")
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	db := open(t, openRules)
	db.Put("/list", `{"a":{"n":1},"b":{"n":2},"c":{"n":3}}`)
	if err := enginetest.WaitForIndexes(t.Context(), db.Database); err != nil {
		t.Fatal(err)
	}
	k := begin(t, newFront(false), db)
	k.send(`1 q {"p":"/list","q":{"i":"n","l":2,"vf":"r"},"t":17,"h":""}`)
	k.expect(`d {"p":"list","d":{"b":{"n":2},"c":{"n":3}},"t":17}`, `1 ok {}`)
	k.send(`2 p {"p":"/list/d","d":{"n":4}}`)
	k.expect(`m {"p":"list","d":{"b":null,"d":{"n":4}},"t":17}`, `2 ok ""`)
	k.send(`3 n {"p":"/list","q":{"i":"n","l":2,"vf":"r"},"t":17}`, `4 p {"p":"/list/e","d":{"n":5}}`)
	k.expect(`3 ok ""`, `4 ok ""`)
}

func TestLogin(t *testing.T) {
	t.Parallel()
	const secret = "a-secret-that-is-long-enough-for-everyone"
	db := open(t, `{"rules":{"$uid":{".read":"auth.uid === $uid",".write":"auth.uid === $uid"}}}`)
	if err := db.SetSecrets(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	k := begin(t, newFront(false), db)
	k.send(`1 auth {"cred":"`+secret+`"}`, `2 p {"p":"/alice","d":1}`)
	k.expect(`1 ok {"auth":null,"expires":null}`, `2 ok ""`)
	k.send(`3 gauth {"cred":"` + secret + `","authvar":{"uid":"alice"}}`)
	k.expect(`3 ok {"auth":{"uid":"alice"},"expires":null}`)
	k.send(`4 q {"p":"/alice","h":""}`, `5 q {"p":"/bob","h":""}`)
	k.expect(`d {"p":"alice","d":1}`, `4 ok {}`, `5 permission_denied "Permission denied"`)
	k.send(`6 auth {"cred":"wrong"}`, `7 p {"p":"/alice","d":2}`) // she is still who she was
	k.expect(`6 invalid_token "Could not parse auth token."`, `d {"p":"alice","d":2}`, `7 ok ""`)
	k.send(`8 unauth {}`)
	k.expect(`c {"p":"alice"}`, `8 ok "unauthenticated"`)
	k.send(`9 p {"p":"/alice","d":3}`, `10 gauth {"cred":"`+secret+`","noauth":true}`, `11 p {"p":"/alice","d":3}`)
	k.expect(`9 permission_denied "Permission denied"`, `10 ok {"auth":null,"expires":null}`, `11 permission_denied "Permission denied"`)
	k.send(`12 gauth {"cred":"`+secret+`","authvar":null}`, `13 p {"p":"/alice","d":4}`)
	k.expect(`12 ok {"auth":null,"expires":null}`, `13 permission_denied "Permission denied"`)
	if !k.met {
		t.Error("a client that has logged in is a stranger")
	}
}

func TestDevLogin(t *testing.T) {
	t.Parallel()
	db := open(t, `{"rules":{"$uid":{".read":"auth.uid === $uid",".write":"auth.uid === $uid"}}}`)
	k := begin(t, newFront(true), db)
	k.send(`1 auth {"cred":"owner"}`, `2 p {"p":"/bob","d":1}`)
	k.expect(`1 ok {"auth":null,"expires":null}`, `2 ok ""`)
	// {"alg":"none"}.{"sub":"bob","iat":0,"exp":3600}.
	k.send(`3 auth {"cred":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJib2IiLCJpYXQiOjAsImV4cCI6MzYwMH0."}`, `4 g {"p":"/bob","q":{}}`, `5 g {"p":"/alice","q":{}}`)
	k.expect(`3 ok {"auth":{"token":{"exp":3600,"iat":0,"sub":"bob"},"uid":"bob"},"expires":null}`, `4 ok 1`, `5 permission_denied "Permission denied"`)
}

func TestStopAnswersWhatWasAsked(t *testing.T) {
	t.Parallel()
	k := begin(t, newFront(false), open(t, openRules))
	k.send(`1 p {"p":"/a","d":1}`)
	if k.session.stop() {
		t.Error("a request was asked and not answered, and all is settled")
	}
	k.send(`2 p {"p":"/a","d":2}`) // too late
	k.expect(`1 ok ""`)
	if !k.session.stop() {
		t.Error("all was answered, and not all is settled")
	}
}

func TestOldSessionEndsFirst(t *testing.T) {
	t.Parallel()
	db, other := open(t, openRules), open(t, openRules)
	f := newFront(false)
	k := begin(t, f, db)
	f.endOld(nameOf(other), k.session.id) // of another database
	f.endOld(nameOf(db), "unknown")
	if k.closed != "" {
		t.Fatalf("the session was closed: %s", k.closed)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.endOld(nameOf(db), k.session.id)
	}()
	select {
	case <-done:
		t.Fatal("the old session is not over")
	case <-time.After(20 * time.Millisecond):
	}
	k.session.release()
	<-done
	if k.closed == "" || f.find(nameOf(db), k.session.id) != nil {
		t.Error("the session is still there")
	}
}

func TestDroppedDatabase(t *testing.T) {
	t.Parallel()
	db := open(t, openRules)
	k := begin(t, newFront(false), db)
	k.send(`1 q {"p":"/a","h":""}`)
	k.expect(`1 ok {}`)
	if err := db.Drop(); err != nil {
		t.Fatal(err)
	}
	k.expect(`end: the database does not exist any more`)
}

func TestKnownHash(t *testing.T) {
	t.Parallel()
	db := open(t, openRules)
	db.Put("/n", `4`)
	k := begin(t, newFront(false), db)
	k.send(`1 q {"p":"/n","h":"eVih19a6ZDz3NL32uVBtg9KSgQY="}`)
	k.expect(`1 ok {}`)
	k.send(`2 q {"p":"/n","h":"wrong"}`)
	k.expect(`d {"p":"n","d":4}`, `2 ok {}`)
	k.send(`3 q {"p":"/empty"}`) // no hash at all: the client waits for the data
	k.expect(`d {"p":"empty","d":null}`, `3 ok {}`)
	k.send(`4 p {"p":"/n","d":5,"h":"eVih19a6ZDz3NL32uVBtg9KSgQY="}`)
	k.expect(`d {"p":"n","d":5}`, `4 ok ""`)
	k.send(`5 p {"p":"/n","d":6,"h":"eVih19a6ZDz3NL32uVBtg9KSgQY="}`)
	k.expect(`5 datastale "Transaction hash does not match"`)
}

func TestCompoundHash(t *testing.T) {
	t.Parallel()
	db := open(t, openRules)
	db.Put("/list", `{"a":"`+strings.Repeat("x", 2000)+`","b":"new","c":"three"}`)
	k := begin(t, newFront(false), db)
	// The client has the same a, another b, and nothing behind it.
	hash := func(text string) string {
		sum := sha1.Sum([]byte(text))
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	first := hash(`("a":(string:"` + strings.Repeat("x", 2000) + `"))`)
	k.send(`1 q {"p":"/list","h":"other","ch":{"hs":["` + first + `","` + hash(`("b":(string:"old"))`) + `",""],"ps":["a","b"]}}`)
	k.expect(`rm {"p":"list","d":[{"s":"a","m":{"b":"new","c":"three"}}]}`, `1 ok {}`)
	k.send(`2 q {"p":"/list","h":"other","ch":{"hs":["x"],"ps":["b","a"]}}`) // malformed: it is ignored
	if got := shorten(k.next()); !strings.HasPrefix(got, `d {"p":"list","d":{"a":"xxx`) {
		t.Errorf("the client is told %.100s", got)
	}
	k.expect(`2 ok {}`)
}

func TestOnDisconnect(t *testing.T) {
	t.Parallel()
	db := open(t, openRules)
	db.Put("/x", `{"other":1}`)
	f := newFront(false)
	other := begin(t, f, db)
	k := begin(t, f, db)
	k.send(`1 o {"p":"/online","d":false}`, `2 o {"p":"/x","d":{"parent":true,"child":1}}`, `3 oc {"p":"/x/child","d":null}`,
		`4 om {"p":"/m","d":{"a":1,"b/c":{".sv":"timestamp"}}}`, `5 o {"p":"/never","d":1}`, `6 oc {"p":"/never","d":null}`)
	k.expect(`1 ok ""`, `2 ok ""`, `3 ok ""`, `4 ok ""`, `5 ok ""`, `6 ok ""`)
	other.send(`1 q {"p":"/","h":""}`)
	other.expect(`d {"p":"","d":{"x":{"other":1}}}`, `1 ok {}`)
	k.session.release()
	other.send(`2 g {"p":"/x","q":{}}`, `3 g {"p":"/online","q":{}}`, `4 g {"p":"/never","q":{}}`, `5 g {"p":"/m/a","q":{}}`)
	for {
		got := shorten(other.next())
		if got == `2 ok {"other":1,"parent":true}` {
			break
		}
		if !strings.HasPrefix(got, "d ") && !strings.HasPrefix(got, "m ") {
			t.Fatalf("the other client is told %s", got)
		}
	}
	other.expect(`3 ok false`, `4 ok null`, `5 ok 1`)
}

// TestOnDisconnectIsJudgedAsWhoLeaves: the rules judge what was left when it is written,
// for whom the client is then.
func TestOnDisconnectIsJudgedAsWhoLeaves(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"stays": "1", "unauth": "null"} {
		db := open(t, `{"rules":{"$uid":{".read":true,".write":"auth.uid === $uid"}}}`)
		f := newFront(true)
		k := begin(t, f, db)
		k.send(`1 auth {"cred":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJib2IiLCJpYXQiOjAsImV4cCI6MzYwMH0."}`, `2 o {"p":"/bob","d":1}`)
		k.next()
		k.expect(`2 ok ""`)
		if name == "unauth" {
			k.send(`3 unauth {}`)
			k.expect(`3 ok "unauthenticated"`)
		}
		k.session.release()
		other := begin(t, f, db)
		other.send(`1 g {"p":"/bob","q":{}}`)
		other.expect(`1 ok ` + want)
	}
}

// TestDepartWithoutPatience: when the server is to end at once, the end of a session does not wait
// for a disk that hangs. What the client has left is on it.
func TestDepartWithoutPatience(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	goOn := make(chan struct{})
	db := enginetest.Open(t, store.Options{SlowSync: func() {
		if hangs.Load() {
			<-goOn
		}
	}})
	f := newFront(true)
	patience, end := context.WithCancel(t.Context())
	f.opts.Patience = patience
	k := begin(t, f, db)
	k.send(`1 auth {"cred":"owner"}`, `2 o {"p":"a","d":1}`)
	for range 2 {
		k.next()
	}
	hangs.Store(true)
	released := make(chan struct{})
	go func() {
		k.session.release()
		close(released)
	}()
	select {
	case <-released:
		t.Error("the session has ended before its disk has answered")
	case <-time.After(50 * time.Millisecond):
	}
	end()
	<-released
	close(goOn)
}
