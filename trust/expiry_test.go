//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

const (
	expiryWriters = 3
	// neverDue is the time of a child that stays.
	neverDue = math.MaxInt64
	// How late a child may go while the server runs, and beside other tests, which may starve it.
	expiryLate, busyLate = 5 * time.Second, 20 * time.Second
	expiryRules          = `{"rules":{".read":true,".write":true,"sessions":{".expireOn":"e"}}}`
)

// TestExpiry kills the server at random moments while clients write children that expire. None goes
// before its time, none stays for long after it or after the start of the server, and what has no
// time stays.
func TestExpiry(t *testing.T) {
	t.Parallel()
	r := newRand(seed(t), 0)
	var written, gone, latest, kills int
	for i := range rounds(1, 50, 200) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			e := newExpiryRound(t, r)
			e.run(t, r)
			written, gone, latest, kills = written+len(e.books.children), gone+e.books.gone, max(latest, e.books.latest), kills+e.kills
		})
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
	if gone == 0 || kills == 0 {
		t.Errorf("%d children went, over %d kills: this test saw nothing", gone, kills)
	}
	figures.Report(t, "expiry", proof.Count("children", written), proof.Count("gone", gone), proof.Count("most_late_milliseconds", latest), proof.Count("kills", kills))
}

// An expiryRound is a server with data that expires, clients, and one who looks.
type expiryRound struct {
	server   *process
	receiver *receiver
	now      atomic.Int64
	names    atomic.Int64
	kills    int

	mu    sync.Mutex
	books expiryBooks
}

func newExpiryRound(t *testing.T, r *rand.Rand) *expiryRound {
	t.Helper()
	e := &expiryRound{books: expiryBooks{children: map[string]*expiring{}, bound: length(busyLate, expiryLate, expiryLate)}}
	var err error
	if e.receiver, err = newReceiver(t, rand.New(rand.NewPCG(r.Uint64(), 0)), &e.now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.receiver.crash)
	e.server = startProcess(t, "--dev", "--admin-addr", "127.0.0.1:0", "--hook-allow", e.receiver.addr)
	e.books.since = time.Now().UnixMilli()
	newClient(t, e.server, 1).must(t, request{method: "PUT", target: target("default", []string{"other"}, false), body: "1"})
	body := fmt.Sprintf(`{"name":"sessions","path":"/sessions/$id","url":"http://%s/in","secret":%q}`, e.receiver.addr, hookSecret)
	mustAdmin(t, e.server, "POST", "/v1/databases/default/hooks", body)
	return e
}

// run has clients write over some lives of the server, and waits until all is gone that is due.
func (e *expiryRound) run(t *testing.T, r *rand.Rand) {
	t.Helper()
	ruledIn := r.IntN(2)
	for life := range 2 + r.IntN(3) {
		if life == ruledIn {
			e.rule(t)
		}
		stop := make(chan struct{})
		var busy sync.WaitGroup
		for i := range expiryWriters {
			dice, c := rand.New(rand.NewPCG(r.Uint64(), uint64(i))), newClient(t, e.server, 1)
			busy.Go(func() { e.write(c, dice, stop) })
		}
		looker := newClient(t, e.server, 1)
		busy.Go(func() { e.look(looker, stop) })
		<-time.After(time.Duration(200+r.IntN(800)) * time.Millisecond)
		if life == 0 || r.IntN(4) > 0 {
			e.kills++
			e.server.kill()
		} else if err := e.server.terminate(); err != nil {
			t.Fatal(err)
		}
		close(stop)
		busy.Wait()
		<-time.After(time.Duration(r.IntN(500)) * time.Millisecond)
		if err := e.server.start(); err != nil {
			t.Fatal(err)
		}
		e.mu.Lock()
		e.books.since = time.Now().UnixMilli()
		e.mu.Unlock()
	}
	e.await(t)
	for _, problem := range e.books.problems {
		t.Error(problem)
	}
}

