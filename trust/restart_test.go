//go:build unix

package trust_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

// TestRestartUnderLoad ends the server in order and starts it again, as an upgrade does, while clients write and stream. They
// repeat what was not answered. All that is sent before the server closes its connections is answered, nothing that was
// acknowledged is lost, and streams go on with the event after the last one.
//
// A supervisor may hold the port, as systemd does: then no connection is ever refused. How long clients wait depends on whether
// there are streams, since a server that stops ends them one after the other.
func TestRestartUnderLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []restartCase{{"restart", false, 6}, {"restartheld", true, 6}, {"restartcalm", true, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &process{dir: t.TempDir(), flags: []string{"--dev"}}
			if c.isHeld {
				p.socket = holdPort(t)
			}
			p.watchOver(t)
			if err := p.start(); err != nil {
				t.Fatal(err)
			}
			r := newRestarts(t, p, c.streams)
			for range rounds(2, 20, 200) {
				r.restart(t)
			}
			r.judge(t, c)
			r.report(t, c.name)
		})
	}
}

// A restartCase is how a server is restarted.
type restartCase struct {
	name    string
	isHeld  bool // its port
	streams int
}

// holdPort returns a socket that stays open until the test ends, whatever servers do.
func holdPort(t *testing.T) *os.File {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close(); file.Close() })
	return file
}

// restarts are clients of a server that is started again and again.
type restarts struct {
	server *process
	diary  *clusterDiary
	stop   func() // ends the writers

	reader       *client
	acknowledged [restartWriters]int // the last number of each writer

	mu         sync.Mutex
	answers    chan time.Time // of writes; nobody need read them
	last       time.Time      // of the last answer
	gap        time.Duration  // the longest time without any
	gaps       []time.Duration
	stops      []time.Duration
	sent       int
	repeated   int
	refused    int
	unanswered []time.Time
	problems   []string
}

const restartWriters = 6

func newRestarts(t *testing.T, p *process, streams int) *restarts {
	t.Helper()
	r := &restarts{server: p, reader: newClient(t, p, 1), answers: make(chan time.Time, 1), last: time.Now()}
	r.reader.must(t, request{method: "PUT", target: target("restarts", []string{"begun"}, false), body: "1"})
	r.diary = startDiaryOf(t, []*process{p}, []*client{newClient(t, p, 1)}, "restarts", streams)
	ended := make(chan struct{})
	var writing sync.WaitGroup
	for i := range restartWriters {
		c := newClient(t, p, 1+i%2)
		writing.Go(func() { r.write(c, i, ended) })
	}
	r.stop = sync.OnceFunc(func() {
		close(ended)
		writing.Wait()
	})
	t.Cleanup(r.stop)
	return r
}

// write adds one number after the other to a place of its own, and repeats what was not answered.
func (r *restarts) write(c *client, writer int, ended <-chan struct{}) {
	for n := 1; ; {
		select {
		case <-ended:
			return
		default:
		}
		a, s, err := c.send(request{method: "PUT", target: target("restarts", []string{fmt.Sprintf("w%d", writer)}, false), body: fmt.Sprint(n)})
		if r.note(a, s, err) {
			r.acknowledged[writer] = n
			n++
			continue
		}
		<-time.After(5 * time.Millisecond) // the server is not there
	}
}

// note enters what became of a write, and reports whether it was acknowledged.
func (r *restarts) note(a answer, s sending, err error) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	switch {
	case err == nil && a.status == http.StatusOK:
		r.gap = max(r.gap, now.Sub(r.last))
		r.last = now
		select {
		case r.answers <- now:
		default:
		}
		return true
	case err == nil:
		r.problems = append(r.problems, fmt.Sprintf("a write is answered %d %s", a.status, a.body))
	case errors.Is(err, syscall.ECONNREFUSED):
		r.refused++
	default:
		r.repeated++
		if !s.all.IsZero() {
			r.unanswered = append(r.unanswered, s.all)
		}
	}
	return false
}

// restart ends the server once it is at work, starts it, and returns when it is at work again.
func (r *restarts) restart(t *testing.T) {
	t.Helper()
	r.await(t, time.Now())
	r.mu.Lock()
	r.gap, r.unanswered = 0, nil
	r.mu.Unlock()
	asked := time.Now()
	if err := r.server.terminate(); err != nil {
		t.Fatalf("the server ends with %v, want in order", err)
	}
	r.stops = append(r.stops, time.Since(asked))
	if err := r.server.start(); err != nil {
		t.Fatal(err)
	}
	r.await(t, time.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps = append(r.gaps, r.gap)
	for _, sent := range r.unanswered {
		if sent.Before(asked.Add(drainTime)) {
			r.problems = append(r.problems, fmt.Sprintf("a write that was sent %v after the server was asked to end is not answered", sent.Sub(asked)))
		}
	}
}

// await returns when a write was answered after a moment.
func (r *restarts) await(t *testing.T, moment time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		select {
		case at := <-r.answers:
			if at.After(moment) {
				return
			}
		case <-ctx.Done():
			t.Fatalf("no write is answered for %v", patience)
		}
	}
}

func (r *restarts) judge(t *testing.T, c restartCase) {
	t.Helper()
	r.stop()
	r.diary.end()
	for _, s := range r.diary.streams {
		if err := s.judge(r.diary.last); err != nil {
			t.Error(err)
		}
	}
	for i, last := range r.acknowledged { // one more may be there that was not answered
		got := r.reader.must(t, request{method: "GET", target: target("restarts", []string{fmt.Sprintf("w%d", i)}, false)}).body
		if got != fmt.Sprint(last) && got != fmt.Sprint(last+1) {
			t.Errorf("writer %d has been answered up to %d, and %s is there", i, last, got)
		}
	}
	for _, problem := range r.problems {
		t.Error(problem)
	}
	if c.isHeld && r.refused > 0 {
		t.Errorf("%d connections were refused, want 0: the port was held", r.refused)
	}
	if r.diary.last == 0 || r.diary.moves() < len(r.diary.streams) {
		t.Errorf("%d events, %d moves: this test saw nothing", r.diary.last, r.diary.moves())
	}
}

func (r *restarts) report(t *testing.T, name string) {
	t.Helper()
	figures.Report(t, name, proof.Count("restarts", len(r.stops)), proof.Count("sent", r.sent), proof.Count("repeated", r.repeated), proof.Count("refused", r.refused),
		proof.Count("problems", len(r.problems)), proof.Count("events", r.diary.last), proof.Count("moves", r.diary.moves()),
		proof.Count("most_stop_ms", millis(r.stops, 1)), proof.Count("most_gap_ms", millis(r.gaps, 1)), proof.Count("most_median_gap_ms", millis(r.gaps, 0.5)))
}
