//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
)

// TestWireCaches has clients of the SDKs' protocol keep caches while others write, by that
// protocol and by REST, and the server is killed. They come back with hashes. Whenever it
// is quiet, every cache is what is there.
func TestWireCaches(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for i, portion := range portions(rounds(4, 200, 2000), 50) {
		l := newWireLoop(t, startProcess(t), n+uint64(i))
		if err := l.run(portion); err != nil {
			t.Error(err)
		}
		l.end()
		for _, problem := range l.books.found() {
			t.Error(problem)
		}
		if l.books.acknowledged == 0 || l.pushes() == 0 || l.wins == 0 {
			t.Errorf("%d writes, %d pushes, %d transactions: this test saw nothing", l.books.acknowledged, l.pushes(), l.wins)
		}
		figures.Report(t, "wirecaches", l.figures()...)
	}
}

// TestWireOrder has many writes and no kills: what clients are told never goes back, an answer
// comes behind what it was judged on, and no write is ever shown in part.
func TestWireOrder(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for i, writes := range portions(rounds(400, 20_000, 100_000), 20_000) {
		l := newWireLoop(t, startProcess(t), n+uint64(i))
		if err := l.calm(writes); err != nil {
			t.Error(err)
		}
		l.end()
		for _, problem := range l.books.found() {
			t.Error(problem)
		}
		if l.books.refused == 0 || l.wins == 0 {
			t.Errorf("%d transactions were stale and %d went through: this test saw nothing", l.books.refused, l.wins)
		}
		figures.Report(t, "wireorder", l.figures()...)
	}
}

// wireRules let everybody in, and have an index for one of the orders.
const wireRules = `{"rules":{".read":true,".write":true,"d":{"list":{".indexOn":["n"]}}}}`

// A wireLoop is a server with writers and clients that keep caches.
type wireLoop struct {
	server   *process
	database string
	seed     uint64
	rng      *rand.Rand
	rest     *client
	clients  []*wireClient
	phone    *wireClient // which says what it has by ranges
	mover    *wireClient // which goes from one listen to another
	streams  []*wireStream
	writers  []*wireWriter
	books    *account
	perRound int // writes
	begun    sync.Once
	running  sync.WaitGroup

	mu           sync.Mutex
	acknowledged []int // by writer, the largest number
	told         []int // the largest that any client was told
	won          map[int]bool

	rounds, kills, ends, wins int
}

func newWireLoop(t *testing.T, p *process, seed uint64) *wireLoop {
	t.Helper()
	l := &wireLoop{server: p, database: "default", seed: seed, rng: newRand(seed, 0), rest: newClient(t, p, 1), books: &account{}, won: map[int]bool{}, perRound: 100}
	l.rest.must(t, request{method: "PUT", target: "/.settings/rules.json?auth=" + secret, body: wireRules})
	for i := range 4 {
		w := &wireWriter{loop: l, id: i, rng: newRand(seed, i+1)}
		if i < 2 {
			w.rest = newClient(t, p, 1+i)
		} else {
			w.wire = l.client(fmt.Sprintf("writer %d", i), wireListen{path: w.place()}, wireTally)
			w.wire.isApart = true
		}
		l.writers = append(l.writers, w)
	}
	l.acknowledged, l.told = make([]int, len(l.writers)), make([]int, len(l.writers))
	root, d, list, leaves := wireListen{}, wireListen{path: []string{"d"}}, []string{"d", "list"}, []string{"d", "leaves"}
	l.client("root", root).isApart = true
	l.client("bare", d).isBare = true
	l.phone = l.client("phone", d)
	l.phone.isPhone = true
	l.client("several", d, wireListen{path: l.writers[0].place()}, wireListen{path: append(l.writers[1].place(), "pair")}, wireListen{path: list})
	l.mover = l.client("mover", wireListen{path: l.writers[0].place()})
	l.client("windows",
		wireListen{path: list, query: `{"l":3,"vf":"r","i":"n"}`, tag: 1}, wireListen{path: list, query: `{"sp":3,"ep":7,"i":"n"}`, tag: 2},
		wireListen{path: list, query: `{"l":3,"vf":"r","i":".key"}`, tag: 3}, wireListen{path: list, query: `{"sp":2,"ep":6}`, tag: 4})
	l.client("windows without an index",
		wireListen{path: list, query: `{"l":2,"vf":"l","i":"m"}`, tag: 7}, wireListen{path: list, query: `{"sp":3,"i":"m"}`, tag: 8},
		wireListen{path: leaves, query: `{"l":3,"vf":"r","i":".value"}`, tag: 9}, wireListen{path: list})
	l.streams = []*wireStream{newWireStream(newClient(t, p, 1), l, d), newWireStream(newClient(t, p, 2), l, wireListen{path: list})}
	return l
}

