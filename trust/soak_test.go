//go:build linux

package trust_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
)

var (
	soakTime = flag.Duration("soak", 0, "how long TestSoak runs, in laps of a minute; 0 for some laps of a second")
	soakWarm = flag.Duration("soak.warm", 30*time.Minute, "how long what a server takes of the machine may still grow in TestSoak")
	soakDir  = flag.String("soak.dir", "", "a directory in which TestSoak keeps data and measurements, to go on with in another run; none for one that is gone afterwards")
)

// TestSoak has two servers under mixed load for as long as it is told. One is never
// stopped: what it takes of the machine must stay as it is after a while. The other
// is killed over and over, also amid backups and while indexes are built. Both keep
// all that they have acknowledged. An interrupt ends it after the lap, with all that is checked at the end.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := newSoak(t, seed(t))
	lap, laps := time.Second, 2
	if *soakTime > 0 {
		lap, laps = time.Minute, max(1, int(*soakTime/time.Minute))
	}
	began := time.Now()
	interrupted := t.Context()
	if *soakTime > 0 {
		var restore context.CancelFunc
		interrupted, restore = signal.NotifyContext(interrupted, os.Interrupt, syscall.SIGTERM)
		defer restore()
	}
	for i := 0; i < laps && interrupted.Err() == nil; i++ {
		if err := s.lap(i, lap); err != nil {
			t.Fatal(err)
		}
		row, err := s.measure(i, time.Since(began))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.note(row); err != nil {
			t.Fatal(err)
		}
		if problems := s.books.found(); len(problems) > 20 {
			break
		}
	}
	s.verify(t)
	for _, growth := range growths(s.rows, *soakWarm) {
		t.Error(growth)
	}
	figures.Report(t, "soak", s.figures()...)
}

// A soak is two servers and all who work on them.
type soak struct {
	t      *testing.T
	dir    string
	steady *process  // never stopped
	killed *killLoop // killed all the time

	witnesses []*witness // at the steady one
	books     *account
	load      *soakLoad
	rows      []soakRow
	backups   int
	told      int // problems of the killed one that are in the books already
}

func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	s := &soak{t: t, dir: *soakDir, books: &account{}}
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	flags := []string{"--dev", "--admin-addr", "127.0.0.1:0", "--log-keep", "1m,16MiB", "--cache", "64MiB"}
	s.steady = startProcessOn(t, s.make("steady"), flags...)
	other := startProcessOn(t, s.make("killed"), flags...)
	s.killed = newKillLoop(other, seed, 8, func(major int) *client { return newClient(t, other, major) })
	// What an earlier run has left is in nobody's book.
	for _, c := range s.killed.tallies {
		s.clear(s.killed.witnesses[0].client, c.database)
	}
	counter := newTally("soak")
	clients := []*client{newClient(t, s.steady, 1), newClient(t, s.steady, 2)}
	s.clear(clients[0], counter.database)
	clients[0].must(t, request{method: "PUT", target: target(counter.database, []string{"tally"}, false), body: "0"})
	for i := range 4 {
		s.witnesses = append(s.witnesses, &witness{
			client: clients[i%2], database: counter.database, place: []string{fmt.Sprintf("w%d", i)},
			rng: newRand(seed, 100+i), tree: model.New(), tally: counter, books: s.books,
		})
	}
	s.load = newSoakLoad(s.steady, s.books, clients, seed)
	s.load.fill(t)
	if err := s.killed.create(); err != nil {
		t.Fatal(err)
	}
	return s
}

// make returns a directory of the soak, which may be there already.
func (s *soak) make(name string) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

func (s *soak) clear(c *client, database string) {
	s.t.Helper()
	c.must(s.t, request{method: "PUT", target: target(database, nil, false), body: "null"})
}

// lap has everybody work for a while.
func (s *soak) lap(number int, length time.Duration) error {
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, w := range s.witnesses {
		working.Go(func() {
			w.work(stop)
			select {
			case <-stop:
			default:
				s.books.problem("%s was not answered by a server that nobody stops", w.place[0])
			}
		})
	}
	s.load.start(&working, stop)
	var killed error
	working.Go(func() {
		for killed == nil {
			select {
			case <-stop:
				return
			default:
				killed = s.killed.run(1)
			}
		}
	})
	working.Go(func() { s.operate(number, s.steady, true) })
	working.Go(func() { s.operate(number, s.killed.server, false) })
	time.AfterFunc(length, func() { close(stop) })
	working.Wait()
	s.books.mu.Lock()
	defer s.books.mu.Unlock()
	s.books.problems = append(s.books.problems, s.killed.books.found()[s.told:]...)
	s.told = len(s.killed.books.problems)
	return killed
}

// verify has all witnesses look at what must be there.
func (s *soak) verify(t *testing.T) {
	t.Helper()
	for _, w := range s.witnesses {
		if err := w.verify(); err != nil {
			t.Error(err)
		}
	}
	for _, problem := range s.books.found() {
		t.Error(problem)
	}
	if s.books.acknowledged == 0 || s.killed.books.acknowledged == 0 || s.load.events.Load() == 0 || s.load.queries.Load() == 0 {
		t.Error("somebody saw nothing: this test shows nothing")
	}
}

func (s *soak) figures() []proof.Figure {
	last, resident, goroutines := s.rows[len(s.rows)-1], 0, 0
	for _, r := range s.rows {
		resident, goroutines = max(resident, r.resident), max(goroutines, r.goroutines)
	}
	return []proof.Figure{
		proof.Count("seconds", int(last.age.Seconds())), proof.Count("kills", s.killed.kills), proof.Count("ends", s.killed.ends),
		proof.Count("acknowledged", s.books.acknowledged+s.killed.books.acknowledged),
		proof.Count("queries", int(s.load.queries.Load())), proof.Count("events", int(s.load.events.Load())),
		proof.Count("backups", s.backups), proof.Count("problems", len(s.books.found())),
		proof.Count("most_resident_mib", resident>>20), proof.Count("most_goroutines", goroutines),
	}
}
