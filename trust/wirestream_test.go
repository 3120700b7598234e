//go:build unix

package trust_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/model"
)

// A wireStream keeps a cache by a stream of REST, beside the clients of the SDKs' protocol.
type wireStream struct {
	client *client
	loop   *wireLoop
	listen wireListen
	ctx    context.Context
	close  context.CancelFunc

	mu      sync.Mutex
	changed chan struct{} // closed when something was told
	tree    *model.Tree   // of the location
}

func newWireStream(c *client, l *wireLoop, at wireListen) *wireStream {
	s := &wireStream{client: c, loop: l, listen: at, changed: make(chan struct{}), tree: model.New()}
	s.ctx, s.close = context.WithCancel(context.Background())
	return s
}

// run streams until it is closed.
func (s *wireStream) run() {
	for s.ctx.Err() == nil {
		s.stream()
		select {
		case <-time.After(5 * time.Millisecond): // the server is not there
		case <-s.ctx.Done():
		}
	}
}

func (s *wireStream) stream() {
	r := request{method: "GET", target: target(s.loop.database, s.listen.path, false, "format=export"), header: []string{"Accept", "text/event-stream"}}
	req, err := r.build(s.ctx, s.client.base)
	if err != nil {
		s.loop.books.problem("%v", err)
		return
	}
	answer, err := s.client.http.Do(req)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return // it ends
	}
	var event string
	in := bufio.NewReaderSize(answer.Body, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case name == "event":
			event = value
		case name == "data" && (event == "put" || event == "patch"):
			s.take(event, value)
		}
	}
}

// take does what an event says.
func (s *wireStream) take(event, data string) {
	var p struct {
		Path string
		Data json.RawMessage
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := json.Unmarshal([]byte(data), &p)
	if err == nil {
		action := map[string]string{"put": "d", "patch": "m"}[event]
		err = put(s.tree, action, splitPath(p.Path), p.Data)
	}
	if err != nil {
		s.loop.books.problem("a stream of %s: %s %.300s: %v", s.listen, event, data, err)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// compare waits until the cache is what is there.
func (s *wireStream) compare(whole *model.Tree) {
	want, late := s.listen.expected(whole), time.After(patience)
	for {
		s.mu.Lock()
		got, changed := s.tree.Export(nil), s.changed
		s.mu.Unlock()
		if got == want {
			return
		}
		select {
		case <-changed:
		case <-late:
			s.loop.books.problem("a stream of %s has %s", s.listen, firstOther(got, want))
			return
		}
	}
}