// rule sets the rules by which children expire.
func (e *expiryRound) rule(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	e.books.ruled = true
	e.mu.Unlock()
	newClient(t, e.server, 1).must(t, request{method: "PUT", target: "/.settings/rules.json?auth=" + secret, body: expiryRules})
	e.mu.Lock()
	e.books.since = time.Now().UnixMilli()
	e.mu.Unlock()
}

// write has a client write children of its own, until it is to stop.
func (e *expiryRound) write(c *client, r *rand.Rand, stop chan struct{}) {
	var own []string
	last := int64(0) // when the child that was written last is due
	for range 100 {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(r.IntN(20)) * time.Millisecond):
		}
		key := ""
		if len(own) == 0 || r.IntN(3) > 0 {
			key = fmt.Sprint("s", e.names.Add(1))
			own = append(own, key)
		} else {
			key = own[r.IntN(len(own))]
		}
		if until := last - time.Now().UnixMilli(); until > -2 && until < 100 && len(own) > 0 && r.IntN(2) == 0 {
			key = own[len(own)-1] // at the last moment, or too late
			<-time.After(time.Duration(until-2+r.Int64N(4)) * time.Millisecond)
		}
		due, text := dueTime(r)
		if key == own[len(own)-1] {
			last = due
		}
		send := request{method: "PUT", target: target("default", []string{"sessions", key}, false), body: fmt.Sprintf(`{"w":1,"e":%s}`, text)}
		switch {
		case text == "" && r.IntN(2) == 0:
			send.body = `{"w":1}`
		case text == "":
			send.body = `{"w":1,"e":"soon"}`
		case r.IntN(3) == 0:
			send.method, send.body = "PATCH", fmt.Sprintf(`{"e":%s}`, text)
		}
		e.mu.Lock()
		e.books.sent(key, due)
		e.mu.Unlock()
		a, _, err := c.send(send)
		e.mu.Lock()
		e.books.answered(key, due, err == nil && a.status == http.StatusOK, time.Now().UnixMilli())
		e.mu.Unlock()
	}
}

// dueTime returns a time at which a child is due, and how it is written; nothing if it never is.
func dueTime(r *rand.Rand) (due int64, text string) {
	switch r.IntN(8) {
	case 0:
		return neverDue, ""
	case 1: // not as long as this test runs
		due = time.Now().Add(time.Hour).UnixMilli() + r.Int64N(1000)
	default:
		due = time.Now().UnixMilli() - 50 + r.Int64N(pick(r, int64(150), 1500))
	}
	return due, fmt.Sprint(due)
}

// look reads all children, over and over.
func (e *expiryRound) look(c *client, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		_, _ = e.read(c) // it may be killed
	}
}

