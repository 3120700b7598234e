//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

const (
	hookDatabase = "trust-hooks"
	hookWriters  = 4
	// hookWrites bounds the writes of one client in one life of the server. All of them may wait for
	// one receiver that fails.
	hookWrites = 60
)

// hookPatterns are those of the hooks, by their names. Both see every write.
var hookPatterns = map[string]string{"orders": "/orders/$id", "words": "/orders/$id/w"}

// TestHooks kills the server at random moments while clients write and the receiver of webhooks
// crashes, stalls, fails and forgets. Then every change that was made was delivered, in order for
// each location, and none that was not.
func TestHooks(t *testing.T) {
	t.Parallel()
	r := newRand(seed(t), 0)
	var writes, delivered, again, kills int
	for i := range rounds(1, 100, 400) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			h := newHookRound(t, r)
			h.run(t, r)
			for _, w := range h.books.writes {
				writes += min(int(w.acked), 1)
			}
			ids := map[string]bool{}
			for _, a := range h.books.attempts {
				ids[a.ID] = true
			}
			delivered += len(ids)
			again += len(h.books.attempts) - len(ids)
			kills += h.kills
		})
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
	if writes == 0 || delivered < writes {
		t.Errorf("%d writes were acknowledged, %d deliveries made: this test saw nothing", writes, delivered)
	}
	figures.Report(t, "hooks", proof.Count("acknowledged", writes), proof.Count("delivered", delivered), proof.Count("attempts more", again), proof.Count("kills", kills))
}

// A hookRound is a server with hooks, their receiver, and clients.
type hookRound struct {
	server   *process
	receiver *receiver
	now      atomic.Int64
	kills    int
	keys     int // how many there are; with few, much waits for one location

	mu    sync.Mutex
	books hookBooks
}

func newHookRound(t *testing.T, r *rand.Rand) *hookRound {
	t.Helper()
	h := &hookRound{keys: pick(r, 2, 5, 12, 40), books: hookBooks{final: map[string]string{}, stopped: map[int]int64{}, hooks: map[string]bool{}}}
	var err error
	if h.receiver, err = newReceiver(t, rand.New(rand.NewPCG(r.Uint64(), 0)), &h.now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.receiver.crash)
	h.server = startProcess(t, "--dev", "--admin-addr", "127.0.0.1:0", "--hook-allow", h.receiver.addr)
	newClient(t, h.server, 1).must(t, request{method: "PUT", target: target(hookDatabase, []string{"other"}, false), body: "1"})
	for name, pattern := range hookPatterns {
		h.books.hooks[name] = true
		body := fmt.Sprintf(`{"name":%q,"path":%q,"url":"http://%s/in","secret":%q}`, name, pattern, h.receiver.addr, hookSecret)
		mustAdmin(t, h.server, "POST", "/v1/databases/"+hookDatabase+"/hooks", body)
	}
	return h
}

// run has the clients write over some lives of the server, and judges when all is delivered.
func (h *hookRound) run(t *testing.T, r *rand.Rand) {
	t.Helper()
	for range 2 + r.IntN(3) {
		stop := make(chan struct{})
		var busy sync.WaitGroup
		dice := rand.New(rand.NewPCG(r.Uint64(), 0))
		busy.Go(func() { h.disturb(t, dice, stop) })
		for i := range hookWriters {
			dice, c := rand.New(rand.NewPCG(r.Uint64(), uint64(i))), newClient(t, h.server, 1)
			busy.Go(func() { h.write(c, dice, stop) })
		}
		<-time.After(time.Duration(100+r.IntN(700)) * time.Millisecond)
		h.end(t, r.IntN(4) > 0)
		close(stop)
		busy.Wait()
		h.start(t)
	}
	h.heal(t)
	h.end(t, true) // pauses after failures end with the server
	h.start(t)
	h.await(t)
	// What was delivered is known after an end in order.
	h.books.stopped[h.receiver.life] = h.settle(t)
	h.end(t, false)
	h.start(t)
	<-time.After(300 * time.Millisecond)
	h.judge(t)
}

// end ends the server, by a kill or in order.
func (h *hookRound) end(t *testing.T, kill bool) {
	t.Helper()
	if kill {
		h.kills++
		h.server.kill()
	} else {
		h.books.stopped[h.receiver.life] = max(h.books.stopped[h.receiver.life], 0)
		if err := h.server.terminate(); err != nil {
			t.Fatal(err)
		}
	}
}

// start starts the server again, and resumes the hooks. The receiver is not disturbed meanwhile.
func (h *hookRound) start(t *testing.T) {
	t.Helper()
	if err := h.receiver.nextLife(); err != nil {
		t.Fatal(err)
	}
	if err := h.server.start(); err != nil {
		t.Fatal(err)
	}
	for name := range hookPatterns { // it may be paused
		mustAdmin(t, h.server, "PATCH", "/v1/databases/"+hookDatabase+"/hooks/"+name, `{"paused":false}`)
	}
}

