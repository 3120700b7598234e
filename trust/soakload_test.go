//go:build linux

package trust_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soakItems returns how many children the collection of a soak has: always the same, so
// that what is stored does not grow.
func soakItems() int {
	if *soakTime > 0 {
		return 20_000
	}
	return 1000
}

// A soakLoad is what the steady server of a soak is asked for beside the writes of
// the witnesses.
type soakLoad struct {
	server  *process
	books   *account
	clients []*client
	seed    uint64

	laps            int
	queries, events atomic.Int64
}

func newSoakLoad(p *process, books *account, clients []*client, seed uint64) *soakLoad {
	return &soakLoad{server: p, books: books, clients: clients, seed: seed}
}

const soakDatabase = "soak-items"

func soakItem(rng *rand.Rand) string {
	return fmt.Sprintf(`{"at":%d,"size":%d,"text":%q}`, rng.IntN(1e6), rng.IntN(1000), strings.Repeat("x", 50+rng.IntN(100)))
}

// fill writes the collection, whose first index is there before it: that is never built anew.
func (l *soakLoad) fill(t *testing.T) {
	t.Helper()
	l.clients[0].must(t, request{method: "PUT", target: target(soakDatabase, []string{"items"}, false), body: "1"})
	if err := l.server.ask("PUT", soakRules(soakDatabase), soakRulesOf(0), nil); err != nil {
		t.Fatal(err)
	}
	rng := newRand(l.seed, 200)
	var body strings.Builder
	for i := range soakItems() {
		fmt.Fprintf(&body, `,"i%05d":%s`, i, soakItem(rng))
	}
	all := request{method: "PUT", target: target(soakDatabase, []string{"items"}, false, "print=silent"), body: "{" + body.String()[1:] + "}"}
	a, _, err := l.clients[0].send(all)
	if err != nil || a.status != http.StatusNoContent {
		t.Fatalf("the collection is answered %d %s, %v", a.status, a.body, err)
	}
}

// start has all workers begin.
func (l *soakLoad) start(working *sync.WaitGroup, stop <-chan struct{}) {
	l.laps++
	ctx, cancel := context.WithCancel(context.Background())
	working.Go(func() {
		<-stop
		cancel()
	})
	for i := range 8 {
		rng, other, c := newRand(l.seed, 1000*l.laps+i), newRand(l.seed, 1000*l.laps+100+i), l.clients[i%len(l.clients)]
		working.Go(func() { repeat(stop, 50*time.Millisecond, func() { l.query(c, rng) }) })
		if i < 2 {
			working.Go(func() { repeat(stop, 20*time.Millisecond, func() { l.change(c, other) }) })
			working.Go(func() { l.stream(ctx, c, false) })
			working.Go(func() { l.stream(ctx, c, true) })
			working.Go(func() { l.listen(ctx, fmt.Sprint("client ", i)) })
		}
	}
	rng := newRand(l.seed, l.laps)
	working.Go(func() { repeat(stop, time.Second, func() { l.large(rng) }) })
}

// repeat does a thing over and over, with a pause: a soak is long, not heavy.
func repeat(stop <-chan struct{}, pause time.Duration, do func()) {
	for {
		do()
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
	}
}

// expect sends a request that has to be answered with 200.
func (l *soakLoad) expect(c *client, r request) (body string) {
	a, _, err := c.send(r)
	if err != nil || a.status != http.StatusOK {
		l.books.problem("%s %s = %d %.200s, %v", r.method, r.target, a.status, a.body, err)
	}
	return a.body
}

// query asks for some children by the first index, and looks whether they are in the range.
func (l *soakLoad) query(c *client, rng *rand.Rand) {
	from := rng.IntN(1e6)
	r := request{method: "GET", target: target(soakDatabase, []string{"items"}, false, `orderBy="at"`, fmt.Sprintf("startAt=%d", from), "limitToFirst=20")}
	a, _, err := c.send(r)
	var items map[string]struct{ At int }
	if err != nil || a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &items) != nil {
		l.books.problem("%s = %d %.200s, %v", r, a.status, a.body, err)
		return
	}
	for key, item := range items {
		if item.At < from {
			l.books.problem("%s shows %s, which is at %d", r, key, item.At)
		}
	}
	l.queries.Add(1)
}

