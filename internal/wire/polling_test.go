package wire_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire"
	"github.com/livetree/livetree/internal/wiretest"
)

// poll begins a session by long polling, and returns the id that hello told.
func (s *server) poll(start string) (*wiretest.Poller, string) {
	s.t.Helper()
	p := wiretest.Poll(s.t, wiretest.Over(http.DefaultClient, s.http.URL), "&ns=default", start)
	hello, err := p.Next()
	if err != nil {
		s.t.Fatal(err)
	}
	_, id, _ := strings.Cut(hello, `"s":"`)
	return p, strings.TrimSuffix(id, `"}}}`)
}

// request returns the text of a request.
func request(r int, action, body string) string {
	return fmt.Sprintf(`{"t":"d","d":{"r":%d,"a":%q,"b":%s}}`, r, action, body)
}

func reply(r int, d string) string {
	return fmt.Sprintf(`{"t":"d","d":{"r":%d,"b":{"s":"ok","d":%s}}}`, r, d)
}

func push(p, d string) string {
	return fmt.Sprintf(`{"t":"d","d":{"a":"d","b":{"p":%q,"d":%s}}}`, p, d)
}

func TestPollingSession(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	p, _ := s.poll("")
	p.Send(request(1, "q", `{"p":"/a","h":""}`))
	p.Expect(reply(1, `{}`))
	long := `"` + strings.Repeat("é", 50000) + `"`
	p.Send(request(2, "p", `{"p":"/a/b","d":`+long+`}`))
	p.Expect(push("a/b", long), reply(2, `""`))
	c, _ := s.dial("/.ws?v=5&ns=default")
	ask(t, c, "p", `{"p":"a/c","d":"x"}`)
	p.Expect(push("a/c", `"x"`))
	p.Send(`{"t":"c","d":{"t":"p","d":{}}}`)
	p.Expect(`{"t":"c","d":{"t":"o","d":{}}}`)
	s.close()
	p.Expect("")
}

func TestPollingIsTakenOver(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	p, id := s.poll("")
	p.Send(request(1, "q", `{"p":"/a","h":""}`))
	p.Expect(reply(1, `{}`))

	dialing := s.dialing("/.ws?v=5&ns=default&s=" + id)
	dialing.TakesOver = true
	c := wiretest.Dial(t, dialing)
	c.Expect(`{"t":"c","d":{"t":"a","d":{}}}`)
	for range 2 {
		c.Send(`{"t":"c","d":{"t":"p","d":{}}}`)
		c.Ping("before")
		c.Send(`{"t":"c","d":{"t":"p","d":{}}}`)
		c.Expect(`{"t":"c","d":{"t":"o","d":{}}}`, `{"t":"c","d":{"t":"o","d":{}}}`)
	}
	if n := c.Pending(); n != 0 {
		t.Errorf("%d pings of the websocket are not answered while it is tried", n)
	}
	other, _ := s.dial("/.ws?v=5&ns=default")
	ask(t, other, "p", `{"p":"a/b","d":1}`)
	p.Expect(push("a/b", `1`))

	c.Send(`{"t":"c","d":{"t":"a","d":{}}}`)
	p.Send(request(2, "p", `{"p":"a/c","d":2}`))
	p.Send(`{"t":"c","d":{"t":"n","d":{}}}`)
	c.Follow(p)
	long := `"` + strings.Repeat("x", 1000) + `"` // more than the first buffer holds
	c.Send(request(3, "p", `{"p":"a/d","d":`+long+`}`))
	byPoll := []string{}
	for {
		text, err := p.Next()
		if err != nil {
			break
		}
		byPoll = append(byPoll, text)
	}
	if n := len(byPoll); n == 0 || byPoll[n-1] != `{"t":"c","d":{"t":"n","d":{}}}` {
		t.Fatalf("by poll came %q, and no n at the end", byPoll)
	}
	all := byPoll[:len(byPoll)-1]
	for len(all) < 4 {
		all = append(all, c.Next())
	}
	want := []string{push("a/c", `2`), reply(2, `""`), push("a/d", long), reply(3, `""`)}
	if strings.Join(all, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", all, want)
	}
	ask(t, other, "p", `{"p":"a/e","d":4}`)
	c.Expect(push("a/e", `4`))
	c.Ping("after")
	c.Send(`{"t":"c","d":{"t":"p","d":{}}}`)
	c.Expect(`{"t":"c","d":{"t":"o","d":{}}}`)
	if n := c.Pending(); n != 0 {
		t.Errorf("%d pings of the websocket are not answered after it has taken over", n)
	}
	c.Close(1000)
	c.ExpectClose(1000)
}

func TestTakeOverOfNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	_, socketID := s.dial("/.ws?v=5&ns=default")
	for _, id := range []string{"unknown", socketID} {
		dialing := s.dialing("/.ws?v=5&ns=default&s=" + id)
		dialing.TakesOver = true
		c := wiretest.Dial(t, dialing)
		c.Expect(fmt.Sprintf(`{"t":"c","d":{"t":"r","d":%q}}`, dialing.Address))
		c.ExpectClose(1000)
	}
}

// TestTakeOverWhileTheServerStops: no websocket is opened then.
func TestTakeOverWhileTheServerStops(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	_, id := s.poll("")
	s.close()
	dialing := s.dialing("/.ws?v=5&ns=default&s=" + id)
	dialing.TakesOver = true
	var refused *wiretest.Refused
	if _, err := wiretest.Try(t, dialing); !errors.As(err, &refused) || refused.Status != 503 {
		t.Errorf("a websocket that is to take over: %v, want 503", err)
	}
}

func TestPollingEndsTheOldSession(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	first, id := s.poll("")
	second, id := s.poll("&ls=" + id)
	first.Expect("")
	c, _ := s.dial("/.ws?v=5&ns=default&ls=" + id)
	second.Expect("")
	ask(t, c, "s", `{"c":{}}`)
}

func TestPollingIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ *wire.Options, limits *outbox.Options) { limits.MaxSockets = 1 })
	for target, want := range map[string]int{
		"/.lp?start=t&cb=1&ns=default": 200,
		"/.lp?start=t&cb=x&ns=default": 400,
		"/.lp?start=t&cb=1&ns=other":   404,
		"/.lp?ns=default":              200,
	} {
		answer, err := http.Get(s.http.URL + target)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("%s is answered with %d, want %d", target, answer.StatusCode, want)
		}
	}
	answer, err := http.Get(s.http.URL + "/.lp?start=t&cb=1&ns=default")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" {
		t.Errorf("one too many is answered with %d, %v", answer.StatusCode, answer.Header)
	}
}

// A recorder is where a handler writes to without a network.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetWriteDeadline(time.Time) error { return nil }

// pollFrom asks for /.lp from an address, and does not wait if the poll is held.
func (s *server) pollFrom(addr, parameters string) string {
	ctx, cancel := context.WithCancel(s.t.Context())
	if !strings.Contains(parameters, "start=") {
		cancel()
	}
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/.lp?ns=default"+parameters, nil)
	r.RemoteAddr = addr + ":1000"
	w := recorder{httptest.NewRecorder()}
	s.front.Handler(nil).ServeHTTP(w, r)
	return w.Body.String()
}

// startFrom begins a line from an address, and returns the parameters of its polls.
func (s *server) startFrom(addr string) string {
	s.t.Helper()
	script := s.pollFrom(addr, "&start=t&cb=1")
	found := regexp.MustCompile(`'start','(\w+)','(\w+)'`).FindStringSubmatch(script)
	if found == nil {
		s.t.Fatalf("the start from %s is answered with %q", addr, script)
	}
	return "&id=" + found[1] + "&pw=" + found[2]
}

