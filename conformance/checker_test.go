package conformance_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

// A trial is a server with writers and watchers, and things that go wrong.
type trial struct {
	server   *process
	writers  int
	duration time.Duration
	kills    bool   // the server is killed and started again
	cuts     bool   // connections of watchers are cut
	through  string // the URL that watchers use in place of the server's, empty for that
	patience time.Duration
}

// TestStreamsOutside holds a server in a process of its own to what streams
// promise, while it is killed and connections are cut.
func TestStreamsOutside(t *testing.T) {
	left := 4 * time.Second
	if *long {
		left = 10 * time.Minute
	}
	if *streamsTime > 0 {
		left = *streamsTime
	}
	// A trial at a time, so that a run which is stopped counts as far as it came. On
	// a busy machine little happens in a short one: then another follows.
	var all trialResult
	for trials := 0; left > 0 || all.isLittle() && trials < 50; trials++ {
		c := trial{server: startProcess(t), writers: 3, duration: min(max(left, 4*time.Second), trialTime), kills: true, cuts: true, patience: patience}
		left -= c.duration
		result := c.run(t)
		c.server.kill()
		for _, problem := range result.problems {
			t.Error(problem)
		}
		all.writes, all.resumed, all.kills = all.writes+result.writes, all.resumed+result.resumed, all.kills+result.kills
		all.renewed += result.renewed
		t.Log(result.summary)
		figures.Report(t, "streams", proof.Count("seconds", int(c.duration.Seconds())), proof.Count("writes", result.writes), proof.Count("kills", result.kills),
			proof.Count("resumed", result.resumed), proof.Count("renewed", result.renewed), proof.Count("problems", len(result.problems)))
	}
	if all.isLittle() {
		t.Errorf("too little happened to prove anything: %d writes, resumed %d times, killed %d times", all.writes, all.resumed, all.kills)
	}
	if all.renewed > all.resumed/10 {
		t.Errorf("streams are told everything anew too often: %d times, and resumed %d times", all.renewed, all.resumed)
	}
}

// isLittle reports whether too little happened to prove anything.
func (r trialResult) isLittle() bool { return r.writes < 100 || r.resumed < 20 || r.kills < 2 }

// trialTime is the longest that one server is tried.
const trialTime = 2 * time.Minute

// TestCheckerFails plants faults between server and watchers, each of which must
// be found.
func TestCheckerFails(t *testing.T) {
	for fault, want := range map[string]string{"none": "", "drop": "went from", "double": "changed nothing", "swap": "comes behind", "cancel": "was cancelled"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			server := startProcess(t)
			proxy := httptest.NewServer(&lossyProxy{server: server.base, client: server.client(1), fault: fault})
			defer proxy.Close()
			defer proxy.CloseClientConnections()
			c := trial{server: server, writers: 2, duration: time.Second, through: proxy.URL, patience: time.Second}
			if fault == "none" {
				c.patience = patience
				if problems := c.run(t).problems; len(problems) > 0 {
					t.Errorf("the checker complains without a reason:\n%s", strings.Join(problems, "\n"))
				}
				return
			}
			// On a busy machine little happens in a second: then another follows.
			var said string
			for range 60 {
				result := c.run(t)
				said += strings.Join(result.problems, "\n") + "\n" + result.summary + "\n"
				if strings.Contains(said, want) {
					return
				}
			}
			t.Errorf("the checker says:\n%s\nwant something that %s", said, want)
		})
	}
}

type trialResult struct {
	problems                        []string
	writes, resumed, renewed, kills int
	summary                         string
}

