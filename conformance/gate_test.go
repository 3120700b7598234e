package conformance_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGateOutside opens and shuts a location again and again by data that its
// rule reads. What is there only while it is shut must never be told, whatever
// comes together: the write that shuts it brings it, and the one that opens it
// takes it away. Streams are cancelled when it is shut, and never else.
func TestGateOutside(t *testing.T) {
	duration := 2 * time.Second
	if *long {
		duration = time.Minute
	}
	g := &gate{server: startProcess(t), duration: duration, patience: patience}
	g.run(t, g.server.base)
	for _, problem := range g.problems() {
		t.Error(problem)
	}
	if g.isLittle() {
		t.Error("too little happened to prove anything")
	}
}

// TestGateFails plants faults between server and streams, each of which must be
// found.
func TestGateFails(t *testing.T) {
	for fault, want := range map[string]string{"cancel": "cancelled although", "keep": "goes on"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			server := startProcess(t)
			proxy := httptest.NewServer(&lossyProxy{server: server.base, client: server.client(1), fault: fault})
			defer proxy.Close()
			defer proxy.CloseClientConnections()
			said := ""
			for range 60 { // on a busy machine little happens in a second
				g := &gate{server: server, duration: time.Second, patience: time.Second}
				g.run(t, proxy.URL)
				said += strings.Join(g.problems(), "\n") + "\n"
				if strings.Contains(said, want) {
					return
				}
			}
			t.Errorf("the checker says:\n%s\nwant something that %s", said, want)
		})
	}
}

// A gate is a location that is opened and shut, with streams of it.
type gate struct {
	server   *process
	duration time.Duration
	patience time.Duration
	watches  []*gateWatch
	// sent and shut are how many writes that shut the location were sent, and
	// how many of them were answered.
	sent, shut atomic.Int64
}

// run opens and shuts the location for a while, with streams at an address, and
// leaves it shut.
func (g *gate) run(t *testing.T, through string) {
	t.Helper()
	client := g.server.client(1)
	put := func(method, target, body string) {
		if status, err := send(client, method, g.server.base+target, []byte(body)); err != nil || status != http.StatusOK {
			t.Errorf("%s %s: %d, %v", method, target, status, err)
		}
	}
	put("PUT", "/.settings/rules.json?auth="+secret, `{"rules":{".write":true,"g":{".read":"root.child('gate').val() === true"}}}`)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var done sync.WaitGroup
	for _, target := range []string{"/g.json?", "/g.json?resume=true&", `/g.json?orderBy="$key"&limitToLast=3&`, "/g/part.json?resume=true&"} {
		for _, major := range []int{1, 2} {
			w := &gateWatch{gate: g, url: through + target, client: g.server.client(major)}
			if through != g.server.base {
				w.client = &http.Client{Transport: &http.Transport{}}
			}
			g.watches = append(g.watches, w)
			done.Go(func() { w.run(ctx) })
		}
	}
	done.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			put("PUT", "/g/x.json", fmt.Sprint(n))
		}
	})
	// On a busy machine little happens in a short time: then it takes longer.
	for begun := time.Now(); time.Since(begun) < g.duration || g.isLittle() && time.Since(begun) < g.patience; {
		put("PATCH", "/.json", fmt.Sprintf(`{"gate":true,"g/secret":null,"g/part/secret":null,"g/part/n":%d}`, g.sent.Load()))
		put("PUT", "/g/part/n.json", fmt.Sprintf("%d.5", g.sent.Load()))
		g.sent.Add(1)
		put("PATCH", "/.json", `{"gate":false,"g/secret":1,"g/part/secret":1}`)
		g.shut.Add(1)
		put("PUT", "/g/secret.json", `{"more":1}`)
	}
	// It is shut now, so all streams are to be cancelled, and refused when they come back.
	end := time.Now().Add(g.patience)
	for _, w := range g.watches {
		if !poll(time.Until(end), func() bool { return w.refused.Load() == g.shut.Load() }) {
			w.stays.Store(true)
		}
	}
	stop()
	done.Wait()
	events, cancels := g.told()
	t.Logf("shut %d times; %d events, of which %d cancel", g.shut.Load(), events, cancels)
}

// problems returns what streams must not have been told, and which were told too little.
func (g *gate) problems() (list []string) {
	for _, w := range g.watches {
		for _, problem := range w.problems {
			list = append(list, w.url+": "+problem)
		}
		if w.stays.Load() {
			list = append(list, w.url+": it goes on although it was shut")
		}
	}
	return list
}

// told returns how many events watches were told, and how many of them cancel.
func (g *gate) told() (events, cancels int64) {
	for _, w := range g.watches {
		events, cancels = events+w.events.Load(), cancels+w.cancels.Load()
	}
	return events, cancels
}

// isLittle reports whether too little was told to prove anything: each stream has
// a first event and is cancelled, and some are to be told more.
func (g *gate) isLittle() bool {
	events, cancels := g.told()
	return cancels < 10 || events < 2*cancels+20
}

// A gateWatch streams a location whenever it may.
type gateWatch struct {
	gate            *gate
	url             string
	client          *http.Client
	id              string
	events, cancels atomic.Int64
	refused         atomic.Int64 // how often it was shut before the last stream that was refused
	stays           atomic.Bool  // it was not cancelled in the end
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
	shut := w.gate.shut.Load()
	answer, err := w.client.Do(req)
	if err != nil {
		return // the end of the test
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		w.refused.Store(shut)
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
			if w.gate.sent.Load() == shut {
				w.problems = append(w.problems, "it was cancelled although all writes that shut it were answered before it began")
			}
		}
		if m.id != "" {
			w.id = m.id
		}
		if strings.Contains(m.data, "secret") {
			w.problems = append(w.problems, fmt.Sprintf("it was told %v", m))
		}
	}
}