// disturb changes what the receiver does, until it is to stop.
func (h *hookRound) disturb(t *testing.T, r *rand.Rand, stop chan struct{}) {
	t.Helper()
	names := []string{"orders", "words"}
	for {
		switch r.IntN(6) {
		case 0:
			h.receiver.crash()
			<-time.After(time.Duration(r.IntN(200)) * time.Millisecond)
		case 1:
			for _, name := range names {
				h.receiver.setMood(name, isWell)
			}
		default:
			m := mood(r.IntN(int(isGone)))
			if r.IntN(30) == 0 {
				m = isGone
			}
			h.receiver.setMood(names[r.IntN(len(names))], m)
		}
		if err := h.receiver.recover(); err != nil {
			t.Error(err)
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(r.IntN(200)) * time.Millisecond):
		}
	}
}

// heal has the receiver take everything.
func (h *hookRound) heal(t *testing.T) {
	t.Helper()
	if err := h.receiver.recover(); err != nil {
		t.Fatal(err)
	}
	for name := range hookPatterns {
		h.receiver.setMood(name, isWell)
	}
}

// write has a client write, until it is to stop or has written enough.
func (h *hookRound) write(c *client, r *rand.Rand, stop chan struct{}) {
	for range hookWrites {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(r.IntN(8)) * time.Millisecond):
		}
		w, send := h.next(r)
		a, _, err := c.send(send)
		h.mu.Lock()
		if err == nil && a.status == http.StatusOK {
			w.acked = h.now.Add(1)
		}
		h.books.writes = append(h.books.writes, w)
		h.mu.Unlock()
	}
}

// next returns a random write.
func (h *hookRound) next(r *rand.Rand) (w hookWrite, send request) {
	n := h.now.Add(1)
	w = hookWrite{id: fmt.Sprint("w", n), sent: n}
	for _, k := range r.Perm(h.keys)[:1+r.IntN(min(h.keys, 4))] {
		w.keys = append(w.keys, fmt.Sprint("k", k))
	}
	node := fmt.Sprintf(`{"w":%q}`, w.id)
	var members []string
	for _, key := range w.keys {
		members = append(members, fmt.Sprintf("%q:%s", key, node))
	}
	at := []string{"orders"}
	switch dice := r.IntN(20); {
	case dice < 8:
		w.keys = w.keys[:1]
		send = request{method: "PUT", target: target(hookDatabase, append(at, w.keys[0]), false), body: node}
	case dice < 11:
		w.keys = w.keys[:1]
		send = request{method: "PUT", target: target(hookDatabase, append(at, w.keys[0], "w"), false), body: fmt.Sprintf("%q", w.id)}
	case dice < 13:
		w.keys, w.deletes = w.keys[:1], true
		send = request{method: "DELETE", target: target(hookDatabase, append(at, w.keys[0]), false)}
	case dice < 14:
		w.whole = true
		send = request{method: "PUT", target: target(hookDatabase, at, false), body: "{" + strings.Join(members, ",") + "}"}
	default:
		send = request{method: "PATCH", target: target(hookDatabase, at, false), body: "{" + strings.Join(members, ",") + "}"}
	}
	return w, send
}

// await waits until every location was delivered as it is now, which cannot change any more.
func (h *hookRound) await(t *testing.T) {
	t.Helper()
	var now map[string]struct{ W string }
	text := newClient(t, h.server, 1).must(t, request{method: "GET", target: target(hookDatabase, []string{"orders"}, false)}).body
	if err := json.Unmarshal([]byte(text), &now); err != nil {
		t.Fatal(err)
	}
	for i := range h.keys {
		key := fmt.Sprint("k", i)
		h.books.final[key] = now[key].W
	}
	for late := time.Now().Add(patience); !h.isDelivered(); {
		if time.Now().After(late) {
			h.judge(t)
			t.Fatal("not everything was delivered")
		}
		<-time.After(10 * time.Millisecond)
	}
}

// settle waits until the server says that nothing is left to be delivered and that it knows of all
// answers, and returns when that was.
func (h *hookRound) settle(t *testing.T) int64 {
	t.Helper()
	for late := time.Now().Add(patience); ; {
		now := h.now.Add(1)
		var list struct {
			Hooks []struct {
				Stat struct{ Pending, Delivered int }
			}
		}
		text := adminOf(t, h.server, "GET", "/v1/databases/"+hookDatabase+"/hooks", "").body
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		pending, answers := 0, 0
		for _, one := range list.Hooks {
			pending += one.Stat.Pending
			answers -= one.Stat.Delivered
		}
		attempts, _ := h.receiver.seen()
		for _, a := range attempts {
			if a.life == h.receiver.life && a.decided > 0 {
				answers++
			}
		}
		if pending == 0 && answers == 0 {
			return now
		}
		if time.Now().After(late) {
			t.Fatalf("there is still something to be delivered: %s", text)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// isDelivered reports whether the last delivery of each location has what is there.
func (h *hookRound) isDelivered() bool {
	last := map[located]attempt{}
	attempts, _ := h.receiver.seen()
	for _, a := range attempts {
		at := located{a.Hook, a.Params["id"]}
		if a.decided > 0 && a.Position > last[at].Position {
			last[at] = a
		}
	}
	for hook := range hookPatterns {
		for key, id := range h.books.final {
			a, known := last[located{hook, key}]
			if known && h.books.idOf(&a, a.After) != id || !known && id != "" {
				return false
			}
		}
	}
	return true
}

// judge compares what was delivered with what was written.
func (h *hookRound) judge(t *testing.T) {
	t.Helper()
	var problems []string
	h.books.attempts, problems = h.receiver.seen()
	for _, problem := range slices.Concat(problems, h.books.judge()) {
		t.Error(problem)
	}
}
