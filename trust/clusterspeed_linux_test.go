package trust_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

// TestClusterSpeed has a cluster and a single server take turns, and reports what a request costs all nodes of the one as a
// multiple of what it costs the other. Three servers that know nothing of each other take turns as well: they show what it costs
// alone that the same clients are spread over three processes, each of which has fewer of them to serve at a time. It holds nobody to a
// speed: it only fails if something is answered wrongly.
func TestClusterSpeed(t *testing.T) {
	count := drill(t, 3)
	c := startCluster(t)
	alone, apart := &cluster{}, &cluster{}
	for range c.nodes {
		apart.nodes = append(apart.nodes, startProcess(t, "--admin-addr", "127.0.0.1:0"))
	}
	alone.nodes = append(alone.nodes, startProcess(t, "--admin-addr", "127.0.0.1:0"))
	for _, first := range append([]*process{c.nodes[0], alone.nodes[0]}, apart.nodes...) {
		if err := (&cluster{nodes: []*process{first}}).create(0, "speed"); err != nil {
			t.Fatal(err)
		}
		newClient(t, first, 1).must(t, request{method: "PUT", target: target("speed", []string{"r"}, false), body: largeBody(1000, 0)})
	}
	for _, load := range []speedLoad{
		{name: "writes", workers: 256, method: "PUT"},
		{name: "reads", workers: 64, method: "GET"},
		{name: "localreads", workers: 64, method: "GET", header: []string{"X-Livetree-Consistency", "local"}},
	} {
		load.compare(t, count, c, alone, apart)
	}
}

// compare has the sides take turns, and reports medians.
func (l speedLoad) compare(t *testing.T, count int, c, alone, apart *cluster) {
	t.Helper()
	var costs, rates, spread []float64
	inCluster, atOne, atThree := l.clients(t, c), l.clients(t, alone), l.clients(t, apart)
	l.run(t, c, inCluster) // opens the connections
	l.run(t, alone, atOne)
	l.run(t, apart, atThree)
	for range count {
		many, one, three := l.run(t, c, inCluster), l.run(t, alone, atOne), l.run(t, apart, atThree)
		costs = append(costs, many.cpu/one.cpu)
		rates = append(rates, many.rate/one.rate)
		spread = append(spread, three.cpu/one.cpu)
		t.Logf("%s: %.0f a second at %.1f µs by the cluster, %.0f at %.1f µs by one server, %.0f at %.1f µs by three that are apart",
			l.name, many.rate, many.cpu, one.rate, one.cpu, three.rate, three.cpu)
	}
	for _, of := range [][]float64{costs, rates, spread} {
		slices.Sort(of)
	}
	figures.Report(t, "clusterspeed"+l.name, proof.Count("rounds", count), proof.Count("most_cpu_percent", int(100*costs[count/2])),
		proof.Count("most_rate_percent", int(100*rates[count/2])), proof.Count("most_apart_cpu_percent", int(100*spread[count/2])))
}

// A speedLoad is what is asked for, by so many at a time.
type speedLoad struct {
	name    string
	workers int
	method  string
	header  []string
}

// A speed is what came of a round.
type speed struct {
	rate float64 // requests a second
	cpu  float64 // µs of all nodes for one
}

// clients returns a client of each node.
func (l speedLoad) clients(t *testing.T, c *cluster) (clients []*client) {
	t.Helper()
	for _, p := range c.nodes {
		made := newClient(t, p, 1)
		made.http.Transport.(*http.Transport).MaxIdleConnsPerHost = l.workers
		clients = append(clients, made)
	}
	return clients
}

// run has all workers, spread over the nodes, ask for two seconds.
func (l speedLoad) run(t *testing.T, c *cluster, clients []*client) speed {
	t.Helper()
	before := 0
	for _, p := range c.nodes {
		before += processorMillis(p.pid())
	}
	var done atomic.Int64
	var working sync.WaitGroup
	began := time.Now()
	for i := range l.workers {
		working.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for time.Since(began) < 2*time.Second {
				path, body := []string{"r"}, ""
				if l.method == "PUT" {
					path, body = []string{"w", fmt.Sprint(rng.IntN(10_000))}, fmt.Sprint(rng.IntN(1e6))
				}
				a, _, err := clients[i%len(clients)].send(request{method: l.method, target: target("speed", path, false), header: l.header, body: body})
				if err != nil || a.status != http.StatusOK {
					t.Errorf("%s = %d %.100s, %v", l.name, a.status, a.body, err)
					return
				}
				done.Add(1)
			}
		})
	}
	working.Wait()
	took := time.Since(began)
	after := 0
	for _, p := range c.nodes {
		after += processorMillis(p.pid())
	}
	return speed{rate: float64(done.Load()) / took.Seconds(), cpu: 1000 * float64(after-before) / float64(done.Load())}
}
