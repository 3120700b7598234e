//go:build unix

package trust_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

// TestTwinsWire asks two servers the same as one user, by the protocol of the SDKs. What he
// may not read differs, and all that he is told is the same.
func TestTwinsWire(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for i, turns := range portions(rounds(1, 100, 1000), 10) {
		w := newTwinWire(t, n+uint64(i))
		for range turns {
			w.differ(t, 20)
			w.question(t, length(150, 1000, 1000))
		}
		for range turns {
			for _, l := range losses {
				w.lose(t, l)
			}
		}
		for _, difference := range w.differences {
			t.Error(difference)
		}
		figures.Report(t, "twinswire", proof.Count("requests", w.requests), proof.Count("pushes", w.pushes), proof.Count("losses", w.lost),
			proof.Count("differences", len(w.differences)))
	}
}

// A twinWire is twins that are asked by the protocol of the SDKs.
type twinWire struct {
	*twins
	servers [2]*process
	pushes  int
	lost    int
	// leak, if set, changes what the user is told by the second: a planted bug.
	leak func(message string) string
}

func newTwinWire(t *testing.T, seed uint64) *twinWire {
	t.Helper()
	dir := founded(t)
	flags := []string{"--admin-addr", "127.0.0.1:0"}
	a, b := startProcessOn(t, copied(t, dir), flags...), startProcessOn(t, dir, flags...)
	w := &twinWire{twins: newTwins(t, newClient(t, a, 1), newClient(t, b, 1), seed), servers: [2]*process{a, b}}
	w.awaitIndexes(t, "/open", "n", "$value")
	w.awaitIndexes(t, "/mine/u", "n")
	return w
}

// awaitIndexes returns when both have built indexes. Until then a listen is told that there is
// none, and its window may be told whole where it is told by what changed later on. When
// they are built is a matter of time, and not of what is hidden.
func (w *twinWire) awaitIndexes(t *testing.T, path string, orders ...string) {
	t.Helper()
	for _, order := range orders {
		explain := request{method: "GET", target: path + ".json?explain=true&orderBy=%22" + order + "%22&auth=" + secret}
		for _, c := range []*client{w.first, w.second} {
			for late := time.Now().Add(patience); !strings.Contains(c.must(t, explain).body, `"ready"`); {
				if time.Now().After(late) {
					t.Fatalf("the index by %s at %s is not built", order, path)
				}
			}
		}
	}
}

// part ends connections, and returns when both servers have written what was left: it would come
// into what is asked next, at one sooner than at the other.
func (w *twinWire) part(t *testing.T, talks [2]*wireTalk) {
	t.Helper()
	for i, talk := range talks {
		talk.close()
		w.servers[i].awaitMetric(t, "livetree_clients", 0)
	}
}

// pair connects to both.
func (w *twinWire) pair() [2]*wireTalk {
	var talks [2]*wireTalk
	for i, p := range w.servers {
		talks[i] = &wireTalk{dial: dialWire(p, "default")}
	}
	return talks
}

// both sends a request to both and compares everything up to the answers.
func (w *twinWire) both(talks [2]*wireTalk, action, body string) (status string) {
	w.requests++
	var told [2]string
	for i, talk := range talks {
		var d json.RawMessage
		var err error
		status, d, _, err = talk.ask(action, body)
		heard := talk.takeHeard()
		w.pushes += len(heard)
		slices.Sort(heard) // those of one commit to several listens have no order
		told[i] = fmt.Sprintf("%s\n%s %s %v", strings.Join(heard, "\n"), status, d, err)
		if i == 1 && w.leak != nil {
			told[i] = w.leak(told[i])
		}
	}
	if told[0] != told[1] {
		w.differences = append(w.differences, fmt.Sprintf("%s %s is answered differently:\n%.1000s\n%.1000s", action, body, told[0], told[1]))
	}
	return status
}

