package wire_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/wire"
	"github.com/livetree/livetree/internal/wiretest"
)

// A server serves the SDKs, over plain HTTP and alone.
type server struct {
	t       testing.TB
	front   *wire.Front
	clients *outbox.Clients
	db      *enginetest.Fixture // the database default
	http    *httptest.Server
}

// serve starts a server with an open database.
func serve(t testing.TB, change func(*wire.Options, *outbox.Options)) *server {
	t.Helper()
	s := newServer(t, change)
	s.http = httptest.NewServer(s.handler())
	t.Cleanup(func() {
		s.close()
		s.http.Close()
	})
	return s
}

// handler returns what answers requests.
func (s *server) handler() http.Handler {
	return s.front.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not of this front", http.StatusTeapot)
	}))
}

// newServer returns a server with an open database, which nobody can reach yet.
func newServer(t testing.TB, change func(*wire.Options, *outbox.Options)) *server {
	t.Helper()
	s, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(s, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, s.LastMillis()), Deadline: enginetest.Unhurried})
	db, err := c.Create("default")
	if err == nil {
		_, err = db.SetRules(context.Background(), state.OpenRules)
	}
	if err != nil {
		t.Fatal(err)
	}
	opts := wire.Options{
		Catalog: c, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Hosts: hosts.Hosts{DefaultDatabase: "default"}, MaxBody: 32 << 20,
	}
	limits := outbox.Options{Spread: 10 * time.Millisecond}
	if change != nil {
		change(&opts, &limits)
	}
	opts.Clients = outbox.New(limits)
	srv := &server{t: t, front: wire.New(opts), clients: opts.Clients, db: &enginetest.Fixture{T: t, Store: s, Database: db}}
	t.Cleanup(func() {
		srv.close()
		c.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// close ends all clients.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s.clients.Close(ctx)
}

// dial connects, and takes the hello.
func (s *server) dial(target string) (*wiretest.Client, string) {
	s.t.Helper()
	c := wiretest.Dial(s.t, s.dialing(target))
	return c, c.Hello()
}

func (s *server) dialing(target string) wiretest.Dialing {
	return wiretest.Dialing{Address: s.http.Listener.Addr().String(), Target: target}
}

// ask asks for something that is done.
func ask(t testing.TB, c *wiretest.Client, action, body string) (before []string, d string) {
	t.Helper()
	before, status, d := c.Ask(action, body)
	if status != "ok" {
		t.Fatalf("%s %.200s is answered %s %s", action, body, status, d)
	}
	return before, d
}

func TestSocket(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c, id := s.dial("")
	if !regexp.MustCompile(`^[A-Za-z0-9]{32}$`).MatchString(id) {
		t.Errorf("the id of the session is %q", id)
	}
	ask(t, c, "s", `{"c":{"sdk.js.12-19-0":1}}`)
	before, _ := ask(t, c, "q", `{"p":"/a","h":""}`)
	if len(before) != 0 {
		t.Errorf("a client that knows that nothing is there is told %q", before)
	}
	before, _ = ask(t, c, "p", `{"p":"/a","d":{"b":1}}`)
	if want := `{"t":"d","d":{"a":"d","b":{"p":"a","d":{"b":1}}}}`; len(before) != 1 || before[0] != want {
		t.Errorf("before the reply the client is told %q, want %s", before, want)
	}
	s.db.Put("/a/c", `"ä😀"`)
	c.Expect(`{"t":"d","d":{"a":"d","b":{"p":"a/c","d":"ä😀"}}}`)
	if _, d := ask(t, c, "g", `{"p":"/a","q":{}}`); d != `{"b":1,"c":"ä😀"}` {
		t.Errorf("/a is %s", d)
	}
	c.Send(`{"t":"c","d":{"t":"p","d":{}}}`)
	c.Expect(`{"t":"c","d":{"t":"o","d":{}}}`)
}

// TestSocketShares: two clients that listen to a place are sent the same frames, but for
// the tags of queries.
func TestSocketShares(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.db.Put("/a", `{"x":1}`)
	var plain, tagged []*wiretest.Client
	for i := range 3 {
		c, _ := s.dial("")
		ask(t, c, "q", `{"p":"/a","h":""}`)
		plain = append(plain, c)
		c, _ = s.dial("")
		ask(t, c, "q", fmt.Sprintf(`{"p":"/a","q":{"l":10,"vf":"l","i":".key"},"t":%d,"h":""}`, 10+i))
		tagged = append(tagged, c)
	}
	for _, text := range []string{`2`, `"` + strings.Repeat("long ", 10_000) + `"`} {
		s.db.Put("/a/y", text)
		for i := range 3 {
			plain[i].Expect(`{"t":"d","d":{"a":"d","b":{"p":"a/y","d":` + text + `}}}`)
			got := tagged[i].Next()
			want := fmt.Sprintf(`,"t":%d}}}`, 10+i)
			if !strings.HasSuffix(got, want) || !strings.Contains(got, text) {
				t.Errorf("the query is told %.80s … %s, want the end %s", got, got[max(0, len(got)-40):], want)
			}
		}
	}
}

// TestSocketEmptyWindow: a window that shows nothing is null, as all that is not there.
func TestSocketEmptyWindow(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.db.Put("/a", `{"x":1,"y":2}`)
	c, _ := s.dial("")
	const query = `{"sp":"z","i":".key"}`
	before, _ := ask(t, c, "q", `{"p":"/a","q":`+query+`,"t":1,"h":"of what is gone"}`)
	if want := `{"t":"d","d":{"a":"d","b":{"p":"a","d":null,"t":1}}}`; len(before) != 1 || before[0] != want {
		t.Errorf("the client is told %q, want %s", before, want)
	}
	if _, d := ask(t, c, "g", `{"p":"/a","q":`+query+`}`); d != "null" {
		t.Errorf("the answer is %s, want null", d)
	}
	for _, put := range [][2]string{{`{"x":1,"zz":3}`, `{"zz":3}`}, {`{"x":2}`, "null"}} {
		before, _ := ask(t, c, "p", `{"p":"/a","d":`+put[0]+`}`)
		if want := `{"t":"d","d":{"a":"d","b":{"p":"a","d":` + put[1] + `,"t":1}}}`; len(before) != 1 || before[0] != want {
			t.Errorf("after %s the client is told %q, want %s", put[0], before, want)
		}
	}
}

func TestSocketLong(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c, _ := s.dial("")
	text := `"` + strings.Repeat("0123456789äöüß😀", 20_000) + `"` // 0.4 MB in segments, both ways
	ask(t, c, "p", `{"p":"/long","d":`+text+`}`)
	before, _ := ask(t, c, "q", `{"p":"/long","h":""}`)
	if len(before) != 1 || before[0] != `{"t":"d","d":{"a":"d","b":{"p":"long","d":`+text+`}}}` {
		t.Errorf("the client is told %d messages", len(before))
	}
	for i := range 40 {
		s.db.Put(fmt.Sprintf("/many/%02d", i), text)
	}
	if _, d := ask(t, c, "g", `{"p":"/many","q":{}}`); len(d) < 40*len(text) { // 16 MB
		t.Errorf("the answer has %d bytes", len(d))
	}
}

func TestSocketRefuses(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for target, want := range map[string]int{"/.ws?ns=none": 404, "/.ws?ns=A/B": 400, "/.wsx": 418} {
		_, err := wiretest.Try(t, s.dialing(target))
		var refused *wiretest.Refused
		if !errors.As(err, &refused) || refused.Status != want {
			t.Errorf("%s is answered %v, want %d", target, err, want)
		}
	}
	answer, err := http.Get(s.http.URL + "/.ws?v=5")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUpgradeRequired || answer.Header.Get("Upgrade") != "websocket" {
		t.Errorf("a request without upgrade is answered %d, Upgrade: %s", answer.StatusCode, answer.Header.Get("Upgrade"))
	}
	if open := s.clients.Stats(outbox.Socket).Open; open != 0 {
		t.Errorf("%d clients are open", open)
	}
}

func TestSocketDev(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *wire.Options, _ *outbox.Options) { o.Dev = dev.Guard{On: true} })
	d := s.dialing("")
	d.Header = http.Header{"Origin": {"https://attacker.example"}}
	var refused *wiretest.Refused
	if _, err := wiretest.Try(t, d); !errors.As(err, &refused) || refused.Status != 403 {
		t.Errorf("a page of a stranger: %v, want 403", err)
	}
	d.Header = http.Header{"Origin": {"http://localhost:3000"}}
	c := wiretest.Dial(t, d)
	c.Hello()
	ask(t, c, "auth", `{"cred":"owner"}`)
}

func TestSocketsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ *wire.Options, o *outbox.Options) { o.MaxSockets = 8 })
	tries := func() int {
		_, err := wiretest.Try(t, s.dialing(""))
		var refused *wiretest.Refused
		if errors.As(err, &refused) {
			return refused.Status
		}
		return 0
	}
	a, _ := s.dial("")
	s.dial("")
	if got := tries(); got != 503 { // a quarter are strangers
		t.Fatalf("a third stranger is answered %d, want 503", got)
	}
	ask(t, a, "q", `{"p":"/a","h":""}`)
	if got := tries(); got != 0 {
		t.Fatalf("a stranger after another was met is answered %d", got)
	}
}

// TestStrangersGiveWay: who has neither logged in nor was granted anything makes room for
// others.
func TestStrangersGiveWay(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	s := serve(t, func(_ *wire.Options, o *outbox.Options) {
		o.MaxSockets = 16 // 4 are strangers
		o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	var known []*wiretest.Client
	for action, body := range map[string]string{
		"q": `{"p":"/a","h":""}`, "g": `{"p":"/a","q":{}}`, "p": `{"p":"/a","d":1}`, "m": `{"p":"/a","d":{"b":1}}`,
	} {
		c, _ := s.dial("")
		ask(t, c, action, body)
		known = append(known, c)
	}
	stranger, _ := s.dial("")
	ask(t, stranger, "s", `{"c":{}}`)
	ask(t, stranger, "unauth", `{}`)
	poller, _ := s.poll("")
	for range 2 {
		s.dial("")
	}
	later.Store(int64(10 * time.Second))
	s.dial("")
	stranger.ExpectClose(1008)
	s.dial("")
	poller.Expect("")
	for _, c := range known {
		ask(t, c, "s", `{"c":{}}`)
	}
	gone := func() int64 { return s.clients.Stats(outbox.Socket).Closed["crowded"] }
	for began := time.Now(); gone() < 2 && time.Since(began) < 10*time.Second; { // a client is told before it is counted
		<-time.After(time.Millisecond)
	}
	if n := gone(); n != 2 {
		t.Errorf("%d had to go, want 2", n)
	}
}

func TestSocketEnds(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, test := range []struct {
		what string
		send func(c *wiretest.Client)
		code int
	}{
		{"no message", func(c *wiretest.Client) {
			c.SendFrames(wiretest.Text(`{"t":`))
		}, 1003},
		{"a close frame", func(c *wiretest.Client) { c.Close(1000) }, 1000},
		{"binary", func(c *wiretest.Client) {
			c.SendFrames(wiretest.Frame{Op: wiretest.OpBinary, Masked: true, Payload: []byte(`{}`)})
		}, 1003},
		{"an empty frame", func(c *wiretest.Client) { c.SendFrames(wiretest.Text("")) }, 1003},
		{"too many segments", func(c *wiretest.Client) { c.SendFrames(wiretest.Text("1101")) }, 1009},
		{"less than no segments", func(c *wiretest.Client) { c.SendFrames(wiretest.Text("-1")) }, 1009},
		{"a long segment", func(c *wiretest.Client) {
			c.SendFrames(wiretest.Text("2"), wiretest.Text(strings.Repeat(" ", 64<<10+1)))
		}, 1009},
		{"a long frame", func(c *wiretest.Client) {
			c.Write([]byte{0x81, 0xff, 0, 0, 0, 0, 1, 0, 0, 1, 1, 2, 3, 4}) // 16 MiB and a byte are announced
		}, 1009},
		{"no mask", func(c *wiretest.Client) {
			c.SendFrames(wiretest.Frame{Op: wiretest.OpText, Payload: []byte(`{}`)})
		}, 1002},
		{"a reserved bit", func(c *wiretest.Client) { c.Write([]byte{0xc1, 0x82, 0, 0, 0, 0, '{', '}'}) }, 1002},
		{"a fragment of nothing", func(c *wiretest.Client) {
			c.SendFrames(wiretest.Frame{Op: wiretest.OpContinuation, Masked: true, Payload: []byte(`{}`)})
		}, 1002},
		{"not UTF-8", func(c *wiretest.Client) { c.SendFrames(wiretest.Text("{\"\xff\":1}")) }, 1007},
	} {
		c, _ := s.dial("")
		test.send(c)
		t.Log(test.what)
		c.ExpectClose(test.code)
	}
	c, _ := s.dial("")
	c.Ping("hey")
	ask(t, c, "s", `{"c":{}}`)
	// Just as much as there may be.
	message := request(2, "s", `{"c":{}}`)
	c.SendAs(message, wiretest.Text("2"), wiretest.Text(message), wiretest.Text(strings.Repeat(" ", 64<<10)))
	c.Expect(reply(2, `""`))
	segments := []wiretest.Frame{wiretest.Text("1100"), wiretest.Text(request(3, "s", `{"c":{}}`))}
	for len(segments) < 1101 {
		segments = append(segments, wiretest.Text(" "))
	}
	c.SendAs(request(3, "s", `{"c":{}}`), segments...)
	c.Expect(reply(3, `""`))
}

func TestSocketComesBack(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	old, id := s.dial("")
	ask(t, old, "q", `{"p":"/a","h":""}`)
	c, again := s.dial("/.ws?v=5&ls=" + id)
	if again == id {
		t.Error("the new session has the id of the old one")
	}
	old.ExpectClose(1000)
	ask(t, c, "q", `{"p":"/a","h":""}`)
}

// TestSocketComesBackToAFullServer: the place of its old session is free for it.
func TestSocketComesBackToAFullServer(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ *wire.Options, o *outbox.Options) { o.MaxSockets = 1 })
	_, id := s.dial("")
	_, id = s.dial("/.ws?v=5&ls=" + id)
	_, id = s.poll("&ls=" + id)
	s.dial("/.ws?v=5&ls=" + id)
}

func TestSocketDrain(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c, _ := s.dial("")
	for i := range 100 {
		c.Request("p", fmt.Sprintf(`{"p":"/a/%d","d":1}`, i))
	}
	for range 10 {
		c.Next()
	}
	done := make(chan struct{})
	go func() { defer close(done); s.close() }()
	c.ExpectClose(1001)
	<-done
	// What was answered was made; what was not taken was not.
	left := c.Unanswered()
	view := s.db.View()
	defer view.Close()
	var text strings.Builder
	printer, err := view.Shallow(enginetest.Path(t, "/a"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = printer.Close() }()
	if err := printer.PrintTo(&text); err != nil {
		t.Fatal(err)
	}
	if made := strings.Count(text.String(), ":true"); made+len(left) != 100 {
		t.Errorf("%d writes were made, %d were not answered, want 100 together", made, len(left))
	}
	var refused *wiretest.Refused
	if _, err := wiretest.Try(t, s.dialing("")); !errors.As(err, &refused) || refused.Status != 503 {
		t.Errorf("a client that comes while the server stops: %v, want 503", err)
	}
}
