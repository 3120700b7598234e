//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/livetree/livetree/internal/proof"
)

// TestLinear has clients send random requests to one database at a time, with the
// server killed in some histories, and looks for one order that explains them.
func TestLinear(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for i, batches := range portions(rounds(3, 250, 1000), 10) {
		p := startProcess(t, "--dev")
		l := newLinear(p, n+uint64(i), func(major int) *client { return newClient(t, p, major) })
		l.speak = func(database string) *wireTalk { return &wireTalk{dial: dialWire(p, database)} }
		for range batches {
			if err := l.batch(4, 6, 38); err != nil {
				t.Fatal(err)
			}
			for _, illegal := range l.illegal {
				t.Fatalf("no order explains this history:\n%s", illegal)
			}
		}
		p.kill()
		t.Logf("the slowest judgement took %v", l.slowest)
		if l.undecided > 0 {
			t.Errorf("%d histories are without a verdict, want 0", l.undecided)
		}
		if l.transactions == l.stale || l.stale == 0 {
			t.Errorf("of %d transactions by the protocol of the SDKs %d were stale: this test saw nothing", l.transactions, l.stale)
		}
		if l.acts == 0 || l.unknown == 0 && l.kills > 5 {
			t.Errorf("%d acts, %d of them unknown after %d kills: this test saw nothing", l.acts, l.unknown, l.kills)
		}
		figures.Report(t, "linear", proof.Count("histories", l.histories), proof.Count("kills", l.kills), proof.Count("acts", l.acts),
			proof.Count("unknown", l.unknown), proof.Count("transactions", l.transactions), proof.Count("stale", l.stale), proof.Count("illegal", len(l.illegal)), proof.Count("undecided", l.undecided))
	}
}

// verdictTime is what the judgement of a history may take. Most take less than a
// second, but on a busy machine with the race detector it is minutes.
const verdictTime = 4 * patience

// linear makes histories, several at a time, each in a database of its own.
type linear struct {
	seed uint64
	// dial returns the clients that historians take in turn.
	dial func() []*client
	// crash kills the server, or a part of it, and starts it again.
	crash func() error
	// make makes a database; nil where a write does.
	make func(database string) error
	// isLate says that a write without an answer may happen at any later time: in a cluster another node may have it.
	isLate bool
	// speak returns how a client talks by the protocol of the SDKs; nil if none does.
	speak func(database string) *wireTalk

	histories, kills, acts, unknown, undecided int
	transactions, stale                        int // by the protocol of the SDKs
	illegal                                    []string
	slowest                                    time.Duration // judgement

	down sync.RWMutex // held while the server is not there
}

// newLinear returns one for a single server, whose clients are by two versions of HTTP.
func newLinear(p *process, seed uint64, dial func(major int) *client) *linear {
	return &linear{
		seed: seed,
		dial: func() []*client { return []*client{dial(1), dial(2)} },
		crash: func() error {
			p.kill()
			return p.start()
		},
	}
}

// batch makes histories and judges them. In every other batch the server is
// killed when about half is done.
func (l *linear) batch(databases, clients, acts int) error {
	isKilled := l.histories/databases%2 == 1
	var done atomic.Int64
	half := make(chan struct{})
	middle := int64(databases * clients * acts / 2)
	runs := make([]*historian, databases*clients)
	var working sync.WaitGroup
	dialled := l.dial()
	if err := l.create(dialled[0], databases); err != nil {
		return err
	}
	start := time.Now()
	for i := range runs {
		number := l.histories + i/clients
		runs[i] = &historian{
			client: dialled[i%len(dialled)], database: fmt.Sprintf("linear-%d", number), id: i % clients, start: start,
			rng: newRand(l.seed, number*clients+i%clients), down: &l.down,
		}
		if l.speak != nil && i%3 == 2 {
			runs[i].wire = l.speak(runs[i].database)
			defer runs[i].wire.close()
		}
		working.Go(func() {
			for range acts {
				runs[i].act()
				if done.Add(1) == middle {
					close(half)
				}
			}
		})
	}
	<-half
	var err error
	if isKilled {
		l.kills++
		l.down.Lock()
		err = l.crash()
		l.down.Unlock()
	}
	working.Wait()
	if err != nil {
		return err
	}
	l.judge(runs, clients)
	return nil
}

// create makes the databases of a batch: reading does not, but a write does.
func (l *linear) create(c *client, databases int) error {
	for i := range databases {
		if l.make != nil {
			if err := l.make(fmt.Sprintf("linear-%d", l.histories+i)); err != nil {
				return err
			}
		}
		for _, body := range []string{"1", "null"} {
			r := request{method: "PUT", target: target(fmt.Sprintf("linear-%d", l.histories+i), nil, false), body: body}
			if a, _, err := c.send(r); err != nil || a.status != http.StatusOK {
				return fmt.Errorf("%s = %d %s, %w", r, a.status, a.body, err)
			}
		}
	}
	return nil
}

