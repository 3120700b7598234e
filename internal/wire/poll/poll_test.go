package poll_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/poll"
	"github.com/livetree/livetree/internal/wiretest"
)

const hello = `{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"localhost","s":"0123456789abcdefghijABCDEFGHIJ01"}}}`

// note returns a message of the server that may come at any time.
func note(text string) string { return `{"t":"c","d":{"t":"e","d":"` + text + `"}}` }

// A site is a server of lines, on which nothing answers by itself.
type site struct {
	t      testing.TB
	lines  *poll.Lines
	budget *budget
	opened chan *poll.Line
	refuse error
}

// A budget counts what is taken.
type budget struct {
	mu   sync.Mutex
	used int
}

func (b *budget) Charge(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
	return b.used < 64<<20
}

func (b *budget) Release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
}

func newSite(t testing.TB) *site {
	clients := outbox.New(outbox.Options{Now: time.Now, Blocked: 10 * time.Second})
	t.Cleanup(func() { clients.Close(context.Background()) })
	b := &budget{}
	return &site{
		t: t, budget: b, opened: make(chan *poll.Line, 10),
		lines: poll.New(poll.Options{Patience: clients.Patience, Budget: func(*http.Request) frame.Budget { return b }}),
	}
}

// ServeHTTP is what a front does around the lines.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := s.lines.Serve(w, r, r.URL.Query().Get("ns"), func(line *poll.Line) error {
		if s.refuse != nil {
			return s.refuse
		}
		if err := line.Send(frame.Append(nil, []byte(hello))); err != nil {
			s.t.Error(err)
		}
		s.opened <- line
		return nil
	})
	if err != nil {
		status := http.StatusBadRequest
		if fault.KindOf(err) != fault.Invalid {
			status = http.StatusServiceUnavailable
		}
		http.Error(w, err.Error(), status)
	}
}

// A recorder is where a handler writes to without a network.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetWriteDeadline(time.Time) error { return nil }

// fetch asks the site without a network, so that time can be that of a bubble.
func (s *site) fetch(target string) (*http.Response, error) {
	w := recorder{httptest.NewRecorder()}
	s.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w.Result(), nil
}

// get returns the body of an answer.
func (s *site) get(target string) string {
	answer, _ := s.fetch(target)
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Error(err)
	}
	return string(body)
}

// begin starts a line by hand, without a client that polls. The client is no stranger.
func (s *site) begin() (line *poll.Line, address string) {
	line, address = s.beginStranger()
	line.Meet()
	s.get(address + "&dframe=t")
	return line, address
}

func (s *site) beginStranger() (line *poll.Line, address string) {
	body := s.get("/.lp?start=t&ser=1&cb=1&v=5")
	_, rest, _ := strings.Cut(body, "pLPCommand('start','")
	id, rest, _ := strings.Cut(rest, "','")
	password, _, ok := strings.Cut(rest, "');")
	if !ok {
		s.t.Fatalf("the start is answered with %q", body)
	}
	return <-s.opened, "/.lp?id=" + id + "&pw=" + password + "&ser=1"
}

func send(t testing.TB, line *poll.Line, messages ...string) {
	t.Helper()
	var all []byte
	for _, message := range messages {
		all = frame.Append(all, []byte(message))
	}
	if err := line.Send(all); err != nil {
		t.Error(err)
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const want = `function pLPCommand(c, a1, a2, a3, a4) {
parent.window["pLPCommand12"] && parent.window["pLPCommand12"](c, a1, a2, a3, a4);
}
function pRTLPCB(pN, data) {
parent.window["pRTLPCB12"] && parent.window["pRTLPCB12"](pN, data);
}
pLPCommand('start','ID','PW');
pRTLPCB(0,[` + hello + `]);`
	body := s.get("/.lp?start=t&ser=12345&cb=12&v=5&p=app")
	_, rest, _ := strings.Cut(body, "'start','")
	id, rest, _ := strings.Cut(rest, "','")
	password, _, _ := strings.Cut(rest, "'")
	if got := strings.NewReplacer(id, "ID", password, "PW").Replace(body); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if len(id) < 26 || len(password) < 26 || id == password {
		t.Errorf("id %q, password %q", id, password)
	}
	for _, callback := range []string{"", "x", "-1", `1"]`, "1.5", strings.Repeat("1", 30)} {
		if answer, _ := s.fetch("/.lp?start=t&cb=" + strings.ReplaceAll(callback, `"`, "%22")); answer.StatusCode != 400 {
			t.Errorf("cb=%s is answered with %d, want 400", callback, answer.StatusCode)
		}
	}
	if s.refuse = fault.New(fault.Unavailable, "too many clients"); s.lines.Count() != 1 {
		t.Errorf("%d lines, want 1", s.lines.Count())
	}
	if answer, _ := s.fetch("/.lp?start=t&cb=1"); answer.StatusCode != 503 || s.lines.Count() != 1 {
		t.Errorf("a refused start is answered with %d, and there are %d lines", answer.StatusCode, s.lines.Count())
	}
}

func TestPollIsHeldFor20Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		defer line.Close()
		for n := 1; n < 4; n++ {
			began := time.Now()
			want := "pRTLPCB(" + string(rune('0'+n)) + ",[]);"
			if got := s.get(address); got != want || time.Since(began) != 20*time.Second {
				t.Errorf("a poll is answered with %s after %v, want %s after 20s", got, time.Since(began), want)
			}
		}
		time.AfterFunc(time.Second, func() { send(t, line, note("a"), note("b")) })
		began := time.Now()
		if got, want := s.get(address), "pRTLPCB(4,["+note("a")+","+note("b")+"]);"; got != want || time.Since(began) != time.Second {
			t.Errorf("a poll is answered with %s after %v, want %s after 1s", got, time.Since(began), want)
		}
	})
}