// read reads all children and compares them with the books. It returns how many are there that will go
// while this test runs.
func (e *expiryRound) read(c *client) (going int, err error) {
	e.mu.Lock()
	before := e.books.snapshot()
	e.mu.Unlock()
	begun := time.Now().UnixMilli()
	a, _, err := c.send(request{method: "GET", target: target("default", []string{"sessions"}, false)})
	ended := time.Now().UnixMilli()
	if err != nil || a.status != http.StatusOK {
		return 0, fmt.Errorf("read the children: %d, %w", a.status, err)
	}
	var there map[string]struct{ E any }
	if err := json.Unmarshal([]byte(a.body), &there); err != nil {
		return 0, err
	}
	found := make(map[string]int64, len(there))
	for key, child := range there {
		found[key] = neverDue
		if due, isNumber := child.E.(float64); isNumber {
			if found[key] = int64(due); found[key] < ended+time.Minute.Milliseconds() {
				going++
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.books.saw(before, found, begun, ended)
	return going, nil
}

// await waits until all is gone that has a time soon, and the hook was told.
func (e *expiryRound) await(t *testing.T) {
	t.Helper()
	c := newClient(t, e.server, 1)
	for late := time.Now().Add(patience); ; {
		going, err := e.read(c)
		if err != nil {
			t.Fatal(err)
		}
		attempts, problems := e.receiver.seen()
		told := e.books.told(attempts, problems)
		if len(e.books.problems) > 0 || going == 0 && told {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%d children are there that should go; all were told: %t", going, told)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// expiryBooks are what is known of children that expire.
type expiryBooks struct {
	children map[string]*expiring
	ruled    bool  // the rules may be there
	since    int64 // the server runs, with the rules if it has them
	bound    time.Duration

	gone     int // children that the hook was told of
	latest   int // milliseconds
	problems []string
}

// expiring is a child, and what may be there.
type expiring struct {
	dues    []int64 // of writes that may be the last one
	absent  bool    // it may never have been written
	version int     // counts what happens to it
	since   int64   // when a write was last acknowledged
	all     []int64 // of all writes
}

func (b *expiryBooks) problem(format string, args ...any) {
	if len(b.problems) < 20 {
		b.problems = append(b.problems, fmt.Sprintf(format, args...))
	}
}

// sent notes that a write is sent.
func (b *expiryBooks) sent(key string, due int64) {
	c := b.children[key]
	if c == nil {
		c = &expiring{absent: true}
		b.children[key] = c
	}
	c.version++
	c.dues, c.all = append(c.dues, due), append(c.all, due)
}

// answered notes the answer. A write without one was made or not, and cannot be made any more.
func (b *expiryBooks) answered(key string, due int64, ok bool, now int64) {
	c := b.children[key]
	if c.version++; ok {
		c.dues, c.absent, c.since = []int64{due}, false, now
	}
}

// snapshot returns the versions of all children.
func (b *expiryBooks) snapshot() map[string]int {
	versions := make(map[string]int, len(b.children))
	for key, c := range b.children {
		versions[key] = c.version
	}
	return versions
}

// saw compares what a read has found with what may be there. The read began and ended at these times.
func (b *expiryBooks) saw(before map[string]int, found map[string]int64, begun, ended int64) {
	for key, due := range found {
		if c := b.children[key]; c == nil || !slices.Contains(c.all, due) {
			b.problem("%s is there with the time %d, which was never written", key, due)
		}
	}
	for key, version := range before {
		c := b.children[key]
		if c.version != version || version%2 == 1 {
			continue // it was being written
		}
		due, isThere := found[key]
		isOver := b.ruled && slices.ContainsFunc(c.dues, func(due int64) bool { return due <= ended })
		switch {
		case !isThere && !isOver && !c.absent:
			b.problem("%s is gone at %d, and due at %v", key, ended, c.dues)
		case isThere && !slices.Contains(c.dues, due):
			b.problem("%s is there with the old time %d in place of one of %v", key, due, c.dues)
		case isThere && b.ruled && due < neverDue:
			late := begun - max(due, c.since, b.since)
			if b.latest = max(b.latest, int(late)); late > b.bound.Milliseconds() {
				b.problem("%s, due at %d, is there %d ms later", key, due, late)
			}
		}
	}
}

// told compares what the hook was told with what was written: a child goes by expiry, in a commit that is not
// before its time. It reports whether all were told that had to go.
func (b *expiryBooks) told(attempts []attempt, problems []string) bool {
	b.problems = append(b.problems, problems...)
	gone := map[string]bool{}
	for _, a := range attempts {
		key := a.Params["id"]
		if a.Event != "delete" {
			continue
		}
		var before struct{ E any }
		err := json.Unmarshal(a.Before, &before)
		due, isNumber := before.E.(float64)
		if err != nil || !isNumber || a.Who.By != "expiry" || int64(due) > a.Time {
			b.problem("%s was deleted, which was not due", a.body)
		}
		if c := b.children[key]; c == nil || !slices.Contains(c.all, int64(due)) {
			b.problem("%s was deleted, which was never written", a.body)
		}
		gone[key] = true
	}
	b.gone = len(gone)
	for key, c := range b.children {
		if !c.absent && slices.Max(c.dues) <= time.Now().UnixMilli() && !gone[key] {
			return false
		}
	}
	return true
}