// question asks random things as u.
func (w *twinWire) question(t *testing.T, count int) {
	t.Helper()
	talks := w.pair()
	defer w.part(t, talks)
	w.both(talks, "auth", fmt.Sprintf(`{"cred":%q}`, w.token))
	for tag := 1; tag <= count && len(w.differences) < 10; tag++ {
		w.differ(t, w.rng.IntN(2))
		path := pick(w.rng, questionPaths...)
		query := pick(w.rng, "{}", `{"i":"n","l":2,"vf":"r"}`, `{"i":".value","sp":1}`, `{"i":"sec","ep":true}`, `{"l":2,"vf":"l","i":".key"}`)
		data := randomBody(w.rng)
		if !json.Valid([]byte(data)) {
			data = "1"
		}
		switch w.rng.IntN(8) {
		case 0:
			w.both(talks, "q", fmt.Sprintf(`{"p":%q,"h":%q}`, path, w.guess(path)))
		case 1:
			w.both(talks, "q", fmt.Sprintf(`{"p":%q,"q":%s,"t":%d,"h":""}`, path, query, tag))
		case 2:
			w.both(talks, "n", fmt.Sprintf(`{"p":%q}`, path))
		case 3:
			w.both(talks, "p", fmt.Sprintf(`{"p":%q,"d":%s,"h":%q}`, path, data, w.guess(path)))
		case 4:
			w.both(talks, "p", fmt.Sprintf(`{"p":%q,"d":%s}`, path, data))
		case 5:
			w.both(talks, "m", fmt.Sprintf(`{"p":%q,"d":%s}`, path, randomPatch(w.rng)))
		case 6:
			w.both(talks, pick(w.rng, "o", "oc"), fmt.Sprintf(`{"p":%q,"d":%s}`, path, "null"))
		default:
			w.both(talks, "g", fmt.Sprintf(`{"p":%q,"q":%s}`, path, query))
		}
	}
}

// guess returns a hash, often the one that the first has there, whoever may read it.
func (w *twinWire) guess(path string) string {
	if w.rng.IntN(3) == 0 {
		return ""
	}
	if path == "" {
		path = "/"
	}
	a, _, err := w.first.send(request{method: "GET", target: path + ".json?format=export&auth=" + secret})
	if err != nil {
		return "guess"
	}
	n, _ := tree.DecodeBytes([]byte(a.body), tree.DecodeOptions{}) // it was printed by a server
	return sdkhash.Of(n)
}

// roomRules let u into a room by a gate.
const roomRules = `{"rules":{
	"gate": {".read": true},
	"open": {".read": true},
	"room": {".read": "auth.uid === 'u' && root.child('gate').val() === true", ".indexOn": "n"}
}}`

// A loss is a way to lose what one may read.
type loss struct {
	name string
	// happens takes the right from u.
	happens func(t *testing.T, w *twinWire, talks [2]*wireTalk)
	// expires says that his token does.
	expires bool
	logout  string // the status of ac, if he is told so
	// endsAll says that all listens end, also those that everybody may have, by c or by the end of
	// the connection: SDKs come back after ac in any case.
	endsAll bool
}

const otherSecret = "oThErSeCrEtoThErSeCrEtoThErSeCrEtoThErSe"

var losses = []loss{
	{name: "the rules are replaced", happens: func(t *testing.T, w *twinWire, _ [2]*wireTalk) {
		w.atBoth(t, request{method: "PUT", target: "/.settings/rules.json?auth=" + secret, body: strings.Replace(roomRules, "'u'", "'v'", 1)})
	}},
	{name: "data behind the rules changes", happens: func(t *testing.T, w *twinWire, _ [2]*wireTalk) {
		// One commit that shuts the gate, changes the room, and is told elsewhere.
		for i, c := range []*client{w.first, w.second} {
			c.must(t, request{method: "PATCH", target: "/.json?auth=" + secret, body: fmt.Sprintf(`{"gate":false,"room/a":{"n":"after-%d"},"open/with":true}`, i)})
		}
	}},
	{name: "he logs out", happens: func(t *testing.T, _ *twinWire, talks [2]*wireTalk) {
		for _, talk := range talks {
			if status, _, _, err := talk.ask("unauth", "{}"); status != "ok" {
				t.Fatalf("to log out is answered %s, %v", status, err)
			}
		}
	}},
	{name: "his token expires", expires: true, logout: "expired_token"},
	{name: "his secret is removed", endsAll: true, happens: func(t *testing.T, w *twinWire, _ [2]*wireTalk) {
		for _, p := range w.servers {
			mustAdmin(t, p, "DELETE", "/v1/databases/default/secrets/"+admin.SecretID(otherSecret), "")
		}
	}},
}

