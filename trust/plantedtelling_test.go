//go:build unix

package trust_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestTwinsFindBugs shows that a difference of one byte, in one header of one
// twin, is noticed.
func TestTwinsFindBugs(t *testing.T) {
	t.Parallel()
	for _, f := range []bug{
		{name: "tells the size of what is denied in a header", change: func(r *http.Response) error {
			if r.StatusCode == http.StatusForbidden && strings.HasPrefix(r.Request.URL.Path, "/hidden") {
				r.Header.Set("X-Cost", "2")
			}
			return nil
		}},
		{name: "answers what is not there otherwise than what is denied", change: func(r *http.Response) error {
			if r.StatusCode == http.StatusForbidden && r.Request.URL.Path == "/mine/v/k.json" {
				r.StatusCode = http.StatusNotFound
			}
			return nil
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := startProcessOn(t, founded(t))
			w := newTwins(t, plant(t, p, bug{}), plant(t, p, f), 1)
			for w.requests < 5000 && len(w.differences) == 0 {
				r := randomQuestion(w.rng, w.token)
				if r.method != "GET" {
					continue // the two are one server here
				}
				w.compareQuietly(r)
			}
			if len(w.differences) == 0 {
				t.Error("nothing was found in 5000 requests")
			}
		})
	}
}

// TestVariantsFindBugs shows that a variant is noticed which answers otherwise, or
// does.
func TestVariantsFindBugs(t *testing.T) {
	t.Parallel()
	dir, sequence := founded(t), randomSequence(t, newRand(1, 0), 60)
	want := variants[0].run(t, copied(t, dir), sequence, newRand(1, 0))
	for _, f := range []struct {
		bug
		every int64
	}{
		{bug{name: "another status"}, 3}, {bug{name: "another ETag"}, 5}, {bug{name: "another body"}, 5}, {bug{name: "a write that is lost"}, 10},
	} {
		t.Run(f.name, func(t *testing.T) {
			isTurn := every(f.every)
			f.change = func(r *http.Response) error {
				isExport := strings.Contains(r.Request.URL.RawQuery, "format=export&auth="+secret)
				switch {
				case isExport:
				case f.name == "another status" && r.StatusCode == http.StatusForbidden && isTurn():
					r.StatusCode = http.StatusNotFound
				case f.name == "another ETag" && r.Header.Get("ETag") != "" && isTurn():
					r.Header["Etag"] = []string{"other"}
				case f.name == "another body" && r.Request.Method == "GET" && r.StatusCode == http.StatusOK && isTurn():
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader("0")), 1
					r.Header.Set("Content-Length", "1")
				}
				return nil
			}
			f.meet = func(w http.ResponseWriter, r *http.Request) bool {
				if f.name != "a write that is lost" || r.Method != "PUT" || r.URL.Path == "/.json" || !isTurn() {
					return false
				}
				_, _ = io.Copy(w, r.Body)
				return true
			}
			v := variant{name: f.name, dial: func(p *process) *client { return plant(t, p, f.bug) }}
			if firstDifference(sequence, want, v.run(t, copied(t, dir), sequence, newRand(1, 0))) == "" {
				t.Error("nothing was found")
			}
		})
	}
	same := variant{name: "none", dial: func(p *process) *client { return plant(t, p, bug{}) }}
	if difference := firstDifference(sequence, want, same.run(t, copied(t, dir), sequence, newRand(1, 0))); difference != "" {
		t.Errorf("without a bug: %s", difference)
	}
}

// TestRacesFindBugs shows that a second winner is noticed.
func TestRacesFindBugs(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	newClient(t, p, 1).must(t, request{method: "PUT", target: "/.settings/rules.json?auth=" + secret, body: raceRules})
	second := every(10)
	c := plant(t, p, bug{name: "tells one who was denied that he won", change: func(r *http.Response) error {
		if r.StatusCode == http.StatusForbidden && second() {
			r.StatusCode = http.StatusOK
		}
		return nil
	}})
	won := race(t, []*client{c}, func(int) request { return request{method: "PUT", target: "/once/1.json", body: "1"} })
	if won < 2 {
		t.Errorf("%d clients won, want that others are counted, too", won)
	}
}

// TestMarkersFindBugs shows that a secret in a log is found, as it is or encoded.
func TestMarkersFindBugs(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	credentials := markers(t)
	for _, f := range []struct{ name, format string }{
		{"logs the target", "%s"}, {"logs the target in hexadecimal", "%x"},
	} {
		t.Run(f.name, func(t *testing.T) {
			var log text
			c := plant(t, p, bug{meet: func(_ http.ResponseWriter, r *http.Request) bool {
				fmt.Fprintf(&log, "request "+f.format+"\n", r.URL.RequestURI())
				return false
			}})
			sendMarkers(t, c, credentials[:1], places{})
			if found := (places{"the log": log.String()}).search(credentials); len(found) == 0 {
				t.Error("nothing was found")
			}
		})
	}
	if found := (places{"the log": "nothing to see"}).search(credentials); len(found) > 0 {
		t.Errorf("found in a clean log: %q", found)
	}
}

// TestHostileClientsFindBugs shows that it is noticed when attackers shut out an
// ordinary client: here by a server that takes few connections.
func TestHostileClientsFindBugs(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--dev", "--max-connections", "20")
	trusted, err := p.trusted()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attacks {
		if a.name != "idle connections" {
			continue
		}
		// The ordinary client comes last: if it had a connection it would keep it.
		s := a.besiege(&hostile{addr: p.address(), trusted: trusted}, 60)
		s.opening.Wait()
		if _, problem := work(newClient(t, p, 1), a.name); problem == "" {
			t.Error("an ordinary client was shut out, and nothing was found")
		}
		s.end()
		return
	}
	t.Error("there is no such attack")
}

// TestOutgoingFindsBugs shows that an outgoing connection is seen, by looking at
// this process while it has one.
func TestOutgoingFindsBugs(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	found, err := outgoing(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	want := conn.LocalAddr().String() + " to " + conn.RemoteAddr().String()
	if !strings.Contains(strings.Join(found, "\n"), want) {
		t.Errorf("outgoing connections are %q, want also %s", found, want)
	}
}
