//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/model"
)

// A witness writes to a place of its own and keeps, outside of the server, what
// the place must hold. At most one of its writes is in doubt: one that was sent
// and not answered, after which it writes nothing more until it has looked.
type witness struct {
	client   *client
	database string
	place    []string
	rng      *rand.Rand
	count    int // of what it did, for marks

	tree  *model.Tree // with all that was acknowledged
	doubt *write
	tally *tally // shared by all witnesses of the database
	books *account
	// isHasty has others told of a write before it is sent, in a test of the test.
	isHasty bool
}

// An account is what all witnesses of a test have seen.
type account struct {
	mu           sync.Mutex
	acknowledged int
	refused      int         // answered with 4xx
	unknown      int         // sent, and no answer that decides
	unanswered   []time.Time // when each was sent, all of it, to which no answer came
	problems     []string
	enough       int           // as many acknowledged writes end a round
	isEnough     chan struct{} // closed then

	// isClosed says that the machine which answers is no more.
	isClosed bool
	// seen has, of each witness, the count of its last write that a reader or a
	// stream was shown.
	seen   map[string]int
	sights int
}

// close ends the page: what is heard from now on comes from a machine that is no
// more, and promises nothing. What was heard before must be kept.
func (a *account) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.isClosed = true
}

// open begins a page, of another machine that goes on where the last one ended.
func (a *account) open() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.isClosed = false
}

// isOpen reports whether what was just heard counts.
func (a *account) isOpen() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.isClosed
}

// acknowledge counts an acknowledged write and reports whether it counts.
func (a *account) acknowledge() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isClosed {
		return false
	}
	a.acknowledged++
	if a.acknowledged == a.enough {
		close(a.isEnough)
	}
	return true
}

var markText = regexp.MustCompile(`"(w\d+)-(\d+)"`)

// saw is told what somebody was shown, by an answer or an event.
func (a *account) saw(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isClosed {
		return
	}
	if a.seen == nil {
		a.seen = map[string]int{}
	}
	for _, mark := range markText.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(mark[2]); err == nil {
			a.seen[mark[1]] = max(a.seen[mark[1]], n)
			a.sights++
		}
	}
}

// wasSeen reports whether somebody was shown a write.
func (a *account) wasSeen(witness string, count int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[witness] >= count
}

// miss enters that a request was not answered.
func (a *account) miss(s sending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !s.all.IsZero() {
		a.unanswered = append(a.unanswered, s.all)
	}
}

func (a *account) add(n *int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*n++
}

func (a *account) problem(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// found returns the problems so far.
func (a *account) found() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.problems)
}

// work writes until the server does not answer any more, or stop is closed.
func (w *witness) work(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		w.count++
		var goesOn bool
		switch w.rng.IntN(10) {
		case 0:
			goesOn = w.tally.step(w)
		case 1:
			goesOn = w.refusedWrite()
		case 2:
			goesOn = w.transaction()
		default:
			goesOn = w.write()
		}
		if !goesOn {
			return
		}
	}
}

// mark returns a text that nobody else writes.
func (w *witness) mark() string {
	return fmt.Sprintf("%s-%d", w.place[0], w.count)
}

func (w *witness) write() bool {
	o := randomWrite(w.rng, w.place, w.mark())
	return w.settle(o, o.request(w.database))
}

// settle sends a write and enters what became of it.
func (w *witness) settle(o write, r request) bool {
	if w.isHasty {
		w.books.saw(r.body)
	}
	a, sent, err := w.client.send(r)
	switch {
	case err == nil && a.status == http.StatusOK && w.books.acknowledge():
		if problem := w.enter(o, a); problem != "" {
			w.books.problem("%s = 200 %s: %s", r, a.body, problem)
		}
		return true
	case err == nil && a.status < 500 && a.status != http.StatusOK:
		w.books.problem("%s = %d %s, want 200", r, a.status, a.body)
		return true
	case err != nil && !sent.isSent:
		return false // nobody has seen it
	case err != nil:
		w.books.miss(sent)
	}
	w.books.add(&w.books.unknown)
	w.doubt = &o
	return false
}