// run runs the trial to its quiet end.
func (c *trial) run(t *testing.T) trialResult {
	t.Helper()
	client := c.server.client(1)
	base := c.server.base
	rules := `{"rules":{".read":true,".write":true,"d":{".indexOn":["n"]}}}`
	if status, err := send(client, "PUT", base+"/.settings/rules.json?auth="+secret, []byte(rules)); status != http.StatusOK {
		t.Fatalf("the rules: %d, %v", status, err)
	}
	c.awaitIndex(t, client)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	watchers := c.watchers(base)
	var watching, writing sync.WaitGroup
	for _, w := range watchers {
		watching.Go(func() { w.run(ctx) })
	}
	limited, cancel := context.WithTimeout(ctx, c.duration)
	defer cancel()
	var writes atomic.Int64
	for n := range c.writers {
		w := &writer{name: fmt.Sprintf("w%d", n), base: base, client: c.server.client(1 + n%2), rand: rand.New(rand.NewPCG(uint64(n), 1)), writes: &writes}
		writing.Go(func() { w.run(limited) })
	}
	kills := c.disturb(limited, watchers)
	writing.Wait()
	result := trialResult{writes: int(writes.Load()), kills: kills}
	result.problems = c.compare(watchers, client)
	stop()
	watching.Wait()
	for _, w := range watchers {
		result.problems = append(result.problems, w.problems...)
		result.resumed += w.resumed
		result.renewed += w.renewed
	}
	result.summary = fmt.Sprintf("%d writes, %d streams, resumed %d times, the server was killed %d times, told everything anew %d times",
		result.writes, len(watchers), result.resumed, kills, result.renewed)
	return result
}

// indexReady is in the explanation of a query whose index is built.
const indexReady = `"state":"ready"`

// awaitIndex waits until the index is built: its end counts as other rules, and
// streams that come back are told everything anew then.
func (c *trial) awaitIndex(t *testing.T, client *http.Client) {
	t.Helper()
	if !poll(patience, func() bool {
		answer, err := client.Get(c.server.base + `/d.json?orderBy="n"&explain=true&auth=` + secret)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(text), indexReady)
	}) {
		t.Fatal("the index is not built")
	}
}

// watchers returns watchers at several depths, by both versions of HTTP.
func (c *trial) watchers(base string) []*watcher {
	if c.through != "" {
		base = c.through
	}
	var list []*watcher
	for _, at := range []struct {
		target   string
		depth    int
		filtered bool
	}{
		{"/.json?", 0, false},
		{"/d.json?", 0, false},
		{"/d/w0.json?", 1, false},
		{"/d/w1.json?", 1, false},
		{"/d/w0/log.json?", 2, true}, // it does not see every write
		{`/d.json?orderBy="$key"&limitToFirst=2&`, 0, true},
		{`/d.json?orderBy="n"&limitToLast=1&`, 0, true},
		{`/d/w0/log.json?orderBy="$key"&limitToLast=3&`, 2, true},
	} {
		for _, major := range []int{1, 2} {
			w := &watcher{
				name: fmt.Sprintf("%s by HTTP/%d", at.target, major), url: base + at.target + "resume=true",
				depth: at.depth, filtered: at.filtered, client: c.server.client(major), counts: map[string]int{},
			}
			if c.through != "" {
				w.client = &http.Client{Transport: &http.Transport{}}
			}
			list = append(list, w)
		}
	}
	return list
}

// disturb cuts connections and kills the server until ctx ends, and returns how
// often it was killed.
func (c *trial) disturb(ctx context.Context, watchers []*watcher) (kills int) {
	random := rand.New(rand.NewPCG(7, 7))
	started := time.Now()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return kills
		case <-time.After(10 * time.Millisecond):
		}
		if c.cuts {
			watchers[random.IntN(len(watchers))].cutOff()
		}
		if c.kills && time.Since(started) > 600*time.Millisecond {
			kills++
			c.server.kill()
			if err := c.server.start(); err != nil {
				c.server.t.Error(err)
				return kills
			}
			started = time.Now()
		}
	}
	return kills
}

// cutOff ends the current connection.
func (w *watcher) cutOff() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut != nil {
		w.cut()
	}
}

// compare waits until all caches are as the server answers.
func (c *trial) compare(watchers []*watcher, client *http.Client) (problems []string) {
	end := time.Now().Add(c.patience)
	for _, w := range watchers {
		direct := client
		if c.through == "" {
			direct = w.client
		}
		var last error
		equal := poll(time.Until(end), func() (equal bool) {
			equal, last = w.equals(direct)
			return equal
		})
		if !equal {
			problems = append(problems, fmt.Sprintf("%s: the cache is not what is there (%v)", w.name, last))
		}
	}
	return problems
}
