//go:build unix

package trust_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
)

// TestClusterSmoke is the short form of the drills: three nodes, writes through all of them, one kill. Nothing is lost, and
// all nodes have the same.
func TestClusterSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	t.Parallel()
	l := newClusterLoop(t, startCluster(t), seed(t), 1)
	if err := l.round(l.kill(1)); err != nil {
		t.Fatal(err)
	}
	l.report(t, "clustersmoke")
}

// TestClusterKill kills one node after the other under load: any of them, or the home of shard 0. Those that are up answer
// every request, none of them with an error of the server.
func TestClusterKill(t *testing.T) {
	count := drill(t, 6)
	l := newClusterLoop(t, startCluster(t), seed(t), 3)
	for i := range count {
		victim := l.rng.IntN(3)
		if i%2 == 0 {
			home, err := l.cluster.home()
			if err != nil {
				t.Fatal(err)
			}
			victim = home
		}
		if err := l.round(l.kill(victim)); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	l.report(t, "clusterkill")
}

// TestClusterKillAll kills all nodes at once under load.
func TestClusterKillAll(t *testing.T) {
	count := drill(t, 3)
	l := newClusterLoop(t, startCluster(t), seed(t), 3)
	for i := range count {
		if err := l.round(l.killAll); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	l.report(t, "clusterkillall")
}

// A clusterLoop has witnesses write through all nodes of a cluster while something happens to it.
type clusterLoop struct {
	t         *testing.T
	cluster   *cluster
	rng       *rand.Rand
	clients   []*client // one of each node, to look
	witnesses []*witness
	tallies   []*tally
	books     *account

	rounds int
	pauses []time.Duration // of writes, one each round
	starts []time.Duration // how long the node took that was started again
	wrong  []string        // what nodes that are up must not answer
	helped int             // nodes that were not well again by themselves
	// isFrail says that all witnesses may be refused, after which none goes on in that round; a supervisor then looks after the nodes.
	isFrail bool
}

// newClusterLoop returns a loop with so many witnesses at each node, for each of two versions of HTTP.
func newClusterLoop(t *testing.T, c *cluster, seed uint64, each int) *clusterLoop {
	t.Helper()
	l := &clusterLoop{t: t, cluster: c, rng: newRand(seed, 0), books: &account{}}
	for i := range 3 {
		name := fmt.Sprintf("trust-%d", i)
		if err := c.create(i, name); err != nil {
			t.Fatal(err)
		}
		l.tallies = append(l.tallies, newTally(name))
		l.clients = append(l.clients, c.client(t, i, 1))
	}
	for i := range 6 * each {
		counter := l.tallies[i/3%3]
		l.witnesses = append(l.witnesses, &witness{
			client: c.client(t, i%3, 1+i/3%2), database: counter.database, place: []string{fmt.Sprintf("w%d", i)},
			rng: newRand(seed, i+1), tree: model.New(), tally: counter, books: l.books,
		})
	}
	return l
}

// An accident happens to a cluster under load. It returns the node that may fail its clients, or none, and how many acts it
// has seen.
type accident func() (failing int, err error)

const noNode = -1

// round has witnesses write, lets something happen, waits until writes go on, and has the witnesses look.
func (l *clusterLoop) round(happen accident) error {
	l.cluster.sight.forget()
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, w := range l.witnesses {
		working.Go(func() { w.work(stop) })
	}
	end := sync.OnceFunc(func() {
		close(stop)
		working.Wait()
	})
	defer end()
	if err := l.await(200 + l.rng.IntN(200)); err != nil {
		return err
	}
	began := time.Now()
	failing, err := happen()
	if err != nil {
		return err
	}
	if failing != allNodes {
		if err := l.await(100); err != nil {
			return err
		}
		l.pauses = append(l.pauses, l.cluster.sight.longest(began))
		l.wrong = append(l.wrong, l.cluster.sight.since(began, failing)...)
	}
	end()
	l.rounds++
	if l.isFrail {
		if err := l.startGone(); err != nil {
			return err
		}
		for node := range l.cluster.nodes {
			if err := l.revive(node); err != nil {
				return err
			}
		}
	}
	return l.verify()
}

// allNodes says that every node may fail its clients.
const allNodes = -2

// await returns when so many more writes are acknowledged.
func (l *clusterLoop) await(writes int) error {
	l.books.mu.Lock()
	l.books.enough = l.books.acknowledged + writes
	isEnough := make(chan struct{})
	l.books.isEnough = isEnough
	l.books.mu.Unlock()
	late := patience / 3
	if l.isFrail {
		late = 2 * time.Second
	}
	select {
	case <-isEnough:
		return nil
	case <-time.After(late):
		if l.isFrail {
			return nil
		}
		return fmt.Errorf("no %d writes were acknowledged in %v: %.2000s", writes, patience/3, l.cluster.sight.since(time.Time{}, noNode))
	}
}

// verify has all witnesses look, and compares the nodes.
func (l *clusterLoop) verify() error {
	for _, w := range l.witnesses {
		if err := w.verify(); err != nil {
			return err
		}
	}
	for i, c := range l.tallies {
		c.read(l.witnesses[i])
		if err := l.cluster.equal(l.clients, c.database); err != nil {
			return err
		}
	}
	if found := l.books.found(); len(found) > 0 {
		return fmt.Errorf("%d problems: %s", len(found), found[0])
	}
	return nil
}

// kill returns the accident that a node is killed, and started again after a while.
func (l *clusterLoop) kill(victim int) accident {
	return func() (int, error) {
		p := l.cluster.nodes[victim]
		p.kill()
		if err := l.await(100); err != nil {
			return victim, fmt.Errorf("with node %d down: %w", victim+1, err)
		}
		return victim, l.start(p)
	}
}

func (l *clusterLoop) start(p *process) error {
	began := time.Now()
	err := p.start()
	l.starts = append(l.starts, time.Since(began))
	return err
}

func (l *clusterLoop) killAll() (int, error) {
	if err := l.cluster.each(func(p *process) error { p.kill(); return nil }); err != nil {
		return allNodes, err
	}
	began := time.Now()
	err := l.cluster.each(func(p *process) error { return p.start() })
	l.starts = append(l.starts, time.Since(began))
	return allNodes, err
}

// report fails the test if something was wrong, and prints the figures.
func (l *clusterLoop) report(t *testing.T, name string) {
	t.Helper()
	for i, text := range l.wrong {
		if i == 20 {
			t.Errorf("and %d more", len(l.wrong)-i)
			break
		}
		t.Errorf("a node that is up: %s", text)
	}
	if l.books.acknowledged == 0 {
		t.Error("nothing was acknowledged: this test saw nothing")
	}
	figures.Report(t, name, proof.Count("rounds", l.rounds), proof.Count("acknowledged", l.books.acknowledged), proof.Count("unknown", l.books.unknown),
		proof.Count("wrong", len(l.wrong)), proof.Count("most_pause_ms", millis(l.pauses, 1)), proof.Count("most_pause_p50_ms", millis(l.pauses, 0.5)),
		proof.Count("most_start_ms", millis(l.starts, 1)))
}

// millis returns the part of all times that is at or below a share of them, in milliseconds.
func millis(times []time.Duration, share float64) int {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return int(sorted[int(share*float64(len(sorted)-1))].Milliseconds())
}
