//go:build unix

package trust_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

// TestClusterRolling stops and starts one node after the other under load, in order. Each answers every request that it
// has, and streams go on at another node with the event after the last one.
func TestClusterRolling(t *testing.T) {
	count := drill(t, 2)
	c := startCluster(t)
	l := newClusterLoop(t, c, seed(t), 3)
	d := startDiary(t, c)
	var stops []time.Duration
	for i := range 3 * count {
		p := c.nodes[i%3]
		err := l.round(func() (int, error) {
			began := time.Now()
			if err := p.terminate(); err != nil {
				return i % 3, fmt.Errorf("node %d ends with %w, want in order", i%3+1, err)
			}
			stops = append(stops, time.Since(began))
			for _, sent := range l.books.missed() {
				if sent.Before(began.Add(drainTime)) {
					l.wrong = append(l.wrong, fmt.Sprintf("node %d is asked to end, and does not answer a request that was sent %v after that", i%3+1, sent.Sub(began)))
				}
			}
			return i % 3, l.start(p)
		})
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	d.end()
	for _, s := range d.streams {
		if err := s.judge(d.last); err != nil {
			t.Error(err)
		}
	}
	l.report(t, "clusterrolling")
	figures.Report(t, "clusterstreams", proof.Count("events", d.last), proof.Count("moves", d.moves()), proof.Count("most_stop_ms", millis(stops, 1)))
}

// missed returns when the requests were sent that were not answered, and forgets them.
func (a *account) missed() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.unanswered
	a.unanswered = nil
	return all
}

// A clusterDiary is one writer who adds numbered children, and streams that see each of them.
type clusterDiary struct {
	last    int // child that was acknowledged
	streams []*diaryStream
	end     func() // ends the writer, then the streams when they have seen all, or were given time to
}

// startDiary starts the diary of a cluster. It is in a database of its own: the nodes are compared while it is being written.
func startDiary(t *testing.T, c *cluster) *clusterDiary {
	t.Helper()
	const database = "diary"
	if err := c.create(0, database); err != nil {
		t.Fatal(err)
	}
	var clients []*client
	for i := range c.nodes {
		clients = append(clients, c.client(t, i, 1))
	}
	return startDiaryOf(t, c.nodes, clients, database, 6)
}

// startDiaryOf is startDiary for any servers that have the same data. The writer uses the clients.
func startDiaryOf(t *testing.T, nodes []*process, clients []*client, database string, streams int) *clusterDiary {
	t.Helper()
	d := &clusterDiary{}
	stop := make(chan struct{})
	var writing, streaming sync.WaitGroup
	writing.Go(func() { d.write(clients, database, stop) })
	ctx, cancel := context.WithCancel(context.Background())
	for i := range streams {
		s := &diaryStream{first: i, changed: make(chan struct{}, 1)}
		for _, node := range nodes {
			s.clients = append(s.clients, newClient(t, node, 1+i%2))
		}
		d.streams = append(d.streams, s)
		streaming.Go(func() { s.run(ctx, database) })
	}
	d.end = sync.OnceFunc(func() {
		close(stop)
		writing.Wait()
		for _, s := range d.streams {
			s.await(d.last)
		}
		cancel()
		streaming.Wait()
	})
	t.Cleanup(d.end)
	return d
}

// diaryPause is between two entries: streams that begin anew are sent all of them.
const diaryPause = 2 * time.Millisecond

// write adds one child after the other. What fails at one node is sent again at the next: it is the same child.
func (d *clusterDiary) write(clients []*client, database string, stop <-chan struct{}) {
	node := 0
	for {
		select {
		case <-stop:
			return
		case <-time.After(diaryPause):
		}
		n := strconv.Itoa(d.last + 1)
		a, _, err := clients[node].send(request{method: "PUT", target: target(database, []string{"diary", "n" + n}, false), body: n})
		if err == nil && a.status == http.StatusOK {
			d.last++
		} else {
			node = (node + 1) % len(clients)
		}
	}
}

func (d *clusterDiary) moves() (count int) {
	for _, s := range d.streams {
		count += s.moves
	}
	return count
}

// A diaryStream sees children come, and goes on at the next node when its stream ends.
type diaryStream struct {
	clients []*client
	first   int
	changed chan struct{} // gets something when there was an event

	mu       sync.Mutex
	id       string // of the last event
	seen     int    // the last child
	moves    int    // to another node
	wholes   int    // events with all that is there
	problems []string
}

func (s *diaryStream) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// run streams until the context ends.
func (s *diaryStream) run(ctx context.Context, database string) {
	for node := s.first; ctx.Err() == nil; node++ {
		s.stream(ctx, s.clients[node%len(s.clients)], database)
		s.mu.Lock()
		s.moves++
		s.mu.Unlock()
		select {
		case <-time.After(5 * time.Millisecond): // the node is not there
		case <-ctx.Done():
		}
	}
}

func (s *diaryStream) stream(ctx context.Context, c *client, database string) {
	r := request{method: "GET", target: target(database, []string{"diary"}, false, "resume=true"), header: []string{"Accept", "text/event-stream"}}
	if s.id != "" {
		r.header = append(r.header, "Last-Event-ID", s.id)
	}
	req, err := r.build(ctx, c.base)
	if err != nil {
		return
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode < 500 {
		s.mu.Lock()
		s.problem("%s = %s", r, answer.Status)
		s.mu.Unlock()
		return
	}
	in := bufio.NewReaderSize(answer.Body, 1<<16)
	var event, id, data string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			event = value
		case "id":
			id = value
		case "data":
			data = value
		case "": // the event ends
			if event == "put" || event == "patch" {
				s.take(id, data)
			}
			event = ""
		}
	}
}

// take notes an event, which must be the next.
func (s *diaryStream) take(id, data string) {
	var p struct {
		Path string
		Data json.RawMessage
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}()
	if id != "" {
		s.id = id
	}
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		s.problem("an event is %q: %v", data, err)
		return
	}
	if p.Path == "/" {
		s.wholes++
		var all map[string]int
		_ = json.Unmarshal(p.Data, &all) // null if there is none
		if len(all) < s.seen {
			s.problem("a fresh put has %d children, after child %d", len(all), s.seen)
		}
		s.seen = len(all)
		return
	}
	n, err := strconv.Atoi(strings.TrimPrefix(p.Path, "/n"))
	if err != nil || n > s.seen+1 {
		s.problem("after child %d comes %s", s.seen, data)
	}
	s.seen = max(s.seen, n)
}

// await returns when a child was seen, or too late.
func (s *diaryStream) await(last int) {
	late := time.After(patience / 6)
	for {
		s.mu.Lock()
		isSeen := s.seen >= last
		s.mu.Unlock()
		if isSeen {
			return
		}
		select {
		case <-s.changed:
		case <-late:
			return
		}
	}
}

// judge returns what the stream did not do.
func (s *diaryStream) judge(last int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.problems) > 0:
		return fmt.Errorf("a stream: %d problems, first: %s", len(s.problems), s.problems[0])
	case s.seen < last:
		return fmt.Errorf("a stream ends with child %d, want %d", s.seen, last)
	case s.wholes > 1:
		return fmt.Errorf("a stream was sent all that is there %d times in %d moves, want once", s.wholes, s.moves)
	}
	return nil
}