// judge looks for an order of each history.
func (l *linear) judge(runs []*historian, clients int) {
	for ; len(runs) > 0; runs = runs[clients:] {
		var h history
		for _, r := range runs[:clients] {
			h = append(h, r.history...)
			l.unknown += r.unknown
			l.transactions += r.transactions
			l.stale += r.stale
		}
		h = h.settlePosts()
		if l.isLate {
			h = h.open()
		}
		l.histories++
		l.acts += len(h)
		began := time.Now()
		result, found := porcupine.CheckOperationsVerbose(linearModel, h, verdictTime)
		l.slowest = max(l.slowest, time.Since(began))
		switch result {
		case porcupine.Illegal:
			l.illegal = append(l.illegal, explain(found, h))
		case porcupine.Unknown:
			l.undecided++
		}
	}
}

// A historian is one client of a history, which writes down what it did.
type historian struct {
	client   *client
	wire     *wireTalk // if it is by the protocol of the SDKs
	database string
	id       int
	start    time.Time
	rng      *rand.Rand
	down     *sync.RWMutex
	count    int
	unknown  int
	history  history

	transactions, stale int // by the protocol of the SDKs

	// What was read last with an ETag, for a transaction.
	readPath       []string
	readNode, eTag string
}

var linearPaths = [][]string{{}, {"a"}, {"b"}, {"a", "x"}, {"a", "y"}, {"b", "x"}, {"p"}}

// act sends one request and writes it down.
func (h *historian) act() {
	h.count++
	a, r := h.next()
	if h.wire != nil {
		a = a.spoken(h.id, h.count)
	}
	call := time.Since(h.start).Nanoseconds()
	got, sent, err := h.perform(a, r)
	back := time.Since(h.start).Nanoseconds()
	isDecided := err == nil && got.status < 500
	if !isDecided {
		h.awaitServer()
	}
	result := outcome{status: got.status, body: got.body, isSilent: h.wire != nil && a.view == ""}
	switch {
	case !isDecided && (a.view != "" || err != nil && !sent.isSent):
		return // it has no effect
	case !isDecided:
		h.unknown++
		result, back = outcome{isUnknown: true}, time.Since(h.start).Nanoseconds()
	case a.view == "export":
		h.readPath, h.readNode, h.eTag = a.path, got.body, got.header.Get("ETag")
		if h.wire != nil {
			h.eTag = "a hash in its place"
		}
	case a.method == "POST" && got.status == http.StatusOK:
		var posted struct{ Name string }
		if json.Unmarshal([]byte(got.body), &posted) == nil {
			a.key = posted.Name
		}
	}
	if result.isSilent && a.condition != "" {
		h.transactions++
		if got.status == http.StatusPreconditionFailed {
			h.stale++
		}
	}
	h.history = append(h.history, porcupine.Operation{ClientId: h.id, Input: a, Call: call, Output: result, Return: back})
}

// perform sends a request, by REST or as an SDK.
func (h *historian) perform(a act, r request) (answer, sending, error) {
	if h.wire != nil {
		return h.wire.perform(a)
	}
	return h.client.send(r)
}

// awaitServer returns when the server is there again.
func (h *historian) awaitServer() {
	h.down.RLock()
	defer h.down.RUnlock()
}

// next decides what to do.
func (h *historian) next() (act, request) {
	path := linearPaths[h.rng.IntN(len(linearPaths))]
	leaf := fmt.Sprintf(`"%d-%d"`, h.id, h.count)
	var a act
	switch h.rng.IntN(16) {
	case 0, 1, 2, 3, 4:
		return h.read(path, pick(h.rng, "plain", "plain", "export", "export", "shallow", "priority"))
	case 5, 6, 7:
		if h.eTag != "" {
			return h.transaction(leaf)
		}
		return h.read(path, "export")
	case 8:
		a.write = write{method: "DELETE", path: path}
	case 9:
		a.write = write{method: "POST", path: []string{"b"}, body: leaf}
	case 10:
		a.write = write{method: "PUT", path: path, isPriority: true, body: leaf}
	case 11:
		a.write = write{method: "PUT", path: []string{"p"}, body: `{".sv":{"increment":1}}`}
	case 12, 13:
		a.write = write{method: "PATCH", body: strings.ReplaceAll(`{"a/x":L,"a/y":L,"b/x":L}`, "L", leaf)}
	default:
		a.write = write{method: "PUT", path: path, body: pick(h.rng, leaf, `{"x":`+leaf+`,"y":`+leaf+`}`)}
	}
	return a, a.request(h.database)
}

func (h *historian) read(path []string, view string) (act, request) {
	a := act{write: write{method: "GET", path: path}, view: view}
	r := request{method: "GET", target: target(h.database, path, view == "priority")}
	switch view {
	case "export":
		r.target += "&format=export"
		r.header = []string{"X-Firebase-ETag", "true"}
	case "shallow":
		r.target += "&shallow=true"
	}
	return a, r
}

func (h *historian) transaction(leaf string) (act, request) {
	a := act{write: write{method: "PUT", path: h.readPath, body: leaf}, condition: h.readNode}
	if h.rng.IntN(4) == 0 {
		a.method, a.body = "DELETE", ""
	}
	r := a.request(h.database)
	r.header = []string{"If-Match", h.eTag}
	h.eTag = ""
	return a, r
}
