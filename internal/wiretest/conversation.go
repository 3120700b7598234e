package wiretest

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Conversation checks the messages of a server against those of its client. It knows
// what the client has asked for, so what it may be told. The zero value is that of a
// client that has just connected. Use it by one goroutine.
type Conversation struct {
	// TakesOver says that the connection takes another one over, so it begins with
	// the control message a, or r, instead of hello.
	TakesOver bool

	begun    bool
	moved    bool // the control message n has come: nothing more is said here
	pings    int  // that are not answered
	requests map[int64]request
	listens  []*listen // the oldest first
}

// A request is one that is not answered.
type request struct {
	action string
	listen *listen // that a q begins or an n ends; nil if there is none
}

// A listen is one that the server may push to.
type listen struct {
	path     string // without slashes around it
	query    string // in canonical form, "" for none
	tag      string // "" for none
	compound bool   // it brought a compound hash
}

// Sent notes a message of the client. It may be anything.
func (c *Conversation) Sent(message string) {
	m, ok := parse(message).object()
	if !ok {
		return
	}
	d, _ := m["d"].object()
	switch m["t"].text() {
	case "c":
		if d["t"].text() == "p" {
			c.pings++
		}
	case "d":
		c.sentRequest(d)
	}
}

func (c *Conversation) sentRequest(d map[string]value) {
	r, isNumber := d["r"].integer()
	if !isNumber {
		return
	}
	b, _ := d["b"].object()
	l := &listen{path: strings.Trim(b["p"].text(), "/")}
	// A query that selects everything is a plain listen.
	if q, _ := b["q"].object(); len(q) > 0 && b["t"].String() != "" {
		l.tag, l.query = b["t"].String(), b["q"].canonical()
	}
	_, l.compound = b["ch"]
	asked := request{action: d["a"].text()}
	switch asked.action {
	case "q":
		asked.listen = l
		c.listens = append(c.listens, l)
	case "n":
		for _, other := range c.listens {
			if other.is(l) {
				asked.listen = other
			}
		}
	}
	if c.requests == nil {
		c.requests = map[int64]request{}
	}
	c.requests[r] = asked
}

func (l *listen) is(other *listen) bool { return l.path == other.path && l.query == other.query }

// Unanswered returns the numbers of the requests that have no reply.
func (c *Conversation) Unanswered() []int64 { return slices.Sorted(maps.Keys(c.requests)) }

// Got checks a message of the server.
func (c *Conversation) Got(message string) error {
	m, err := checked(message)
	if err != nil {
		return err
	}
	if c.moved {
		return violation("%s after the control message n", message)
	}
	_, hasBody := m["d"]
	d, isObject := m["d"].object()
	if !hasBody || !isObject || len(m) != 2 {
		return violation("%s: a message has t and d, which is an object", message)
	}
	first := !c.begun
	c.begun = true
	switch m["t"].text() {
	case "c":
		err = c.gotControl(d, first)
	case "d":
		if first {
			return violation("%s: the first message is hello", message)
		}
		err = c.gotData(d)
	default:
		return violation("%s: t is c or d", message)
	}
	return err
}

func (c *Conversation) gotControl(d map[string]value, first bool) error {
	kind, body := d["t"].text(), d["d"]
	if _, ok := d["d"]; !ok || len(d) != 2 {
		return violation("a control message %s: it has t and d; JavaScript ignores it without", objectText(d))
	}
	begins := kind == "h" && !c.TakesOver || (kind == "a" || kind == "r") && c.TakesOver || kind == "s"
	if first && !begins {
		return violation("a control message %s as the first message", objectText(d))
	}
	_, isObject := body.object()
	ok := false
	switch kind {
	case "h":
		if !first {
			return violation("a second hello")
		}
		return checkHello(body)
	case "o":
		c.pings--
		if c.pings < 0 {
			return violation("a pong without a ping")
		}
		ok = body.isNull() || isObject
	case "r", "s", "e":
		ok = body.text() != ""
	case "a":
		ok = isObject && c.TakesOver && first
	case "n":
		ok = isObject && !c.TakesOver
		c.moved = true
	}
	if !ok {
		return violation("a control message %s", objectText(d))
	}
	return nil
}