// client adds one with these listens.
func (l *wireLoop) client(name string, listens ...wireListen) *wireClient {
	c := newWireClient(name, dialWire(l.server, l.database), listens...)
	c.problem = l.books.problem
	c.look = l.orderOf(c)
	l.clients = append(l.clients, c)
	return c
}

// orderOf returns a look at the marks of the writers, as a client is shown them: they never
// go back, and what one write changes changes at once.
func (l *wireLoop) orderOf(c *wireClient) func(*wireCache) {
	last := map[string]int{}
	return func(cache *wireCache) {
		for _, w := range l.writers {
			shown := map[int]bool{}
			for _, path := range w.marks() {
				key := fmt.Sprint(path)
				if !c.covers(path) {
					delete(last, key)
					continue
				}
				number, _ := strconv.Atoi(cache.tree.Plain(path)) // 0 for none
				if number < last[key] {
					l.books.problem("%s: %s goes back from %d to %d", c.name, path, last[key], number)
				}
				last[key] = number
				shown[number] = true
				l.tell(w.id, number)
			}
			if len(shown) > 1 && c.opening == 0 && c.covers(w.place()) {
				l.books.problem("%s: it is shown half of a write: %v", c.name, shown)
			}
		}
	}
}

func (c *wireClient) covers(path []string) bool {
	for _, l := range c.listens {
		if l.covers(path) {
			return true
		}
	}
	return false
}

func (l *wireLoop) tell(writer, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[writer] = max(l.told[writer], number)
}

func (l *wireLoop) acknowledge(writer, number int) {
	l.books.acknowledge()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[writer] = max(l.acknowledged[writer], number)
}

// win notes that a transaction went through. Each number has one winner.
func (l *wireLoop) win(number int) {
	l.books.acknowledge()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wins++
	if l.won[number] {
		l.books.problem("two transactions were told that they wrote %d", number)
	}
	l.won[number] = true
}

// places are those that the mover listens to, one above the other.
func (l *wireLoop) places() []wireListen {
	return []wireListen{{path: []string{"d"}}, {path: l.writers[0].place()}, {path: append(l.writers[0].place(), "pair")}, {path: l.writers[2].place()}}
}

// run lets clients and writers loose for some rounds.
func (l *wireLoop) run(rounds int) error {
	l.begin()
	for range rounds {
		l.rounds++
		l.enough(1 + l.rng.IntN(l.perRound))
		if err := l.round(); err != nil {
			return fmt.Errorf("round %d: %w", l.rounds, err)
		}
		if len(l.books.found()) > 20 {
			return nil
		}
	}
	return nil
}

// begin starts the clients, once.
func (l *wireLoop) begin() {
	l.begun.Do(func() {
		for _, c := range l.clients {
			l.running.Go(c.run)
		}
		for _, s := range l.streams {
			l.running.Go(s.run)
		}
	})
}

// enough says how many writes there are to be until something happens.
func (l *wireLoop) enough(writes int) {
	l.books.enough, l.books.isEnough = l.books.acknowledged+writes, make(chan struct{})
}

// calm lets clients and writers loose for so many writes.
func (l *wireLoop) calm(writes int) error {
	l.begin()
	l.enough(writes)
	if err := l.write(func() error { return nil }); err != nil {
		return err
	}
	return l.compare()
}

// round has the server end under the hands of the writers, looks, and has it end again
// while it is quiet.
func (l *wireLoop) round() error {
	err := l.write(l.restart)
	if err == nil {
		err = l.compare()
	}
	if err != nil || l.rng.IntN(2) == 0 {
		return err
	}
	return l.restartQuietly()
}

