//go:build unix

package trust_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
)

// TestKillLoop kills the server over and over while it is written to, and holds
// it to what it has acknowledged.
func TestKillLoop(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for i, portion := range portions(rounds(5, 500, 5000), 100) {
		p := startProcess(t, "--dev")
		l := newKillLoop(p, n+uint64(i), 8, func(major int) *client { return newClient(t, p, major) })
		if err := l.run(portion); err != nil {
			t.Fatal(err)
		}
		p.kill()
		for _, problem := range l.books.problems {
			t.Error(problem)
		}
		if l.books.acknowledged == 0 {
			t.Error("nothing was acknowledged: this test saw nothing")
		}
		if l.unansweredAtEnd > 0 {
			t.Errorf("%d requests were not answered by a server that was asked to end, want 0", l.unansweredAtEnd)
		}
		figures.Report(t, "killloop", l.figures()...)
	}
}

// A killLoop ends a server in rounds, each in one of several ways, and starts it
// again.
type killLoop struct {
	server    *process
	rng       *rand.Rand
	witnesses []*witness
	tallies   []*tally
	books     *account

	rounds, kills, ends, pauses int
	unansweredAtEnd             int // requests, by a server that ended in order
}

func newKillLoop(p *process, seed uint64, count int, dial func(major int) *client) *killLoop {
	l := &killLoop{server: p, rng: newRand(seed, 0), books: &account{}}
	for i := range 3 {
		l.tallies = append(l.tallies, newTally(fmt.Sprintf("trust-%d", i)))
	}
	clients := []*client{dial(1), dial(2)}
	for i := range count {
		counter := l.tallies[i%len(l.tallies)]
		l.witnesses = append(l.witnesses, &witness{
			client: clients[i%2], database: counter.database, place: []string{fmt.Sprintf("w%d", i)},
			rng: newRand(seed, i+1), tree: model.New(), tally: counter, books: l.books,
		})
	}
	return l
}

func (l *killLoop) run(rounds int) error {
	if l.rounds == 0 {
		if err := l.create(); err != nil {
			return err
		}
	}
	for range rounds {
		if err := l.round(); err != nil {
			return fmt.Errorf("round %d: %w", l.rounds, err)
		}
		l.rounds++
		if len(l.books.problems) > 20 {
			return fmt.Errorf("round %d: enough is wrong: %s", l.rounds, l.books.problems[0])
		}
	}
	return nil
}

// create makes the databases: reading does not, but a write does.
func (l *killLoop) create() error {
	for i, c := range l.tallies {
		r := request{method: "PUT", target: target(c.database, []string{"tally"}, false), body: "0"}
		if a, _, err := l.witnesses[i].client.send(r); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%s = %d %s, %w", r, a.status, a.body, err)
		}
	}
	return nil
}

// round lets the witnesses write for a while, ends the server under their hands,
// starts it again and has them look.
func (l *killLoop) round() error {
	l.books.enough = l.books.acknowledged + 1 + l.rng.IntN(400)
	l.books.isEnough = make(chan struct{})
	l.books.unanswered = nil
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, w := range l.witnesses {
		working.Go(func() { w.work(stop) })
	}
	select {
	case <-l.books.isEnough:
	case <-time.After(patience):
		close(stop)
		working.Wait()
		return fmt.Errorf("no %d writes were acknowledged in %v", l.books.enough, patience)
	}
	asked := time.Now()
	isInOrder, err := l.endServer()
	close(stop)
	working.Wait()
	if err != nil {
		return err
	}
	if isInOrder {
		for _, sent := range l.books.unanswered {
			if sent.Before(asked.Add(drainTime)) {
				l.unansweredAtEnd++
			}
		}
	}
	if err := l.restart(); err != nil {
		return err
	}
	return l.verify()
}

// endServer ends the server by force or, in one of five rounds, in order.
func (l *killLoop) endServer() (isInOrder bool, err error) {
	switch l.rng.IntN(10) {
	case 0, 1:
		l.ends++
		if err := l.server.terminate(); err != nil {
			return true, fmt.Errorf("the server ends with %w, want in order", err)
		}
		return true, nil
	case 2:
		// A machine that stands still for a moment, as when it is moved.
		l.pauses++
		if err := l.server.signal(syscall.SIGSTOP); err != nil {
			return false, err
		}
		<-time.After(time.Duration(1+l.rng.IntN(1000)) * time.Millisecond)
		if err := l.server.signal(syscall.SIGCONT); err != nil {
			return false, err
		}
	}
	l.kills++
	l.server.kill()
	return false, nil
}

// restart starts the server, in some rounds after it was killed while it starts.
func (l *killLoop) restart() error {
	if l.rng.IntN(4) == 0 {
		if _, err := l.server.launch(); err != nil {
			return err
		}
		<-time.After(time.Duration(l.rng.IntN(200)) * time.Millisecond) // anywhere in its start
		l.kills++
		_ = l.server.end(os.Kill)
	}
	return l.server.start()
}

func (l *killLoop) verify() error {
	for _, w := range l.witnesses {
		if err := w.verify(); err != nil {
			return err
		}
	}
	for i, c := range l.tallies {
		c.read(l.witnesses[i])
	}
	return nil
}

func (l *killLoop) figures() []proof.Figure {
	return []proof.Figure{
		proof.Count("rounds", l.rounds), proof.Count("kills", l.kills), proof.Count("ends", l.ends), proof.Count("pauses", l.pauses),
		proof.Count("acknowledged", l.books.acknowledged), proof.Count("refused", l.books.refused),
		proof.Count("lost", len(l.books.problems)), proof.Count("unknown", l.books.unknown), proof.Count("unanswered", l.unansweredAtEnd),
	}
}
