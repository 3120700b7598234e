//go:build unix

package trust_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"

	"github.com/livetree/livetree/internal/proof"
)

// The rules of the twins. They refer only to data that the user u may read:
// a rule that looks at other data tells of it by itself.
const twinRules = `{"rules": {
	"open": {".read": true, ".write": true, ".indexOn": ["n", ".value"]},
	"list": {".read": true, ".write": true},
	"mine": {"$user": {".read": "auth.uid === $user", ".write": "auth.uid === $user && root.child('open/locked').val() !== true", ".indexOn": "n"}},
	"part": {"$k": {"shown": {".read": "auth != null", ".write": true}, ".write": "auth.uid === 'u' && !newData.hasChild('bad')"}},
	"drop": {".write": true, ".indexOn": "n"},
	"hidden": {".indexOn": ["n", ".value"]}
}}`

// A twins is two servers with the same rules, whose data differs only where the
// user u may not read. Whatever u asks, both must answer the same.
type twins struct {
	first, second *client
	token         string
	debugging     string // a token of the same user to which the trace of the rules is shown
	rng           *rand.Rand
	requests      int
	streams       int
	differences   []string
}

// TestTwins asks two servers the same as one user and compares everything that
// comes back.
func TestTwins(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for i, turns := range portions(rounds(3, 100, 1000), 10) {
		a, b := startTwins(t)
		w := newTwins(t, newClient(t, a, 2), newClient(t, b, 2), n+uint64(i))
		for range turns {
			w.differ(t, 20)
			w.ask(t, length(300, 1000, 1000))
			w.watch(t, 5)
		}
		a.kill()
		b.kill()
		for _, difference := range w.differences {
			t.Error(difference)
		}
		figures.Report(t, "twins", proof.Count("requests", w.requests), proof.Count("streams", w.streams), proof.Count("differences", len(w.differences)))
	}
}

// startTwins starts two servers from copies of one data directory, so that their
// keys are the same and even ETags must be equal.
func startTwins(t *testing.T) (a, b *process) {
	t.Helper()
	dir := founded(t)
	return startProcessOn(t, copied(t, dir)), startProcessOn(t, dir)
}

// founded returns the data directory of a stopped server with rules and data.
func founded(t *testing.T) string {
	t.Helper()
	p := startProcess(t)
	admin := newClient(t, p, 1)
	admin.must(t, request{method: "PUT", target: "/.settings/rules.json?auth=" + secret, body: twinRules})
	admin.must(t, request{method: "PUT", target: "/.json?auth=" + secret, body: `{
		"open": {"a": {"n": 1, "s": "x"}, "b": {"n": 2}, "c": {"n": "two", ".priority": 3}, "d": 4, "e": null, "f": [1, 2, 3]},
		"mine": {"u": {"k": {"n": 1}}, "v": {"k": {"n": 1}}},
		"part": {"one": {"shown": 1}, "two": {"shown": {"n": 2}}}}`})
	if err := p.terminate(); err != nil {
		t.Fatal(err)
	}
	return p.dir
}

// copied returns a copy of a data directory.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func newTwins(t *testing.T, first, second *client, seed uint64) *twins {
	t.Helper()
	return &twins{first: first, second: second, token: tokenOf(t, "u"), debugging: mint(t, "u", true), rng: newRand(seed, 0)}
}

// tokenOf returns a token of a user.
func tokenOf(t *testing.T, user string) string {
	t.Helper()
	return mint(t, user, false)
}

func mint(t *testing.T, user string, debug bool) string {
	t.Helper()
	token, err := auth.Mint(secret, auth.Claims{Data: map[string]any{"uid": user}, Expires: time.Now().Add(100 * time.Hour), Debug: debug})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// hiddenPlaces are where u may not read.
var hiddenPlaces = []string{"hidden", "hidden/a", "hidden/b/c", "mine/v", "mine/v/k", "drop", "drop/a", "drop/b", "part/one/sec", "part/three/sec", "open2", "drop/sum"}

// differ makes the hidden data of the twins different. Each gets as many writes,
// because positions are counted for the whole database.
func (w *twins) differ(t *testing.T, count int) {
	t.Helper()
	for range count {
		place := pick(w.rng, hiddenPlaces...)
		w.first.must(t, w.hiddenWrite(place))
		w.second.must(t, w.hiddenWrite(place))
	}
}

func (w *twins) hiddenWrite(place string) request {
	n := w.rng.IntN(1000)
	body := pick(w.rng, "null", fmt.Sprint(n), fmt.Sprintf("%q", strings.Repeat("z", n)), fmt.Sprintf(`{"n":%d,".priority":%d}`, n, n),
		fmt.Sprintf(`{"x%d":{"n":%d},"y":{"n":"s","sec":true}}`, n, n), "true", `{".value":7,".priority":"p"}`)
	return request{method: "PUT", target: "/" + place + ".json?auth=" + secret, body: body}
}

// ask sends random requests of u to both. In between the operator writes, since u
// makes equal what he may write but not read.
func (w *twins) ask(t *testing.T, count int) {
	t.Helper()
	for range count {
		if len(w.differences) > 10 {
			return
		}
		w.differ(t, w.rng.IntN(2))
		r := randomQuestion(w.rng, pick(w.rng, w.token, w.token, w.token, w.debugging))
		if tag := w.readTag(r); tag != "" {
			r.header = append(r.header, "If-Match", tag)
		}
		w.requests++
		if difference := w.compare(r); difference != "" {
			w.differences = append(w.differences, difference)
		}
	}
}

// readTag returns the ETag that the first twin shows u, for some writes.
func (w *twins) readTag(r request) string {
	if r.method != "PUT" && r.method != "DELETE" || strings.HasPrefix(r.target, "/list") || w.rng.IntN(4) > 0 {
		return ""
	}
	path, _, _ := strings.Cut(r.target, ".json")
	a, _, err := w.first.send(request{method: "GET", target: path + ".json?auth=" + w.token, header: []string{"X-Firebase-ETag", "true"}})
	if err != nil {
		return ""
	}
	return a.header.Get("ETag")
}

func (w *twins) compare(r request) string {
	var a, b answer
	var errA, errB error
	var both sync.WaitGroup
	both.Go(func() { a, _, errA = w.first.send(r) })
	both.Go(func() { b, _, errB = w.second.send(r) })
	both.Wait()
	if errA != nil || errB != nil {
		return fmt.Sprintf("%s: %v, %v", r, errA, errB)
	}
	if x, y := seenBy(r, a), seenBy(r, b); x != y {
		return fmt.Sprintf("%s is answered differently:\n%s\n%s", r, x, y)
	}
	return ""
}

var pushKey = regexp.MustCompile(`-[0-9A-Za-z_-]{19}`)

// seenBy prints all of an answer but for the time, the number of the request, what
// becomes of the connection, and generated keys.
func seenBy(r request, a answer) string {
	var text strings.Builder
	// The ETag of what holds a generated key differs with it.
	holdsKeys := r.method == "POST" || strings.HasPrefix(r.target, "/list")
	fmt.Fprintln(&text, a.status, http.StatusText(a.status))
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		if name != "Date" && name != "X-Request-Id" && name != "Connection" && (name != "Etag" || !holdsKeys) {
			fmt.Fprintf(&text, "%s: %q\n", name, a.header[name])
		}
	}
	text.WriteString(a.body)
	if holdsKeys {
		return pushKey.ReplaceAllString(text.String(), "<key>")
	}
	return text.String()
}