func TestNewPollFreesTheOlder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		defer line.Close()
		answers := make(chan string, 3)
		ask := func() {
			go func() { answers <- s.get(address) }()
			synctest.Wait()
		}
		ask()
		if len(answers) > 0 {
			t.Error("the first poll is not held")
		}
		began := time.Now()
		ask()
		if got := <-answers; got != "pRTLPCB(1,[]);" || time.Since(began) != 0 {
			t.Errorf("the older poll is answered with %s after %v", got, time.Since(began))
		}
		send(t, line, note("a"))
		if got := <-answers; got != "pRTLPCB(2,["+note("a")+"]);" {
			t.Errorf("the newer poll is answered with %s", got)
		}
	})
}

// TestClientThatGivesAPollUp: the number of an answer is not lost with it.
func TestClientThatGivesAPollUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		defer line.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.ServeHTTP(recorder{httptest.NewRecorder()}, httptest.NewRequestWithContext(ctx, "GET", address, nil))
		send(t, line, note("a"))
		if got, want := s.get(address), "pRTLPCB(1,["+note("a")+"]);"; got != want {
			t.Errorf("the next poll is answered with %s, want %s", got, want)
		}
	})
}

// A broken is where a handler writes to when the client has gone.
type broken struct{ recorder }

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestAnswerThatIsLost: the client would wait for its number for ever.
func TestAnswerThatIsLost(t *testing.T) {
	t.Parallel()
	for name, messages := range map[string][]string{"with messages": {note("a")}, "empty": nil} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			line, address := s.begin()
			defer line.Close()
			send(t, line, messages...)
			s.ServeHTTP(broken{recorder{httptest.NewRecorder()}}, httptest.NewRequest("GET", address, nil))
			if _, err := line.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: Next returns %v, want EOF", name, err)
			}
			if got := s.get(address); got != "pLPCommand('close');" {
				t.Errorf("%s: the next poll is answered with %s", name, got)
			}
		})
	}
}

func TestEndByTheServer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(*poll.Line)
		want []string // answers to polls
	}{
		{"at once", func(l *poll.Line) { l.Close() }, []string{"pLPCommand('close');", "pLPCommand('close');"}},
		{"after something was said", func(l *poll.Line) { _ = l.Send(frame.Append(nil, []byte(note("a")))); l.Close() },
			[]string{"pRTLPCB(1,[" + note("a") + "]);", "pLPCommand('close',1);", "pLPCommand('close',1);"}},
		{"after much was said", func(l *poll.Line) {
			_ = l.Send(frame.Append(nil, []byte(note(strings.Repeat("x", 17<<10)))))
			l.Close()
		}, []string{"pLPCommand('close');"}},
		{"with a close frame", func(l *poll.Line) { _ = l.Send(frame.AppendClose(nil, 1001, "")); l.Close() }, []string{"pLPCommand('close');"}},
		{"cut", func(l *poll.Line) { _ = l.Send(frame.Append(nil, []byte(note("a")))); l.Cut() }, []string{"pLPCommand('close');"}},
		{"inside a message", func(l *poll.Line) {
			_ = l.Send(frame.Append(nil, []byte(note(strings.Repeat("x", 40000))))[:20000])
			l.Cut()
		}, []string{"pLPCommand('close');"}},
	}
	for _, test := range tests {
		s := newSite(t)
		line, address := s.begin()
		test.end(line)
		for _, want := range test.want {
			if got := s.get(address); got != want {
				t.Errorf("%s: %s, want %s", test.name, got, want)
			}
		}
		if _, err := line.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: Next returns %v, want EOF", test.name, err)
		}
		if err := line.Send([]byte("x")); err == nil || !line.Gone() {
			t.Errorf("%s: Send returns %v, Gone %v", test.name, err, line.Gone())
		}
	}
}