// mustAdmin asks for something that is done.
func mustAdmin(t *testing.T, p *process, method, page, body string) {
	t.Helper()
	if a := adminOf(t, p, method, page, body); a.status > 299 {
		t.Fatalf("%s %s = %d %s", method, page, a.status, a.body)
	}
}

// atBoth sends a request of the operator to both.
func (w *twinWire) atBoth(t *testing.T, r request) {
	t.Helper()
	w.first.must(t, r)
	w.second.must(t, r)
}

// lose has u listen to a room, lose his right, and be told nothing of what happens in it then:
// it differs. A token that expires may be over before he listens, on a busy machine: then he
// begins again, with one that lasts longer.
func (w *twinWire) lose(t *testing.T, l loss) {
	t.Helper()
	w.lost++
	known := len(w.differences)
	for life := 2 * time.Second; !w.loseWithin(t, l, life); life *= 4 {
		if life > time.Minute {
			t.Fatalf("%s: he does not listen within %v", l.name, life)
		}
		w.differences = w.differences[:known]
	}
}

// loseWithin is lose with a token of some life, if it expires. It reports false if that was too short.
func (w *twinWire) loseWithin(t *testing.T, l loss, life time.Duration) bool {
	t.Helper()
	w.atBoth(t, request{method: "PUT", target: "/.settings/rules.json?auth=" + secret, body: roomRules})
	w.atBoth(t, request{method: "PUT", target: "/.json?auth=" + secret, body: `{"gate":true,"room":{"a":{"n":1,"m":1},"b":{"n":2},"c":{"n":3,"m":0}}}`})
	key := secret
	if l.name == "his secret is removed" {
		key = otherSecret
		for _, p := range w.servers {
			mustAdmin(t, p, "POST", "/v1/databases/default/secrets", `{"value":"`+otherSecret+`"}`)
		}
	}
	w.awaitIndexes(t, "/room", "n")
	if !l.expires {
		life = time.Hour
	}
	expires := time.Now().Add(life).Truncate(time.Second) // as tokens have it
	token, err := auth.Mint(key, auth.Claims{Data: map[string]any{"uid": "u"}, Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	talks := w.pair()
	defer w.part(t, talks)
	w.both(talks, "auth", fmt.Sprintf(`{"cred":%q}`, token))
	for _, body := range roomListens {
		if status := w.both(talks, "q", body); status != "ok" && time.Now().Before(expires) {
			t.Fatalf("%s: the listen %s is answered %s", l.name, body, status)
		}
	}
	w.atBoth(t, request{method: "PUT", target: "/room/d.json?auth=" + secret, body: `{"n":9,"m":-1}`})
	w.both(talks, "g", `{"p":"/open","q":{}}`) // he is told of it before this is answered
	if !time.Now().Before(expires) {
		return false
	}
	if l.happens != nil {
		l.happens(t, w, talks)
	} else {
		for _, talk := range talks {
			if err := talk.hearUntil(`"a":"ac"`); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, c := range []*client{w.first, w.second} {
		for key := range 3 {
			c.must(t, request{method: "PUT", target: fmt.Sprintf("/room/k%d.json?auth=%s", key, secret), body: fmt.Sprintf(`{"n":"after-%d"}`, i)})
		}
	}
	w.heardAtEnd(t, l, talks)
	return true
}

var roomListens = []string{
	`{"p":"/room","h":""}`, `{"p":"/room/a","h":""}`, `{"p":"/room","q":{"i":"n","l":2,"vf":"r"},"t":1,"h":""}`,
	`{"p":"/room","q":{"i":"m","sp":0},"t":2,"h":""}`, `{"p":"/open","h":""}`,
}

// heardAtEnd looks at all that u was told.
func (w *twinWire) heardAtEnd(t *testing.T, l loss, talks [2]*wireTalk) {
	t.Helper()
	var told [2]string
	for i, talk := range talks {
		// The answer comes behind all that was to be told before.
		status, _, _, err := talk.ask("g", `{"p":"/open","q":{}}`)
		if l.endsAll {
			if all := strings.Join(talk.takeHeard(), "\n"); strings.Contains(all, "after-") {
				w.differences = append(w.differences, fmt.Sprintf("%s: he is told\n%s", l.name, all))
			}
			continue
		}
		if status != "ok" {
			t.Fatalf("%s: what everybody may read is answered %s, %v", l.name, status, err)
		}
		heard := talk.takeHeard()
		cancelled, last, with := 0, -1, len(heard)
		want := len(roomListens) - 1
		for j, message := range heard {
			if strings.Contains(message, `"a":"c"`) {
				cancelled, last = cancelled+1, j
			}
			if strings.Contains(message, `"p":"open/with"`) {
				with = j
			}
		}
		// The strict reader has seen that nothing comes for a listen that is over.
		if cancelled != want || last > with {
			w.differences = append(w.differences, fmt.Sprintf("%s: want %d listens to end before anything else is told of that commit, was told\n%s", l.name, want, strings.Join(heard, "\n")))
		}
		if l.logout != "" && !strings.Contains(strings.Join(heard, "\n"), `{"t":"d","d":{"a":"ac","b":{"s":"`+l.logout+`"`) {
			w.differences = append(w.differences, fmt.Sprintf("%s: he is not told that he is logged out by %s, but\n%s", l.name, l.logout, strings.Join(heard, "\n")))
		}
		// In a busy moment a listen that everybody may have is told anew what is there: nothing.
		heard = slices.DeleteFunc(heard, func(message string) bool { return message == `{"t":"d","d":{"a":"d","b":{"p":"open","d":null}}}` })
		slices.Sort(heard)
		told[i] = strings.Join(heard, "\n")
		if i == 1 && w.leak != nil {
			told[i] = w.leak(told[i])
		}
	}
	if told[0] != told[1] {
		w.differences = append(w.differences, fmt.Sprintf("%s: he is told\n%s\nand\n%s", l.name, told[0], told[1]))
	}
}

// TestTwinsWireFindBugs shows that one byte more is noticed.
func TestTwinsWireFindBugs(t *testing.T) {
	t.Parallel()
	w := newTwinWire(t, 1)
	w.leak = func(told string) string {
		return strings.Replace(told, `"Permission denied"`, `"permission denied"`, 1)
	}
	w.question(t, 100)
	if len(w.differences) == 0 {
		t.Error("another text of a refusal was not noticed")
	}
	for _, planted := range []struct {
		name string
		loss int
		leak func(told string) string
	}{
		{"another value", 0, func(told string) string { return strings.Replace(told, `"n":9`, `"n":8`, 1) }},
		{"one push more", 1, func(told string) string { return told + "\n" + `{"t":"d","d":{"a":"d","b":{"p":"room/k1","d":1}}}` }},
		{"a window that is told whole", 0, func(told string) string { return strings.Replace(told, `"a":"m"`, `"a":"d"`, 1) }},
		{"another word on the index", 0, func(told string) string { return strings.Replace(told, `ok {} `, `ok {"w":["no_index"]} `, 1) }},
	} {
		w.leak, w.differences = planted.leak, nil
		if w.lose(t, losses[planted.loss]); len(w.differences) == 0 {
			t.Errorf("%s was not noticed", planted.name)
		}
	}
}

var errSilent = errors.New("the server said nothing of the kind")

// hearUntil listens until a message has a text in it.
func (w *wireTalk) hearUntil(text string) error {
	for {
		if n := len(w.heard); n > 0 && strings.Contains(w.heard[n-1], text) {
			return nil
		}
		message, err := w.link.Next()
		if err != nil {
			return errors.Join(errSilent, err)
		}
		w.heard = append(w.heard, message)
	}
}

// takeHeard returns what was told beside answers.
func (w *wireTalk) takeHeard() []string {
	heard := w.heard
	w.heard = nil
	return heard
}