var (
	sessionID = regexp.MustCompile(`^[A-Za-z0-9]{32}$`)
	hostPort  = regexp.MustCompile(`^[A-Za-z0-9.\-:\[\]]+$`)
)

func checkHello(body value) error {
	d, ok := body.object()
	ts, isNumber := d["ts"].integer()
	switch {
	case !ok || len(d) != 4:
		return violation("hello %s: it has ts, v, h and s", body)
	case !isNumber || ts < 1<<32:
		return violation("hello with ts %s: an integer beyond 32 bits; Android casts it to Long", d["ts"])
	case d["v"].text() != "5":
		return violation("hello with v %s: JavaScript warns of all but \"5\"", d["v"])
	case !hostPort.MatchString(d["h"].text()) || strings.HasPrefix(d["h"].text(), "s-"):
		return violation("hello with h %s: the host of the request", d["h"])
	case !sessionID.MatchString(d["s"].text()):
		return violation("hello with s %s: 32 letters and digits", d["s"])
	}
	return nil
}

func (c *Conversation) gotData(d map[string]value) error {
	if _, ok := d["error"]; ok {
		return violation("%s: iOS raises an exception at the member error", objectText(d))
	}
	if _, ok := d["r"]; ok {
		return c.gotReply(d)
	}
	return c.gotPush(d)
}

func (c *Conversation) gotReply(d map[string]value) error {
	r, ok := d["r"].integer()
	if !ok {
		return violation("a reply with r %s: an integer", d["r"])
	}
	asked, ok := c.requests[r]
	if !ok {
		return violation("a reply to request %d, which was not sent or has its reply", r)
	}
	delete(c.requests, r)
	b, isObject := d["b"].object()
	status, body := b["s"].text(), b["d"]
	_, hasBody := b["d"]
	if len(d) != 2 || !isObject || len(b) != 2 || status == "" || !hasBody {
		return violation("a reply %s: it has r and b, with s and d", objectText(d))
	}
	c.settle(asked, status)
	if status == "ok" {
		return checkOK(asked.action, body)
	}
	if !body.isText() {
		return violation("a refusal %s: its d is a string", objectText(d))
	}
	return nil
}

// settle notes what a reply does to the listens.
func (c *Conversation) settle(asked request, status string) {
	switch {
	case asked.listen == nil:
	case asked.action == "n":
		c.forget(func(i int, l *listen) bool {
			return l.is(asked.listen) && i <= slices.Index(c.listens, asked.listen)
		})
	case status == "ok": // it replaces those before it
		c.forget(func(i int, l *listen) bool {
			return l.is(asked.listen) && i < slices.Index(c.listens, asked.listen)
		})
	default:
		c.forget(func(_ int, l *listen) bool { return l == asked.listen })
	}
}

func (c *Conversation) forget(ended func(i int, l *listen) bool) {
	var left []*listen
	for i, l := range c.listens {
		if !ended(i, l) {
			left = append(left, l)
		}
	}
	c.listens = left
}

// checkOK checks what an ok reply to an action says.
func checkOK(action string, body value) error {
	object, isObject := body.object()
	ok := true
	switch action {
	case "q":
		if !isObject {
			return violation("an ok reply to a listen with d %s: an object; Android casts it", body)
		}
		for name, member := range object {
			ok = ok && name == "w" && member.isTexts()
		}
	case "g":
		return checkTree(body)
	case "auth", "gauth":
		expires, hasExpires := object["expires"]
		auth, hasAuth := object["auth"]
		_, authIsObject := auth.object()
		_, isNumber := expires.integer()
		ok = len(object) == 2 && hasAuth && hasExpires && (auth.isNull() || authIsObject) && (expires.isNull() || isNumber)
	case "unauth":
		ok = body.text() == "unauthenticated"
	default:
		ok = body.String() == `""`
	}
	if !ok {
		return violation("an ok reply to %s with d %s", strconv.Quote(action), body)
	}
	return nil
}
