package conformance_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/wiretest"
)

// TestTranscripts replays what SDKs say to a server, and compares what it says to
// them. The client reads as strictly as the strictest SDK.
func TestTranscripts(t *testing.T) {
	for _, tr := range readTranscripts(t) {
		t.Run(strings.TrimSuffix(tr.file, ".txt"), func(t *testing.T) {
			t.Parallel()
			newStage(t, tr.options).playAll(t, tr)
		})
	}
}

// TestTranscriptsByPolling replays what browsers say, by long polling. What is about frames of
// websockets is left out.
func TestTranscriptsByPolling(t *testing.T) {
	for _, tr := range readTranscripts(t) {
		if !strings.HasPrefix(tr.file, "js-") {
			continue
		}
		for _, major := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/http%d", strings.TrimSuffix(tr.file, ".txt"), major), func(t *testing.T) {
				t.Parallel()
				s := newStage(t, tr.options)
				s.polls = s.transport(t, major)
				tr := tr
				tr.scenes = slices.DeleteFunc(slices.Clone(tr.scenes), scene.isOfFrames)
				s.playAll(t, tr)
			})
		}
	}
}

func (s *stage) playAll(t *testing.T, tr transcript) {
	for _, c := range tr.scenes {
		t.Run(c.heading, func(t *testing.T) {
			problem := ""
			// On a busy machine a login that expires may be over too early: then it gets one that lasts longer.
			for life := 6 * time.Second; life < 2*time.Minute; life *= 4 {
				s.life, s.expires = life, time.Time{}
				if problem = s.play(t, c); problem == "" || s.expires.IsZero() {
					break
				}
			}
			if problem != "" {
				t.Errorf("wire/%s:%s", tr.file, problem)
			}
		})
	}
}

// A stage is a server with the connections of the scene that is played.
type stage struct {
	*runner
	rules   string
	scene   *testing.T // that is played
	kept    texts
	header  http.Header     // of the next connection
	polls   *http.Transport // if connections are by polls
	peers   map[string]peer
	names   []string // of the peers, in the order in which they came
	current string
	life    time.Duration // of a login that expires
	expires time.Time     // when it does, if there is one
}

func newStage(t *testing.T, options []string) *stage {
	t.Helper()
	s := &stage{runner: newRunner(t, start(t, options), 1)}
	var err error
	if s.rules, err = s.runner.rules(); err != nil {
		t.Fatal(err)
	}
	return s
}

// play does what stands below a heading, up to the first problem, which it returns with
// its line.
func (s *stage) play(t *testing.T, c scene) string {
	if err := s.clean(s.rules, false); err != nil {
		return fmt.Sprintf("%d: %v", c.line, err)
	}
	s.scene, s.kept, s.header, s.names = t, texts{"secret": secret, "ann": tokenOfAnn(time.Time{}), "host": s.addr}, http.Header{}, nil
	s.peers = map[string]peer{}
	defer s.leave()
	for _, l := range c.lines {
		if problem := s.speak(l); problem != "" {
			return fmt.Sprintf("%d: %s %s\n%s", l.number, l.verb, show(l.text), problem)
		}
	}
	return s.settle(c)
}

// leave breaks the connections. A scene ends itself those that have left something to
// onDisconnect, and waits for that: it would come into the next scene.
func (s *stage) leave() {
	for _, p := range s.peers {
		p.leave()
	}
}

// awaitIndex waits until the index of a query is built: a listen before that is told that it has none.
func (s *stage) awaitIndex(target string) string {
	var answer string
	if !poll(patience, func() (isReady bool) {
		var err error
		answer, err = s.mustSend(step{method: "GET", target: target + "&explain=true&auth=<secret>"}, "explain a query")
		return err == nil && strings.Contains(answer, indexReady)
	}) {
		return "the index is not built: " + answer
	}
	return ""
}

// settle sees that nothing more comes on any connection, by a read: its answer comes after
// those of all requests before it, and after what they have changed.
func (s *stage) settle(c scene) string {
	for _, name := range s.names {
		p, open := s.peers[name]
		if !open {
			continue
		}
		p.send(`{"t":"d","d":{"r":999999,"a":"g","b":{"p":"/settled","q":{}}}}`)
		message, err := p.next()
		if err != nil {
			return fmt.Sprintf("%d: at the end, %s: %v", c.line, name, err)
		}
		if problem := s.kept.match(`{"t":"d","d":{"r":999999,"b":<*>}}`, message); problem != "" {
			return fmt.Sprintf("%d: at the end, %s has more to tell\n%s", c.line, name, problem)
		}
	}
	return ""
}

