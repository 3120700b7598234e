package conformance_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An action is what a step does.
type action int

const (
	request action = iota // or a stream, if it is named
	expectFrame
	expectEnd
	closeStream
	restartServer
	replaceSecrets
)

var actions = map[string]action{"@close": closeStream, "@restart": restartServer, "@secrets": replaceSecrets}

// skipKeepAlives marks an event before which keep-alives may come.
const skipKeepAlives = "..."

// event reads a line about a stream, without its mark: * NAME [...] [id ID] EVENT
// DATA, or * NAME end.
func (p *parser) event(text string) error {
	name, rest, _ := strings.Cut(text, " ")
	if rest == "end" {
		return p.act(step{action: expectEnd, words: []string{name}})
	}
	rest, skips := strings.CutPrefix(rest, "... ")
	frame := ""
	if id, ok := strings.CutPrefix(rest, "id "); ok {
		id, rest, _ = strings.Cut(id, " ")
		frame = "id: " + id + "\n"
	}
	event, data, ok := strings.Cut(rest, " ")
	if !ok || name == "" {
		return fmt.Errorf("an event looks like * NAME EVENT DATA")
	}
	frame += "event: " + event + "\ndata: " + data + "\n\n"
	s := step{action: expectFrame, words: []string{name, frame}}
	if skips {
		s.marks = append(s.marks, skipKeepAlives)
	}
	return p.act(s)
}

// act adds a step that is not a request.
func (p *parser) act(s step) error {
	if err := p.endStep(); err != nil {
		return err
	}
	named := s.action == expectFrame || s.action == expectEnd || s.action == closeStream
	switch {
	case len(p.cases) == 0:
		return fmt.Errorf("an action stands before the first heading")
	case named && len(s.words) == 0, s.action == replaceSecrets && len(s.words) == 0:
		return fmt.Errorf("the name of a stream, or a secret, is missing")
	}
	s.line, s.marks = p.number, append(s.marks, p.marks...)
	p.marks = nil
	c := &p.cases[len(p.cases)-1]
	c.steps = append(c.steps, s)
	return nil
}

// at returns the line to name in a problem.
func (s step) at() int {
	if s.action == request {
		return s.want.line
	}
	return s.line
}

// what says in a problem what was done.
func (s step) what() string {
	switch s.action {
	case request:
		return s.method + " " + show(s.target)
	case expectFrame:
		return "an event of " + s.words[0]
	case expectEnd:
		return "the end of " + s.words[0]
	default:
		return "an action"
	}
}

// do does one step and returns what is wrong.
func (r *runner) do(s step, kept texts) string {
	r.moment.await(s)
	switch s.action {
	case request:
		r.moment.mint(s, kept)
		if s.stream != "" {
			return r.open(s, kept)
		}
		return r.step(s, kept)
	case restartServer:
		return r.restart()
	case replaceSecrets:
		return r.replaceSecrets(s.words, kept)
	}
	opened, known := r.streams[s.words[0]]
	switch {
	case !known:
		return "no stream of this name is open"
	case opened == nil: // it belongs to another version of HTTP
		return ""
	}
	switch s.action {
	case expectFrame:
		if slices.Contains(s.marks, skipKeepAlives) {
			return opened.expectLater(s.words[1], kept)
		}
		return opened.expect(s.words[1], kept)
	case expectEnd:
		return opened.expectEnd()
	default: // closeStream
		opened.close()
		delete(r.streams, s.words[0])
		return ""
	}
}

// restart ends the server in order and starts it again.
func (r *runner) restart() string {
	r.drain()
	r.https.CloseIdleConnections()
	r.plain.CloseIdleConnections()
	if err := r.instance.run(r.t); err != nil {
		return err.Error()
	}
	return ""
}

// replaceSecrets makes the secrets of the default database these, and waits until
// they are good.
func (r *runner) replaceSecrets(secrets []string, kept texts) string {
	var lines string
	for _, s := range secrets {
		filled, err := kept.fill(s)
		if err != nil {
			return err.Error()
		}
		lines += filled + "\n"
	}
	dir := filepath.Join(r.config.Data, "secrets")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "default"), []byte(lines), 0o600)); err != nil {
		return err.Error()
	}
	for _, s := range secrets {
		good := poll(patience, func() bool {
			got, err := r.send(step{method: "GET", target: "/.json?shallow=true&auth=" + s}, kept)
			return err == nil && got.status == http.StatusOK
		})
		if !good {
			return "the secrets do not become good"
		}
	}
	return ""
}

// poll asks now and then, until it is so or the time is over.
func poll(most time.Duration, isSo func() bool) bool {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(most); !isSo(); <-ticker.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// A moment is when something is over that a case begins with: a token, or what a
// rule allows.
type moment struct {
	lifetime time.Duration // how long it is until then, from the first use on
	at       time.Time     // zero if there was no use yet
	// isMissed says that it was over before everything was done that comes first:
	// the case proves nothing then.
	isMissed bool
	isOver   bool // it was waited for
}

// shortest and longest are the lifetimes that are tried. The first is enough to
// open a stream, but on a busy machine not always.
const (
	shortest = 4 * time.Second
	longest  = time.Minute
)

// mint keeps what a request uses that is good for a moment only: under soon a token
// of ann's, under moment the time of its end in milliseconds.
func (m *moment) mint(s step, kept texts) {
	if !m.at.IsZero() || !strings.Contains(s.target, "<soon>") && !strings.Contains(s.body, "<moment>") {
		return
	}
	now := time.Now()
	m.at = now.Add(m.lifetime).Truncate(time.Second)
	kept["moment"] = fmt.Sprint(m.at.UnixMilli())
	kept["soon"] = tokenOfAnn(m.at)
}

// tokenOfAnn is a token of the user ann, which expires at a time, if that is given.
func tokenOfAnn(end time.Time) string {
	if end.IsZero() {
		return sign(fmt.Sprintf(`{"v":0,"iat":%d,"d":{"uid":"ann"}}`, time.Now().Unix()))
	}
	return sign(fmt.Sprintf(`{"v":0,"iat":%d,"exp":%d,"d":{"uid":"ann"}}`, time.Now().Unix(), end.Unix()))
}

// sign returns a token with these claims, signed with the app secret.
func sign(claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(claims))
	signature := hmac.New(sha256.New, []byte(secret))
	signature.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(signature.Sum(nil))
}

// await is told of a step before it is done. The first that waits for the end of a
// stream is what the moment brings; all before it must have come in time.
func (m *moment) await(s step) {
	waits := s.action == expectEnd || s.action == expectFrame && (strings.Contains(s.words[1], "event: auth_revoked\n") || strings.Contains(s.words[1], "event: cancel\n"))
	if m.at.IsZero() || !waits || m.isOver {
		return
	}
	m.isOver, m.isMissed = true, !time.Now().Before(m.at)
}
