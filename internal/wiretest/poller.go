package wiretest

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Fetch gets an address below that of the server, such as "/.lp?start=t".
type Fetch func(target string) (*http.Response, error)

// Over returns the Fetch of a client of a server, whose address is like "http://host:port".
func Over(client *http.Client, server string) Fetch {
	return func(target string) (*http.Response, error) { return client.Get(server + target) }
}

// A Poller is a client by long polling that does what a browser does: it has a poll open at
// all times, and a second one if it has something to send. The test fails at the first
// violation.
type Poller struct {
	t     testing.TB
	fetch Fetch
	extra string // parameters of all requests

	// ID and Password are those of the connection.
	ID, Password string

	mu         sync.Mutex
	talk       Conversation
	serial     int
	segments   int      // that were sent
	pending    []string // parameters of segments that are to be sent, with K for the place
	open       int      // polls
	quiet      bool     // no new polls
	answers    map[int][]string
	next       int // number of the answer that is to come
	closeAfter int // the answer after which the connection ends; -1 if there is none
	messages   []string
	ended      bool
	over       bool // the test has ended
	changed    chan struct{}
}

// Poll starts a connection. The parameters, such as "&ns=name", are those of all requests; others
// are for the start alone.
func Poll(t testing.TB, fetch Fetch, all, start string) *Poller {
	t.Helper()
	p := &Poller{t: t, fetch: fetch, extra: all, closeAfter: -1, answers: map[int][]string{}, changed: make(chan struct{}, 1)}
	body := p.get("/.lp?start=t&ser=1&cb=7&v=5" + all + start)
	const functions = "function pLPCommand(c, a1, a2, a3, a4) {\n" +
		`parent.window["pLPCommand7"] && parent.window["pLPCommand7"](c, a1, a2, a3, a4);` + "\n}\n" +
		"function pRTLPCB(pN, data) {\n" +
		`parent.window["pRTLPCB7"] && parent.window["pRTLPCB7"](pN, data);` + "\n}\n"
	rest, ok := strings.CutPrefix(body, functions)
	match := regexp.MustCompile(`^pLPCommand\('start','([A-Za-z0-9]{16,})','([A-Za-z0-9]{16,})'\);\n`).FindStringSubmatch(rest)
	if !ok || match == nil {
		t.Fatalf("the start is answered with %q", body)
	}
	p.ID, p.Password = match[1], match[2]
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.quiet, p.over = true, true
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.execute(rest[len(match[0]):])
	p.poll()
	return p
}

// fail fails the test, if it goes on: a poll may outlive it.
func (p *Poller) fail(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.t.Errorf(format, args...)
	}
}

// get returns a script, whose headers are checked.
func (p *Poller) get(target string) string {
	answer, err := p.fetch(target)
	if err != nil {
		p.fail("get %s: %v", target, err)
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.fail("get %s: status %d, %q, %v", target, answer.StatusCode, body, err)
		return ""
	}
	for name, want := range map[string]string{
		"Content-Type": "application/javascript; charset=utf-8", "Cache-Control": "no-cache",
		"Cross-Origin-Resource-Policy": "cross-origin", "X-Frame-Options": "",
	} {
		if got := answer.Header.Get(name); got != want {
			p.fail("get %s: %s is %q, want %q", target, name, got, want)
		}
	}
	return string(body)
}

// poll opens as many polls as a browser would, with the lock held.
func (p *Poller) poll() {
	for !p.quiet && !p.ended && (p.open == 0 || p.open == 1 && len(p.pending) > 0) {
		p.serial++
		target := fmt.Sprintf("/.lp?id=%s&pw=%s&ser=%d%s", p.ID, p.Password, p.serial, p.extra)
		for k := 0; len(p.pending) > 0 && len(target)+len(p.pending[0]) < 2100; k++ {
			target += strings.ReplaceAll(p.pending[0], "K=", strconv.Itoa(k)+"=")
			p.pending = p.pending[1:]
		}
		p.open++
		go func() {
			script := p.get(target)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.open--
			if !p.over {
				p.execute(script)
				p.poll()
			}
		}()
	}
}

var (
	dataCall  = regexp.MustCompile(`(?s)^pRTLPCB\((0|[1-9][0-9]*),(\[.*\])\);$`)
	closeCall = regexp.MustCompile(`^pLPCommand\('close'(?:,([1-9][0-9]*))?\);$`)
)

// execute does what a script says, with the lock held.
func (p *Poller) execute(script string) {
	defer signalTo(p.changed)
	if match := closeCall.FindStringSubmatch(script); match != nil {
		p.quiet = true
		p.closeAfter, _ = strconv.Atoi(match[1])
		if match[1] == "" || p.closeAfter < p.next {
			p.ended = true
		}
		return
	}
	match := dataCall.FindStringSubmatch(script)
	if match == nil || strings.ContainsAny(script, "\u2028\u2029") {
		p.t.Errorf("the script %.200q", script)
		return
	}
	number, _ := strconv.Atoi(match[1])
	list, ok := parse(match[2]).list()
	if _, twice := p.answers[number]; twice || number < p.next || !ok {
		p.t.Errorf("the script %.200q: its number was there before, or it is no JSON", script)
		return
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = v.String()
	}
	p.answers[number] = texts
	p.inOrder()
}

// inOrder takes the answers whose turn has come.
func (p *Poller) inOrder() {
	for {
		texts, ok := p.answers[p.next]
		if !ok {
			return
		}
		delete(p.answers, p.next)
		for _, text := range texts {
			if err := p.talk.Got(text); err != nil {
				p.t.Error(err)
			}
		}
		p.messages = append(p.messages, texts...)
		if p.next == p.closeAfter {
			p.ended = true
		}
		p.next++
	}
}

func signalTo(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Send sends a message.
func (p *Poller) Send(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.talk.Sent(message)
	text := strings.ReplaceAll(base64.URLEncoding.EncodeToString([]byte(message)), "=", ".")
	const cut = 1840
	count := (len(text) + cut - 1) / cut
	for i := range count {
		p.pending = append(p.pending, fmt.Sprintf("&segK=%d&tsK=%d&dK=%s", p.segments, count, text[i*cut:min(len(text), (i+1)*cut)]))
		p.segments++
	}
	p.poll()
}

// Next returns the next message; io.EOF if the server has ended the connection.
func (p *Poller) Next() (string, error) {
	timeout := time.After(patience)
	for {
		p.mu.Lock()
		if len(p.messages) > 0 {
			message := p.messages[0]
			p.messages = p.messages[1:]
			p.mu.Unlock()
			return message, nil
		}
		ended := p.ended
		p.mu.Unlock()
		if ended {
			return "", io.EOF
		}
		select {
		case <-p.changed:
		case <-timeout:
			return "", fmt.Errorf("nothing in %v", patience)
		}
	}
}

// Expect fails the test unless the next messages are these; "" stands for the end.
func (p *Poller) Expect(messages ...string) {
	p.t.Helper()
	for _, want := range messages {
		got, err := p.Next()
		if got != want || (err != nil) != (want == "") {
			p.t.Fatalf("the server sent\n%.300q, %v\nwant\n%.300q", got, err, want)
		}
	}
}

// Stop lets the client open no more polls, as if its machine had vanished.
func (p *Poller) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = true
}

// IsOver reports whether the server has said that the connection is over.
func (p *Poller) IsOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Follow has a client that takes the connection over know what was asked by polls.
func (c *Client) Follow(p *Poller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.link.talk.requests, c.link.talk.listens = p.talk.requests, p.talk.listens
}
