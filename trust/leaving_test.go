//go:build unix

package trust_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

// TestLeaving has clients leave increments by onDisconnect, take some back, and go in all the ways
// in which clients go, while the server is killed or ended. Each increment is made once if it
// was answered, and never if it was taken back.
func TestLeaving(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for i, portion := range portions(rounds(4, 200, 2000), 100) {
		l := &leavingLoop{t: t, server: startProcess(t, "--dev"), rng: newRand(n, i)}
		l.http = newClient(t, l.server, 1)
		for range portion {
			if err := l.round(); err != nil {
				t.Fatalf("round %d: %v", l.rounds, err)
			}
			l.rounds++
		}
		l.server.kill()
		if l.answered == 0 || l.counters == 0 {
			t.Error("nothing was answered: this test saw nothing")
		}
		figures.Report(t, "leaving", proof.Count("rounds", l.rounds), proof.Count("kills", l.kills), proof.Count("ends", l.ends),
			proof.Count("children", l.children), proof.Count("clients", l.clients), proof.Count("answered", l.answered),
			proof.Count("counters", l.counters), proof.Count("unknown", l.unknown))
	}
}

// leavingDatabase is where the increments are made.
const leavingDatabase = "trust-leaving"

// A leavingLoop ends a server in rounds under clients that leave something.
type leavingLoop struct {
	t      *testing.T
	server *process
	http   *client
	rng    *rand.Rand

	rounds, kills, ends, children, clients int
	answered, counters, unknown            int
}

func (l *leavingLoop) round() error {
	trusted, err := l.server.trusted()
	if err != nil {
		return err
	}
	c := &crowd{done: make(chan struct{})}
	for i := range 8 {
		one := &leaver{
			t: l.t, addr: l.server.address(), config: &tls.Config{RootCAs: trusted, ServerName: "localhost"},
			database: leavingDatabase, place: fmt.Sprintf("r%d/l%d", l.rounds, i),
			rng: rand.New(rand.NewPCG(l.rng.Uint64(), 0)), way: l.rng.IntN(allWays),
		}
		c.leavers = append(c.leavers, one)
		c.alive.Go(func() { one.live(c.done) })
	}
	if l.rng.IntN(3) == 0 {
		child := &leaver{addr: l.server.address(), database: leavingDatabase, place: fmt.Sprintf("r%d/child", l.rounds)}
		if ok, err := child.killChild(l.server.dir); err != nil || !ok {
			return fmt.Errorf("a client in a process of its own has left something: %t, %w", ok, err)
		}
		l.children++
		c.leavers = append(c.leavers, child)
	}
	if err := l.endRound(c); err != nil {
		return err
	}
	if err := l.server.start(); err != nil {
		return err
	}
	return l.check(c)
}

// endRound ends the server: at any moment, or when all clients have gone that do not stay and what
// they have left is written.
func (l *leavingLoop) endRound(c *crowd) error {
	defer c.alive.Wait()
	defer close(c.done)
	if l.rng.IntN(3) == 0 {
		<-time.After(300 * time.Millisecond)
		if err := c.waitMade(l.read); err != nil {
			return err
		}
	} else {
		<-time.After(time.Duration(l.rng.IntN(120)) * time.Millisecond)
	}
	if l.rng.IntN(3) > 0 {
		l.kills++
		l.server.kill()
		return nil
	}
	l.ends++
	if err := l.server.terminate(); err != nil {
		return fmt.Errorf("the server ends with %w, want in order", err)
	}
	return nil
}

// check looks at what is there after a start.
func (l *leavingLoop) check(c *crowd) error {
	got, err := l.read()
	if err != nil {
		return err
	}
	for _, one := range c.leavers {
		if err := one.check(got[one.place], true); err != nil {
			return err
		}
		l.clients++
		l.answered += one.answered
		l.counters += len(one.counters)
		for _, n := range one.counters {
			if n.least < n.most {
				l.unknown++
			}
		}
	}
	return nil
}

// read returns the counters of this round, by their places.
func (l *leavingLoop) read() (map[string]map[string]int, error) {
	round := fmt.Sprintf("r%d", l.rounds)
	a, _, err := l.http.send(request{method: "GET", target: target(leavingDatabase, []string{round}, false)})
	if err != nil {
		return nil, err
	}
	if a.status == http.StatusNotFound {
		return nil, nil // no client has come yet
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("the counters are answered %d %s", a.status, a.body)
	}
	var clients map[string]map[string]int
	if err := json.Unmarshal([]byte(a.body), &clients); err != nil {
		return nil, err
	}
	got := map[string]map[string]int{}
	for name, counters := range clients {
		got[round+"/"+name] = counters
	}
	return got, nil
}