// TestEndWhileAPollIsHeld: a poll that is held learns of the end at once.
func TestEndWhileAPollIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		answer := make(chan string)
		go func() { answer <- s.get(address) }()
		synctest.Wait()
		began := time.Now()
		line.Close()
		if got := <-answer; got != "pLPCommand('close');" || time.Since(began) != 0 {
			t.Errorf("%s after %v", got, time.Since(began))
		}
		time.Sleep(59 * time.Second) //nolint:forbidigo // fake time
		if s.lines.Count() != 1 {
			t.Error("the line is forgotten too early")
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
		if s.lines.Count() != 0 {
			t.Error("the line is not forgotten")
		}
	})
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	line, address := s.begin()
	defer line.Close()
	id, _, _ := strings.Cut(strings.TrimPrefix(address, "/.lp?id="), "&")
	for _, wrong := range []string{
		"/.lp?id=" + id + "&pw=x", "/.lp?id=" + id, "/.lp?id=x&pw=x", "/.lp?",
		address + "&ns=other",
	} {
		answer, _ := s.fetch(wrong)
		body, _ := io.ReadAll(answer.Body)
		if string(body) != "pLPCommand('close');" || answer.StatusCode != 200 {
			t.Errorf("%s: status %d, %s", wrong, answer.StatusCode, body)
		}
		if body := s.get(strings.Replace(wrong, "?", "?disconn=t&", 1)); body != "" || line.Gone() {
			t.Errorf("%s ends the line: %q", wrong, body)
		}
		if body := s.get(strings.Replace(wrong, "?", "?dframe=t&", 1)); body != "" {
			t.Errorf("the page of %s is %q", wrong, body)
		}
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		time.Sleep(59 * time.Second) //nolint:forbidigo // fake time
		s.get(address)               // 20 seconds
		began := time.Now()
		if _, err := line.Next(); !errors.Is(err, io.EOF) || time.Since(began) != 60*time.Second {
			t.Errorf("Next returns %v after %v, want EOF after 60s", err, time.Since(began))
		}
		synctest.Wait()
		if !line.Gone() || s.lines.Count() != 0 {
			t.Errorf("Gone is %v, and there are %d lines", line.Gone(), s.lines.Count())
		}
		line.Close()
	})
}

// TestGoneWithoutItsPage: a client whose page that reports its end was not loaded cannot tell that
// it is left between two polls. It is missed sooner.
func TestGoneWithoutItsPage(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]time.Duration{"": unreported, "&dframe=t": 10*time.Second + 60*time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			line, address := s.beginStranger()
			line.Meet()
			s.get(address) // 20 seconds
			began := time.Now()
			if page != "" {
				time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
				s.get(address + page)
			}
			if _, err := line.Next(); !errors.Is(err, io.EOF) || time.Since(began) != want {
				t.Errorf("with the page %q: Next returns %v after %v, want EOF after %v", page, err, time.Since(began), want)
			}
			line.Close()
		})
	}
}

const unreported = 16 * time.Second

// TestStrangerGone: a client that anybody can be is gone sooner, unless it is met meanwhile.
func TestStrangerGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		gone, address := s.beginStranger()
		met, page := s.beginStranger()
		s.get(page + "&dframe=t")
		time.Sleep(9 * time.Second) //nolint:forbidigo // fake time
		met.Meet()
		s.get(address)              // 20 seconds
		time.Sleep(9 * time.Second) //nolint:forbidigo // fake time
		if gone.Gone() {
			t.Error("a stranger is gone 9 seconds after its last poll")
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
		if !gone.Gone() || met.Gone() {
			t.Errorf("a stranger is gone after 11 seconds: %v; one that was met in time after 31: %v", gone.Gone(), met.Gone())
		}
		if time.Sleep(30 * time.Second); !met.Gone() { //nolint:forbidigo // fake time
			t.Error("one that was met is not gone after a minute")
		}
		gone.Close()
		met.Close()
	})
}

