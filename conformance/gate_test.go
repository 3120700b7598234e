package conformance_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGateOutside opens and shuts a location again and again by data that its
// rule reads. What is there only while it is shut must never be told, whatever
// comes together: the write that shuts it brings it, and the one that opens it
// takes it away.
func TestGateOutside(t *testing.T) {
	server := startProcess(t)
	base, client := server.base, server.client(1)
	put := func(method, target, body string) {
		if status, err := send(client, method, base+target, []byte(body)); err != nil || status != http.StatusOK {
			t.Errorf("%s %s: %d, %v", method, target, status, err)
		}
	}
	put("PUT", "/.settings/rules.json?auth="+secret, `{"rules":{".write":true,"g":{".read":"root.child('gate').val() === true"}}}`)
	duration := 2 * time.Second
	if *long {
		duration = time.Minute
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var watches []*gateWatch
	var done sync.WaitGroup
	for _, target := range []string{"/g.json?", "/g.json?resume=true&", `/g.json?orderBy="$key"&limitToLast=3&`, "/g/part.json?resume=true&"} {
		for _, major := range []int{1, 2} {
			w := &gateWatch{url: base + target, client: server.client(major)}
			watches = append(watches, w)
			done.Go(func() { w.run(ctx) })
		}
	}
	done.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			put("PUT", "/g/x.json", fmt.Sprint(n))
		}
	})
	// On a busy machine little happens in a short time: then it takes longer.
	shut, begun := 0, time.Now()
	for ; time.Since(begun) < duration || isLittle(watches) && time.Since(begun) < patience; shut++ {
		put("PATCH", "/.json", fmt.Sprintf(`{"gate":true,"g/secret":null,"g/part/secret":null,"g/part/n":%d}`, shut))
		put("PUT", "/g/part/n.json", fmt.Sprintf("%d.5", shut))
		put("PATCH", "/.json", `{"gate":false,"g/secret":1,"g/part/secret":1}`)
		put("PUT", "/g/secret.json", `{"more":1}`)
	}
	stop()
	done.Wait()
	for _, w := range watches {
		for _, problem := range w.problems {
			t.Errorf("%s: %s", w.url, problem)
		}
	}
	events, cancels := told(watches)
	t.Logf("shut %d times; %d events, of which %d cancel", shut, events, cancels)
	if isLittle(watches) {
		t.Error("too little happened to prove anything")
	}
}

// told returns how many events watches were told, and how many of them cancel.
func told(watches []*gateWatch) (events, cancels int64) {
	for _, w := range watches {
		events, cancels = events+w.events.Load(), cancels+w.cancels.Load()
	}
	return events, cancels
}

// isLittle reports whether too little was told to prove anything: each stream has
// a first event and is cancelled, and some are to be told more.
func isLittle(watches []*gateWatch) bool {
	events, cancels := told(watches)
	return cancels < 10 || events < 2*cancels+20
}

// A gateWatch streams a location whenever it may.
type gateWatch struct {
	url             string
	client          *http.Client
	id              string
	events, cancels atomic.Int64
	problems        []string
}

func (w *gateWatch) run(ctx context.Context) {
	for ctx.Err() == nil && len(w.problems) < 10 {
		w.stream(ctx)
	}
}

// stream reads one stream to its end. Being refused is no problem.
func (w *gateWatch) stream(ctx context.Context) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		w.problems = append(w.problems, err.Error())
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	if w.id != "" {
		req.Header.Set("Last-Event-ID", w.id)
	}
	answer, err := w.client.Do(req)
	if err != nil {
		return // the end of the test
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return
	}
	in := bufio.NewReader(answer.Body)
	for {
		m, err := readMessage(in)
		if err != nil {
			return
		}
		w.events.Add(1)
		if m.event == "cancel" {
			w.cancels.Add(1)
		}
		if m.id != "" {
			w.id = m.id
		}
		if strings.Contains(m.data, "secret") {
			w.problems = append(w.problems, fmt.Sprintf("it was told %v", m))
		}
	}
}