// TestPollingUnderDev: a page that does not tell which one it is gets no scripts.
func TestPollingUnderDev(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *wire.Options, _ *outbox.Options) { o.Dev = dev.Guard{On: true} })
	const browser = "Mozilla/5.0 (X11) Chrome/140"
	for _, test := range []struct {
		agent, referrer string
		want            int
	}{
		{"", "", 200},
		{browser, "", 403},
		{browser, "http://attacker.example/", 403},
		{browser, "http://192.168.1.5:3000/", 200},
	} {
		for _, parameters := range []string{"start=t&cb=1", "id=a&pw=b", "dframe=t&id=a&pw=b"} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http.URL+"/.lp?ns=default&"+parameters, nil)
			r.Header.Set("User-Agent", test.agent)
			r.Header.Set("Referer", test.referrer)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Body.Close(); answer.StatusCode != test.want {
				t.Errorf("%s of %q with the page %q: %d, want %d", parameters, test.agent, test.referrer, answer.StatusCode, test.want)
			}
		}
	}
}

// TestLeavingUnderDev: the page that reports its end is the server's own, and is heard by
// whatever name the server is called.
func TestLeavingUnderDev(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *wire.Options, _ *outbox.Options) { o.Dev = dev.Guard{On: true, Names: []string{"devbox.test"}} })
	other, _ := s.dial("/.ws?v=5&ns=default")
	ask(t, other, "q", `{"p":"/gone","h":""}`)
	for _, test := range []struct {
		method, header, value string
		want                  int
	}{
		{http.MethodPost, "Origin", "http://devbox.test:9000", 200}, // a beacon
		{http.MethodGet, "Referer", "http://devbox.test:9000/.lp?dframe=t", 200},
		{http.MethodPost, "Origin", "http://attacker.example", 403},
		{http.MethodGet, "Referer", "http://attacker.example/", 403},
	} {
		p, _ := s.poll("")
		p.Send(request(1, "o", `{"p":"/gone/`+test.method+`","d":"`+test.value+`"}`))
		p.Expect(reply(1, `""`))
		r, _ := http.NewRequestWithContext(t.Context(), test.method, s.http.URL+"/.lp?disconn=t&ns=default&id="+p.ID+"&pw="+p.Password, nil)
		r.Host = "devbox.test:9000"
		r.Header.Set("User-Agent", "Mozilla/5.0 (X11) Chrome/140")
		r.Header.Set(test.header, test.value)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != test.want {
			t.Errorf("%s with %s %s: %d, want %d", test.method, test.header, test.value, answer.StatusCode, test.want)
		}
		if test.want == 200 {
			other.Expect(push("gone/"+test.method, `"`+test.value+`"`))
			p.Expect("")
		} else {
			p.Send(`{"t":"c","d":{"t":"p","d":{}}}`)
			p.Expect(`{"t":"c","d":{"t":"o","d":{}}}`)
		}
	}
}

// TestPollersShareByNetwork: who polls takes no memory from those of other networks.
func TestPollersShareByNetwork(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	piece := "&ts0=100&d0=" + strings.Repeat("e30x", 1<<18) // 1 MiB of a message that does not end
	// fill sends 20 MiB by each line, from some address, and reports whether one has ended.
	fill := func(addr string, lines ...string) (ended bool) {
		for i := range 20 {
			for _, line := range lines {
				if strings.Contains(s.pollFrom(addr, fmt.Sprintf("%s&seg0=%d%s", line, i+1, piece)), "close") {
					return true
				}
			}
		}
		return false
	}
	// start begins a line that is no stranger's: on a busy machine requests may be seconds apart.
	start := func(addr string) string {
		line := s.startFrom(addr)
		s.pollFrom(addr, line+"&seg0=0&ts0=1&d0="+base64.RawURLEncoding.EncodeToString([]byte(request(1, "q", `{"p":"/a","h":""}`))))
		return line
	}
	// The network is that in which the line began.
	if !fill("192.0.2.1", start("2001:db8::1"), start("2001:db8::2")) {
		t.Error("two messages of 20 MiB are not too much for a network")
	}
	if fill("2001:db8::1", start("192.0.2.1")) {
		t.Error("a network is refused what another one has taken")
	}
}
