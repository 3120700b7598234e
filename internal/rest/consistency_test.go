package rest_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// TestPositionsAreForThoseWhoMayRead: a client that is denied does not learn how many commits there are.
func TestPositionsAreForThoseWhoMayRead(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *rest.Options) { o.Reads = rest.Local })
	for request, want := range map[string]bool{
		"GET /a.json?ns=closed":                       false,
		"HEAD /a.json?ns=closed":                      false,
		"GET /a.json?ns=closed&shallow=true":          false,
		"PUT /a.json?ns=closed 1":                     false,
		"GET /a.json?ns=closed&auth=wrong":            false,
		"GET /a.json?ns=closed&auth=" + secret:        true,
		"PUT /a.json?ns=closed&auth=" + secret + " 1": true,
	} {
		if got, h := s.do(request); (h.Get("X-Livetree-Position") != "") != want {
			t.Errorf("%s is answered %.40s with the position %q, want one: %v", request, got, h.Get("X-Livetree-Position"), want)
		}
	}
}

// position returns the one that is ahead of a database's by a number of commits.
func (s *server) position(ahead uint64) string {
	s.t.Helper()
	_, h := s.do("GET /a.json?ns=closed&auth=" + secret)
	var epoch, position uint64
	if _, err := fmt.Sscanf(h.Get("X-Livetree-Position"), "%d-%d", &epoch, &position); err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("X-Livetree-Min-Position: %d-%d", epoch, position+ahead)
}

// TestPositionsThatAreAwaited: whoever waits for one is known, and counts. One that is too far ahead is refused.
func TestPositionsThatAreAwaited(t *testing.T) {
	t.Parallel()
	memory := budget.NewMemory(4 << 20)
	s := serve(t, func(o *rest.Options) { o.Reads, o.Memory = rest.Local, memory })
	for target, wants := range map[string]map[uint64]string{
		"/a.json?ns=closed&auth=wrong":     {0: "401", 1000: "401", 1 << 62: "401"},
		"/a.json?ns=closed&auth=" + secret: {0: "200", 1 << 62: "400"},
	} {
		for ahead, want := range wants {
			if got, _ := s.do("GET "+target, s.position(ahead)); !strings.HasPrefix(got, want) {
				t.Errorf("%s from a position that is %d ahead is answered %s, want %s", target, ahead, got, want)
			}
		}
	}
	next := s.position(1)
	await(t, "the memory of others to be given back", func() bool { return memory.Bytes() == 0 })
	answered := make(chan string, 1)
	go func() {
		defer close(answered) // also when the request has failed
		got, _ := s.do("GET /a.json?ns=closed&auth="+secret, next)
		answered <- got
	}()
	await(t, "the memory of a request that waits", func() bool { return memory.Bytes() > 0 })
	if got, _ := s.do("PUT /a.json?ns=closed&auth=" + secret + " 1"); !strings.HasPrefix(got, "200") {
		t.Errorf("a write is answered %s", got)
	}
	if got := <-answered; got != "200 1" {
		t.Errorf("whoever has waited is answered %s", got)
	}
	await(t, "the memory to be given back", func() bool { return memory.Bytes() == 0 })
}

// A lonely log is that of a node whose others do not answer, until they do.
type lonelyLog struct {
	engine.Log
	asked, agree chan struct{}
}

func (l lonelyLog) wait() error {
	l.asked <- struct{}{}
	<-l.agree
	return fault.New(fault.Unavailable, "the others are gone")
}

func (lonelyLog) Home(store.ID) (uint64, bool) { return 0, false }

func (l lonelyLog) Barrier(context.Context, store.ID, time.Duration) error { return l.wait() }

func (l lonelyLog) Forward(context.Context, store.ID, engine.Request) (engine.Commit, error) {
	return engine.Commit{}, l.wait()
}

// TestRequestsThatWaitForOtherNodes: what waits for other nodes counts over HTTP/2, where a connection has many.
func TestRequestsThatWaitForOtherNodes(t *testing.T) {
	t.Parallel()
	memory, log := budget.NewMemory(4<<20), lonelyLog{asked: make(chan struct{}), agree: make(chan struct{})}
	s := serveOver(t, func(s *store.Store) *catalog.Catalog {
		return catalog.New(s, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, s.LastMillis()), Deadline: patience, Log: log})
	}, func(o *rest.Options) { o.Reads, o.Memory = rest.Linearizable, memory })
	for _, request := range []string{"GET /a.json", "HEAD /a.json", "GET /a.json?auth=" + secret, "DELETE /a.json", "PUT /a.json 1"} {
		answered := make(chan string, 1)
		go func() {
			defer close(answered) // also if there is no answer
			got, _ := s.do(request)
			answered <- got
		}()
		select {
		case <-log.asked:
		case got := <-answered:
			t.Fatalf("%s is answered %q, and waits for nobody", request, got)
		}
		if memory.Bytes() == 0 {
			t.Errorf("%s takes no memory while it waits for other nodes", request)
		}
		log.agree <- struct{}{}
		if got := <-answered; !strings.HasPrefix(got, "503") {
			t.Errorf("%s is answered %s", request, got)
		}
		await(t, "the memory to be given back", func() bool { return memory.Bytes() == 0 })
	}
}