// write has the writers work until there are enough writes and something has happened.
func (l *wireLoop) write(happens func() error) error {
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, w := range l.writers {
		working.Go(func() { w.work(stop) })
	}
	working.Go(func() { l.mover.move(stop, newRand(l.seed, 100+l.rounds), l.places()) })
	var err error
	select {
	case <-l.books.isEnough:
		err = happens()
	case <-time.After(time.Duration(length(1, 10, 10)) * patience):
		err = fmt.Errorf("no %d writes were acknowledged", l.books.enough)
	}
	close(stop)
	working.Wait()
	return err
}

func (l *wireLoop) restart() error {
	if l.rng.IntN(5) == 0 {
		l.ends++
		if err := l.server.terminate(); err != nil {
			return fmt.Errorf("the server ends with %w, want in order", err)
		}
	} else {
		l.kills++
		l.server.kill()
	}
	return l.server.start()
}

// restartQuietly ends the server while nobody writes: nobody who says what he has is sent
// anything.
func (l *wireLoop) restartQuietly() error {
	before := map[*wireClient]int{}
	for _, c := range l.clients {
		before[c] = c.pushed()
	}
	if err := l.restart(); err != nil {
		return err
	}
	if err := l.compare(); err != nil {
		return err
	}
	for _, c := range l.clients {
		if more := c.pushed() - before[c]; more > 0 && !c.isBare {
			l.books.problem("%s: it came back with what is there, and was sent %d pushes", c.name, more)
		}
	}
	return nil
}

func (c *wireClient) pushed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pushes
}

// compareNumbers holds what is there to what was acknowledged and told.
func (l *wireLoop) compareNumbers(whole *model.Tree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.writers {
		there, _ := strconv.Atoi(whole.Plain(w.marks()[0]))
		if there < l.acknowledged[i] || there < l.told[i] {
			l.books.problem("the number of writer %d is %d; it was told %d, and others %d", i, there, l.acknowledged[i], l.told[i])
		}
	}
}

// compare holds all caches to what is there, and that to what was acknowledged and told.
func (l *wireLoop) compare() error {
	a, _, err := l.rest.send(request{method: "GET", target: target(l.database, nil, false, "format=export")})
	if err != nil {
		return err
	}
	whole := model.New()
	if err := whole.Put(nil, []byte(a.body), 0); err != nil {
		return err
	}
	l.compareNumbers(whole)
	for _, c := range l.clients {
		c.compare(whole)
	}
	for _, s := range l.streams {
		s.compare(whole)
	}
	return nil
}

// compare asks for everything. When the answer is there, so is every push that was made
// before, and all caches are what is there.
func (c *wireClient) compare(whole *model.Tree) {
	c.wait("g", `{"p":"/","q":{}}`, func(status string, d json.RawMessage) {
		read := model.New()
		if err := read.Put(nil, d, 0); status != "ok" || err != nil || read.Export(nil) != whole.Export(nil) {
			c.problem("%s: all data is answered %s, %v: %s", c.name, status, err, firstOther(read.Export(nil), whole.Export(nil)))
		}
		for _, l := range c.listens {
			if got, want := c.cache.text(l), l.expected(whole); got != want {
				c.problem("%s: the cache of %s is %s", c.name, l, firstOther(got, want))
			}
		}
	})
}

// firstOther shows where a text is not as it should be.
func firstOther(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	from := max(0, i-100)
	return fmt.Sprintf("…%.300s\nwant …%.300s", got[from:], want[from:])
}

// end ends the clients.
func (l *wireLoop) end() {
	for _, c := range l.clients {
		c.close()
		c.changed.Broadcast()
	}
	for _, s := range l.streams {
		s.close()
	}
	l.running.Wait()
	l.server.kill()
}

func (l *wireLoop) pushes() (count int) {
	for _, c := range l.clients {
		count += c.pushed()
	}
	return count
}

func (l *wireLoop) figures() []proof.Figure {
	connections := 0
	for _, c := range l.clients {
		connections += c.begun
	}
	return []proof.Figure{
		proof.Count("rounds", l.rounds), proof.Count("kills", l.kills), proof.Count("ends", l.ends), proof.Count("writes", l.books.acknowledged),
		proof.Count("transactions", l.wins), proof.Count("stale", l.books.refused), proof.Count("pushes", l.pushes()), proof.Count("merges", l.phone.cache.merges),
		proof.Count("connections", connections), proof.Count("problems", len(l.books.found())),
	}
}
