//go:build unix

package trust_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/proof"
)

var presenceClients = flag.Int("presence.clients", 0, "how many clients are present at a time, 0 for as many as the length says")

// presenceDatabase is where clients say that they are there.
const presenceDatabase = "trust-presence"

// TestPresence is presence as Firebase's documentation has it, with many clients: each leaves that
// it is offline and when, and says that it is online. A watcher sees all of them come. A third goes
// in order, a third is cut off, and with the rest the server is killed: after its start all are
// offline, and each went once.
func TestPresence(t *testing.T) {
	t.Parallel()
	n := *presenceClients
	if n == 0 {
		n = rounds(200, 2000, 10_000)
	}
	c := newPresence(t, n)
	c.come()
	c.waitOnline(n)
	c.tell("all have come")
	c.leave(0, n/3, func(one *connected) { one.closeQuietly(); one.tcp.Close() })
	c.leave(n/3, n/3*2, (*connected).reset)
	c.waitOnline(n - n/3*2)
	c.tell("two thirds have gone")
	c.server.kill()
	killed := time.Now()
	if err := c.server.start(); err != nil {
		t.Fatal(err)
	}
	c.tell(fmt.Sprintf("it has started again in %v", time.Since(killed).Round(time.Millisecond)))
	c.check()
	figures.Report(t, "presence", proof.Count("clients", n), proof.Count("milliseconds", int(time.Since(c.began).Milliseconds())))
}

// A presence is a server and clients that are present in it.
type presence struct {
	t       *testing.T
	server  *process
	addr    string // of plain HTTP
	began   time.Time
	clients []*connected
	watcher *connected

	mu     sync.Mutex
	online map[string]bool // as the watcher was told
}

func newPresence(t *testing.T, n int) *presence {
	t.Helper()
	// Of one network, one in 32 may be such as do not listen yet.
	most, clients := strconv.Itoa(2*n+1000), strconv.Itoa(2*n+4096)
	c := &presence{t: t, addr: freeaddr.One(t), clients: make([]*connected, n), online: map[string]bool{}}
	c.server = startProcess(t, "--dev", "--http-addr", c.addr, "--allow-http", "--max-clients", clients, "--max-connections", most,
		"--max-connections-per-address", most)
	c.began = time.Now()
	c.watcher = c.connect()
	if status, err := c.watcher.TryAsk("q", `{"p":"/presence","h":""}`); err != nil || status != "ok" {
		t.Fatalf("the watcher listens: %s %v", status, err)
	}
	go c.watch()
	return c
}

func (c *presence) connect() *connected {
	one, err := connect(c.t, c.addr, "/.ws?v=5&ns="+presenceDatabase, nil)
	if err != nil {
		c.t.Errorf("connect: %v", err)
		return nil
	}
	return one
}

// come has all clients come, some at a time.
func (c *presence) come() {
	var all sync.WaitGroup
	next := make(chan int)
	for range 64 {
		all.Go(func() {
			for i := range next {
				if c.clients[i] = c.connect(); c.clients[i] != nil {
					c.arrive(c.clients[i], i)
				}
			}
		})
	}
	for i := range c.clients {
		next <- i
	}
	close(next)
	all.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// arrive is what a client does when .info/connected is true.
func (c *presence) arrive(one *connected, i int) {
	at := fmt.Sprintf("/presence/u%d", i)
	for _, r := range [][2]string{
		{"q", fmt.Sprintf(`{"p":%q,"h":""}`, at)},
		{"om", fmt.Sprintf(`{"p":%q,"d":{"online":false,"last":{".sv":"timestamp"},"left":%s}}`, at, increment)},
		{"p", fmt.Sprintf(`{"p":"%s/online","d":true}`, at)},
	} {
		if status, err := one.TryAsk(r[0], r[1]); err != nil || status != "ok" {
			c.t.Errorf("%s %s = %s, %v", r[0], r[1], status, err)
			return
		}
	}
}

// leave has some clients go, many at a time.
func (c *presence) leave(from, to int, how func(*connected)) {
	var all sync.WaitGroup
	for _, one := range c.clients[from:to] {
		all.Go(func() { how(one) })
	}
	all.Wait()
}

// watch keeps what the watcher is told, until the server ends.
func (c *presence) watch() {
	for {
		message, err := c.watcher.NextOrEnd()
		if err != nil {
			return
		}
		var push struct {
			D struct {
				B struct {
					P string          `json:"p"`
					D json.RawMessage `json:"d"`
				} `json:"b"`
			} `json:"d"`
		}
		if err := json.Unmarshal([]byte(message), &push); err != nil {
			c.t.Error(err)
			return
		}
		c.note(push.D.B.P, push.D.B.D)
	}
}

// note notes one event.
func (c *presence) note(at string, data json.RawMessage) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(at, "/"), "presence/"), "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	if rest == "online" {
		c.online[name] = string(data) == "true"
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) == nil && fields["online"] != nil {
		c.online[name] = string(fields["online"]) == "true"
	}
}

// waitOnline returns when the watcher sees so many online.
func (c *presence) waitOnline(want int) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; {
		c.mu.Lock()
		got := 0
		for _, online := range c.online {
			if online {
				got++
			}
		}
		c.mu.Unlock()
		switch {
		case got == want:
			return
		case time.Now().After(end):
			c.t.Fatalf("the watcher sees %d online, want %d", got, want)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// check holds every client to be offline, and to have gone once.
func (c *presence) check() {
	a, _, err := newClient(c.t, c.server, 1).send(request{method: "GET", target: target(presenceDatabase, []string{"presence"}, false)})
	if err != nil {
		c.t.Fatal(err)
	}
	var all map[string]struct {
		Online bool
		Last   int64
		Left   int
	}
	if err := json.Unmarshal([]byte(a.body), &all); err != nil {
		c.t.Fatalf("%v: %.200s", err, a.body)
	}
	for i := range c.clients {
		if one, found := all[fmt.Sprintf("u%d", i)]; !found || one.Online || one.Left != 1 || one.Last < c.began.UnixMilli() {
			c.t.Fatalf("client %d is %+v, want that it went once", i, one)
		}
	}
}

// tell logs how the server is.
func (c *presence) tell(when string) {
	c.t.Helper()
	pid := c.server.pid()
	c.t.Logf("%v: %s; the server has taken %d ms of the processor and %d MiB of memory", time.Since(c.began).Round(time.Millisecond), when,
		processorMillis(pid), residentBytes(pid)>>20)
}
