//go:build unix

package trust_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/hook"
)

// hookSecret is that of all hooks of these tests.
const hookSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// A delivery is the body of a request to a receiver.
type delivery struct {
	ID       string            `json:"id"`
	Hook     string            `json:"hook"`
	Database string            `json:"database"`
	Path     string            `json:"path"`
	Params   map[string]string `json:"params"`
	Event    string            `json:"event"`
	Before   json.RawMessage   `json:"before"`
	After    json.RawMessage   `json:"after"`
	Position uint64            `json:"position"`
	Time     int64             `json:"time"`
	Who      struct {
		By string `json:"by"`
	} `json:"who"`
}

// An attempt is a delivery that has come to a receiver. Its times are numbers of one sequence,
// which the writes have too; 0 is never.
type attempt struct {
	delivery
	body    string
	life    int   // which start of the server sent it
	arrived int64 // when it came
	decided int64 // when it was answered by 200, by the receiver's will
	flushed int64 // when that answer was sent whole
	over    int64 // when the receiver had done with it, however
	came    time.Time
}

// end returns when an attempt was over as far as the server is concerned, or later.
func (a *attempt) end() int64 {
	if a.decided > 0 {
		return a.decided
	}
	return a.over
}

// isUnderWay reports whether an attempt was not over when another came. One that got no answer for
// long was given up by the server, which the receiver may notice late.
func (a *attempt) isUnderWay(when *attempt) bool {
	return (a.end() == 0 || a.end() > when.arrived) && when.came.Sub(a.came) < 10*time.Second
}

// A mood is what a receiver does with deliveries.
type mood int

const (
	isWell   mood = iota
	fails         // 500
	isBusy        // 503, and says when to come back
	stalls        // no answer, until the server gives up or the mood changes
	forgets       // 200, and crashes before the answer is sent: it was dealt with, and the server cannot know
	hangsUp       // 200, and crashes in mid-answer
	isUnsure      // any of these
	isGone        // 410: the server pauses the hook
)

// A receiver takes deliveries in this process, and can crash: then nobody listens, and connections
// are cut.
type receiver struct {
	addr string
	now  *atomic.Int64 // the sequence

	mu       sync.Mutex
	dice     *rand.Rand
	server   *http.Server // nil while it has crashed
	mood     map[string]mood
	changed  chan struct{} // closed when the mood changes
	life     int
	met      map[string]bool // remote addresses of connections
	current  map[net.Conn]*attempt
	attempts []*attempt
	problems []string
}

func newReceiver(t *testing.T, dice *rand.Rand, now *atomic.Int64) (*receiver, error) {
	t.Helper()
	r := &receiver{dice: dice, now: now, mood: map[string]mood{}, changed: make(chan struct{}), met: map[string]bool{}, current: map[net.Conn]*attempt{}}
	l, err := net.Listen("tcp", freeaddr.One(t)) // it comes back to it after a crash
	if err != nil {
		return nil, err
	}
	r.addr = l.Addr().String()
	r.serve(l)
	return r, nil
}

// The keys of the connection of a request, and of the life of the server that has opened it.
type (
	connKey struct{}
	lifeKey struct{}
)

func (r *receiver) serve(l net.Listener) {
	server := &http.Server{Handler: r, ConnContext: r.meet, ConnState: r.follow, ReadHeaderTimeout: patience}
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	go func() { _ = server.Serve(l) }() // it ends with a crash
}

// meet notes a connection.
func (r *receiver) meet(ctx context.Context, c net.Conn) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.met[c.RemoteAddr().String()] = true
	return context.WithValue(context.WithValue(ctx, connKey{}, c), lifeKey{}, r.life)
}

// follow notes when an answer was sent whole: the connection waits for the next request.
func (r *receiver) follow(c net.Conn, state http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.current[c]; a != nil && state == http.StateIdle && a.decided > 0 {
		a.flushed = r.now.Add(1)
	}
	delete(r.current, c)
}