// TestBrokenOff: a page that was left while a poll was held has gone soon, though it could not say
// so; not if another poll comes.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		breakOff := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			w := recorder{httptest.NewRecorder()}
			s.ServeHTTP(w, httptest.NewRequest("GET", address, nil).WithContext(ctx))
			if body := w.Body.String(); body != "" {
				t.Errorf("the poll is answered %s, want that it is held", body)
			}
		}
		breakOff()
		time.Sleep(4 * time.Second) //nolint:forbidigo // fake time
		s.get(address)              // 20 seconds
		time.Sleep(9 * time.Second) //nolint:forbidigo // fake time
		if line.Gone() {
			t.Error("the client has gone, though it has polled again")
		}
		breakOff()
		began := time.Now()
		if _, err := line.Next(); !errors.Is(err, io.EOF) || time.Since(began) != 5*time.Second {
			t.Errorf("Next returns %v after %v, want EOF after 5s", err, time.Since(began))
		}
	})
}

func TestLeave(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST"} {
		s := newSite(t)
		line, address := s.begin()
		w := recorder{httptest.NewRecorder()}
		s.ServeHTTP(w, httptest.NewRequest(method, strings.Replace(address, "?", "?disconn=t&", 1), nil))
		if w.Code != 200 || w.Body.Len() > 0 {
			t.Errorf("%s: status %d, %q", method, w.Code, w.Body)
		}
		if _, err := line.Next(); !errors.Is(err, io.EOF) || s.lines.Count() != 0 {
			t.Errorf("%s: %v, with %d lines", method, err, s.lines.Count())
		}
	}
	s := newSite(t)
	_, address := s.begin()
	for _, method := range []string{"POST", "PUT", "HEAD"} {
		w := recorder{httptest.NewRecorder()}
		s.ServeHTTP(w, httptest.NewRequest(method, address, nil))
		if w.Code != 400 {
			t.Errorf("a poll by %s: status %d, want 400", method, w.Code)
		}
	}
}

func TestPageThatReportsTheEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	body := s.get("/.lp?start=t&cb=1&ns=na%22me")
	_, rest, _ := strings.Cut(body, "'start','")
	id, rest, _ := strings.Cut(rest, "','")
	password, _, _ := strings.Cut(rest, "'")
	answer, _ := s.fetch("/.lp?dframe=t&id=" + id + "&pw=" + password + "&ns=na%22me")
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"/.lp?disconn=t&id=` + id + `&pw=` + password + `&ns=na%22me"`, `navigator.sendBeacon(`, `"pagehide"`, `"unload"`, `XMLHttpRequest`,
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %s:\n%s", want, page)
		}
	}
	if answer.Header.Get("Content-Type") != "text/html; charset=utf-8" || answer.Header.Get("X-Frame-Options") != "" {
		t.Errorf("the page has the headers %v", answer.Header)
	}
}

func TestSlowClientIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		defer line.Close()
		message := frame.Append(nil, []byte(note(strings.Repeat("x", 16000))))
		began := time.Now()
		sent := 0
		var err error
		for err == nil {
			if err = line.Send(message); err == nil {
				sent += len(message)
			}
		}
		if outbox.Why(err) != outbox.Slow || time.Since(began) != 10*time.Second || sent > 300<<10 || sent < 200<<10 {
			t.Errorf("after %d bytes and %v: %v", sent, time.Since(began), err)
		}
		// A poll makes room again.
		time.AfterFunc(time.Second, func() {
			if got := s.get(address); len(got) < sent/2 {
				t.Errorf("the poll is answered with %d bytes", len(got))
			}
		})
		if err := line.Send(message); err != nil {
			t.Error(err)
		}
	})
}

func TestWholeConnection(t *testing.T) {
	t.Parallel()
	for name, version2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		s := newSite(t)
		server := httptest.NewUnstartedServer(s)
		server.EnableHTTP2 = version2
		server.StartTLS()
		defer server.Close()
		answer, err := server.Client().Get(server.URL + "/.lp")
		if err != nil || answer.ProtoMajor == 2 != version2 {
			t.Fatalf("%s: %v, %v", name, answer, err)
		}
		answer.Body.Close()

		p := wiretest.Poll(t, wiretest.Over(server.Client(), server.URL), "&ns=name", "&ls=x")
		p.Expect(hello)
		line := <-s.opened
		long := note(strings.Repeat("漢😀\u2028x", 100000))
		go func() {
			for range 50 {
				text, err := line.Next()
				if err != nil {
					t.Error(err)
					break
				}
				send(t, line, note(strings.Trim(string(text), `{}"`)))
			}
			send(t, line, long, note("end"))
			line.Close()
		}()
		for i := range 50 {
			p.Send(`{"` + strings.Repeat(string(rune('a'+i%26)), i*i) + `é"}`)
		}
		for i := range 50 {
			p.Expect(note(strings.Repeat(string(rune('a'+i%26)), i*i) + "é"))
		}
		p.Expect(strings.ReplaceAll(long, "\u2028", `\u2028`), note("end"), "")
	}
}