// speak does one line and returns what is wrong.
func (s *stage) speak(l spoken) string {
	if _, ok := s.kept["soon"]; !ok && strings.Contains(l.text, "<soon>") {
		s.expires = time.Now().Add(s.life)
		s.kept["soon"] = tokenOfAnn(s.expires)
	}
	switch l.verb {
	case "@header", "@open", "@poll", "@take", "@refused", "@use":
		return s.connect(l)
	case "@rest":
		method, target, _ := strings.Cut(l.text, " ")
		target, body, _ := strings.Cut(target, " ")
		if _, err := s.mustSend(step{method: method, target: target, body: body}, "a request"); err != nil {
			return err.Error()
		}
		return ""
	case "@indexed":
		return s.awaitIndex(l.text)
	case "@restart":
		s.leave()
		clear(s.peers)
		problem := s.restart()
		s.kept["host"] = s.addr
		return problem
	}
	p, open := s.peers[s.current]
	if !open {
		return fmt.Sprintf("no connection %q is open", s.current)
	}
	if !strings.HasPrefix(l.verb, "<") {
		var err error
		if l.text, err = s.kept.fill(l.text); err != nil {
			return err.Error()
		}
	}
	return s.talk(p, l)
}

// talk does a line about the current connection.
func (s *stage) talk(p peer, l spoken) string {
	switch l.verb {
	case ">":
		p.send(l.text)
	case "@end":
		p.end()
		delete(s.peers, s.current)
	case "@break":
		p.leave()
		delete(s.peers, s.current)
	case "<":
		return s.expect(p, l.text)
	case anyOrder:
		return s.expectAny(p, strings.Split(l.text, "\n"))
	default:
		return p.sendFrames(l)
	}
	return ""
}

// connect does a line about a new connection, or goes back to another.
func (s *stage) connect(l spoken) string {
	text, err := s.kept.fill(l.text)
	if err != nil {
		return err.Error()
	}
	name, target, _ := strings.Cut(text, " ")
	switch l.verb {
	case "@header":
		field, err := parseField(text)
		if err != nil {
			return err.Error()
		}
		// As they stand: some SDKs write lower case.
		s.header[field.name] = append(s.header[field.name], field.value)
		return ""
	case "@use":
		s.current = name
		return ""
	case "@refused":
		_, err := s.dial(target, false)
		if refused, ok := errors.AsType[*wiretest.Refused](err); !ok || strconv.Itoa(refused.Status) != name {
			return fmt.Sprintf("it is answered with %v", err)
		}
		return ""
	}
	p, err := s.open(l.verb, target)
	if err != nil {
		return err.Error()
	}
	s.current, s.peers[name], s.names = name, p, append(s.names, name)
	return ""
}

// open makes a connection.
func (s *stage) open(verb, target string) (peer, error) {
	switch {
	case verb == "@poll" && s.polls == nil:
		return s.poll(target, s.https), nil
	case verb != "@take" && s.polls != nil:
		return s.poll(target, s.polls), nil
	}
	client, err := s.dial(target, verb == "@take")
	if err != nil {
		return nil, err
	}
	if polled, ok := s.peers[s.current].(polling); ok && verb == "@take" {
		client.Follow(polled.Poller)
	}
	return socket{client}, nil
}

func (s *stage) dial(target string, takesOver bool) (*wiretest.Client, error) {
	header := s.header
	s.header = http.Header{}
	return wiretest.Try(s.scene, wiretest.Dialing{
		Address: s.addr, Target: target, Header: header, TakesOver: takesOver,
		TLS: &tls.Config{RootCAs: s.trusted, ServerName: "localhost"},
	})
}

// poll begins a connection by polls, with the parameters of a target.
func (s *stage) poll(target string, by *http.Transport) peer {
	var parameters strings.Builder
	_, query, _ := strings.Cut(target, "?")
	old := ""
	for p := range strings.SplitSeq(query, "&") {
		switch {
		case p == "v=5": // it is always there
		case strings.HasPrefix(p, "ls="):
			old = "&" + p
		default:
			parameters.WriteString("&" + p)
		}
	}
	s.header = http.Header{}
	fetch := wiretest.Over(&http.Client{Transport: by}, "https://"+s.addr)
	return polling{wiretest.Poll(s.scene, fetch, parameters.String(), old), fetch, parameters.String()}
}

// expect compares the next message, or the end, with what is wanted.
func (s *stage) expect(p peer, want string) string {
	message, err := p.next()
	if code, ok := strings.CutPrefix(want, "close "); ok {
		closed, ok := errors.AsType[*wiretest.Closed](err)
		if !ok {
			return fmt.Sprintf("got  %s, %v", show(message), err)
		}
		delete(s.peers, s.current)
		return s.kept.match(code, strconv.Itoa(closed.Code))
	}
	if want == "over" {
		if !errors.Is(err, io.EOF) {
			return fmt.Sprintf("got  %s, %v", show(message), err)
		}
		delete(s.peers, s.current)
		return ""
	}
	if err != nil {
		return err.Error()
	}
	return s.kept.match(want, message)
}

// expectAny compares as many messages as are wanted, in any order.
func (s *stage) expectAny(p peer, wanted []string) string {
	for len(wanted) > 0 {
		message, err := p.next()
		if err != nil {
			return err.Error()
		}
		at := slices.IndexFunc(wanted, func(want string) bool { return s.kept.match(want, message) == "" })
		if at < 0 {
			return fmt.Sprintf("got  %s\nwant one of %q", show(message), wanted)
		}
		wanted = slices.Delete(wanted, at, at+1)
	}
	return ""
}