// enter does to the book what the server said it has done.
func (w *witness) enter(o write, a answer) string {
	var key string
	if o.method == "POST" {
		var posted struct{ Name string }
		if err := json.Unmarshal([]byte(a.body), &posted); err != nil {
			return err.Error()
		}
		key = posted.Name
	}
	if err := o.apply(w.tree, key); err != nil {
		return "the model refuses it: " + err.Error()
	}
	if want := w.tree.Plain(o.path); o.method == "PUT" && !o.isPriority && a.body != want {
		return "want " + want
	}
	return ""
}

// refusedWrite sends what must be refused, and never be there.
func (w *witness) refusedWrite() bool {
	path := append(slices.Clone(w.place), "a")
	r := pick(w.rng,
		request{method: "PUT", target: target(w.database, path, false), body: `{"a":1,"a":2}`},
		request{method: "PATCH", target: target(w.database, path, false), body: `{"x":"refused","x/y":1}`},
		request{method: "PUT", target: target(w.database, path, false), body: `"refused"`, header: []string{"If-Match", "nonsense"}},
		request{method: "POST", target: target(w.database, path, false), body: `{"refused":`},
	)
	a, sent, err := w.client.send(r)
	switch {
	case err == nil && a.status >= 400 && a.status < 500:
		w.books.add(&w.books.refused)
		return true
	case err == nil && a.status < 500:
		w.books.problem("%s = %d %s, want it refused", r, a.status, a.body)
		return true
	case err != nil:
		w.books.miss(sent)
	}
	return false
}

// transaction reads a node and replaces it on the condition that it is the same
// still. Nobody else writes here, so that it must succeed.
func (w *witness) transaction() bool {
	path := append(slices.Clone(w.place), pick(w.rng, "a", "b", "c"))
	read := request{method: "GET", target: target(w.database, path, false, "format=export"), header: []string{"X-Firebase-ETag", "true"}}
	a, sent, err := w.client.send(read)
	if err != nil || a.status >= 500 {
		if err != nil {
			w.books.miss(sent)
		}
		return false
	}
	if want := w.tree.Export(path); a.status != http.StatusOK || a.body != want {
		w.books.problem("%s = %d %s, want %s, which was acknowledged", read, a.status, a.body, want)
	}
	o := write{method: pick(w.rng, "PUT", "PUT", "DELETE"), path: path}
	if o.method == "PUT" {
		o.body = strconv.Quote(w.mark())
	}
	r := o.request(w.database)
	r.header = []string{"If-Match", a.header.Get("ETag")}
	return w.settle(o, r)
}

// verify looks at the place after a restart and decides what was in doubt.
func (w *witness) verify() error {
	read := request{method: "GET", target: target(w.database, w.place, false, "format=export")}
	a, _, err := w.client.send(read)
	if err != nil {
		return err
	}
	before := w.tree.Export(w.place)
	doubt := w.doubt
	w.doubt = nil
	if a.status == http.StatusOK && a.body == before {
		if doubt != nil && w.books.wasSeen(w.place[0], w.count) {
			w.books.problem("%v was shown to somebody before the power was cut, and is gone", doubt)
		}
		return nil
	}
	if doubt != nil {
		after := w.tree.Clone()
		if err := doubt.apply(after, w.postedKey(a.body)); err != nil {
			return err
		}
		if a.status == http.StatusOK && a.body == after.Export(w.place) {
			w.tree = after
			return nil
		}
	}
	w.books.problem("%s after a restart = %d %s\nwant what was acknowledged: %s\nin doubt: %v", read, a.status, a.body, before, doubt)
	// Go on from what is there, so that one loss is told once.
	w.tree = model.New()
	return w.tree.Put(w.place, []byte(a.body), 0)
}

// postedKey returns the key below posts that is not in the book.
func (w *witness) postedKey(body string) string {
	var node struct{ Posts map[string]any }
	_ = json.Unmarshal([]byte(body), &node) // it may be a leaf
	known := w.tree.Shallow(append(slices.Clone(w.place), "posts"))
	for key := range node.Posts {
		if !strings.Contains(known, strconv.Quote(key)) {
			return key
		}
	}
	return "none"
}