// crash cuts all connections, and listens no more.
func (r *receiver) crash() {
	r.mu.Lock()
	server := r.server
	r.server = nil
	for _, a := range r.attempts {
		if a.over == 0 {
			a.over = r.now.Add(1)
		}
	}
	r.mu.Unlock()
	if server != nil {
		_ = server.Close() // that connections end is what is wanted
	}
}

// recover has it listen again.
func (r *receiver) recover() error {
	r.mu.Lock()
	down := r.server == nil
	r.mu.Unlock()
	if !down {
		return nil
	}
	l, err := net.Listen("tcp", r.addr)
	if err == nil {
		r.serve(l)
	}
	return err
}

// setMood changes what it does with the deliveries of a hook.
func (r *receiver) setMood(hook string, m mood) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mood[hook] = m
	close(r.changed)
	r.changed = make(chan struct{})
}

// nextLife is told that the server is gone. Connections are taken in the order in which they were
// opened: when one that is opened now was taken, so were all of the old server.
func (r *receiver) nextLife() error {
	r.mu.Lock()
	down := r.server == nil
	r.mu.Unlock()
	if !down {
		c, err := net.DialTimeout("tcp", r.addr, patience)
		if err != nil {
			return err
		}
		defer c.Close()
		for late := time.Now().Add(patience); !r.hasMet(c.LocalAddr().String()); {
			if time.Now().After(late) {
				return fmt.Errorf("the receiver takes no connections")
			}
			<-time.After(time.Millisecond)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.life++
	return nil
}

func (r *receiver) hasMet(addr string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.met[addr]
}

// ServeHTTP takes a delivery.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	if err != nil {
		return // the server was killed
	}
	a := &attempt{body: string(body)}
	problem := a.read(req)
	m, changed := r.take(a, req, problem)
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if a.over == 0 {
			a.over = r.now.Add(1)
		}
	}()
	switch m {
	case fails:
		w.WriteHeader(http.StatusInternalServerError)
	case isGone:
		w.WriteHeader(http.StatusGone)
	case isBusy:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case stalls:
		select {
		case <-req.Context().Done():
		case <-changed:
		}
		panic(http.ErrAbortHandler)
	case forgets:
		r.decide(a)
		panic(http.ErrAbortHandler)
	case hangsUp:
		r.decide(a)
		w.Header().Set("Content-Length", "9")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		r.decide(a)
	}
}

// read reads a delivery, and says what is wrong with it.
func (a *attempt) read(req *http.Request) (problem string) {
	if err := json.Unmarshal([]byte(a.body), &a.delivery); err != nil {
		return err.Error()
	}
	seconds, err := strconv.ParseInt(req.Header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		return err.Error()
	}
	signature, err := hook.Sign([]string{hookSecret}, req.Header.Get("Webhook-Id"), seconds, []byte(a.body))
	if err != nil || signature != req.Header.Get("Webhook-Signature") || a.ID != req.Header.Get("Webhook-Id") {
		return fmt.Sprintf("the signature does not fit: %v %s", err, a.body)
	}
	return ""
}

// take notes a delivery, and says what to do with it.
func (r *receiver) take(a *attempt, req *http.Request, problem string) (mood, chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if problem != "" {
		r.problems = append(r.problems, problem)
	}
	a.life, _ = req.Context().Value(lifeKey{}).(int)
	a.arrived, a.came = r.now.Add(1), time.Now()
	if c, ok := req.Context().Value(connKey{}).(net.Conn); ok {
		r.current[c] = a
	}
	r.attempts = append(r.attempts, a)
	m := r.mood[a.Hook]
	if m == isUnsure {
		m = mood(r.dice.IntN(int(isUnsure)))
	}
	return m, r.changed
}

func (r *receiver) decide(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.decided = r.now.Add(1)
}

// seen returns a copy of all that came in, and what was wrong with it.
func (r *receiver) seen() (attempts []attempt, problems []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attempts {
		attempts = append(attempts, *a)
	}
	return attempts, append([]string(nil), r.problems...)
}