// change writes a child of the collection anew.
func (l *soakLoad) change(c *client, rng *rand.Rand) {
	l.expect(c, request{method: "PUT", target: target(soakDatabase, []string{"items", fmt.Sprintf("i%05d", rng.IntN(soakItems()))}, false), body: soakItem(rng)})
}

// large writes a megabyte and reads it again.
func (l *soakLoad) large(rng *rand.Rand) {
	text := fmt.Sprintf(`{"list":%q,"mark":%d}`, strings.Repeat("y", 1<<20), rng.IntN(1e9))
	at := target(soakDatabase, []string{"large"}, false)
	l.expect(l.clients[0], request{method: "PUT", target: at, body: text})
	if got := l.expect(l.clients[1], request{method: "GET", target: at}); got != text {
		l.books.problem("GET of what was written shows %d bytes, want the %d that were written", len(got), len(text))
	}
}

// stream follows the collection until it is cancelled. A slow one reads nothing but the
// first event.
func (l *soakLoad) stream(ctx context.Context, c *client, isSlow bool) {
	req, err := request{method: "GET", target: target(soakDatabase, []string{"items"}, false), header: []string{"Accept", "text/event-stream"}}.build(ctx, c.base)
	if err != nil {
		l.books.problem("%v", err)
		return
	}
	answer, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			l.books.problem("a stream: %v", err)
		}
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		l.books.problem("a stream is answered %d", answer.StatusCode)
		return
	}
	if isSlow {
		<-ctx.Done()
		return
	}
	in := bufio.NewReaderSize(answer.Body, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if ctx.Err() == nil {
				l.books.problem("a stream that is read ends: %v", err)
			}
			return
		}
		if strings.HasPrefix(line, "data: ") {
			l.events.Add(1)
		}
	}
}

// listen is a client of the SDKs that follows the collection.
func (l *soakLoad) listen(ctx context.Context, name string) {
	c := newWireClient(name, dialWire(l.server, soakDatabase), wireListen{path: []string{"items"}})
	c.problem = l.books.problem
	go func() {
		<-ctx.Done()
		c.close()
	}()
	c.run()
}

// soakRules returns where the rules of a database are set.
func soakRules(database string) string {
	return "/v1/databases/" + database + "/data/.settings/rules.json"
}

// soakRulesOf returns the rules of a lap: in every other one with a second index.
func soakRulesOf(lap int) string {
	index := `["at"]`
	if lap%2 == 1 {
		index = `["at","size"]`
	}
	return fmt.Sprintf(`{"rules":{".read":true,".write":true,"items":{".indexOn":%s,"$item":{".validate":"%d > 0"}}}}`, index, lap+1)
}

// operate is what an operator does in a lap: another index, which is built then, a change
// of rules, and in some laps a backup that is verified. What a server that is killed
// meanwhile says of it does not matter.
func (s *soak) operate(number int, p *process, isSteady bool) {
	complain := func(format string, args ...any) {
		if isSteady {
			s.books.problem(format, args...)
		}
	}
	database := soakDatabase
	if !isSteady {
		database = s.killed.tallies[0].database
	}
	if err := p.ask("PUT", soakRules(database), soakRulesOf(number), nil); err != nil {
		complain("rules: %v", err)
	}
	if number%5 != 0 {
		return
	}
	dir := filepath.Join(s.dir, "backup-"+filepath.Base(p.dir))
	defer func() {
		// A server that was killed amid a backup leaves a part of one.
		left, _ := filepath.Glob(dir + "*")
		for _, name := range left {
			_ = os.RemoveAll(name)
		}
	}()
	for _, args := range [][]string{{"backup", dir, "--data", p.dir}, {"backup", "verify", dir}} {
		file, err := command.File()
		if err != nil {
			complain("%v", err)
			return
		}
		if out, err := exec.Command(file, args...).CombinedOutput(); err != nil {
			complain("%s: %v: %s", strings.Join(args, " "), err, out)
			return
		}
	}
	if isSteady {
		s.backups++
	}
}
