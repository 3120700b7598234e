//go:build unix

package trust_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/proof"
)

// A variant is a way to run a sequence of requests, which must not show in the
// answers.
type variant struct {
	name     string
	major    int // version of HTTP
	flags    []string
	restarts int  // in how many of a hundred requests the server is started anew before
	isPretty bool // reads ask for pretty answers, which are made compact again
	// dial returns the client, in the test of the test.
	dial func(p *process) *client
}

var variants = []variant{
	{name: "HTTP/1.1", major: 1},
	{name: "HTTP/1.1 without the lane", major: 1, flags: []string{"--lane=false"}},
	{name: "HTTP/2", major: 2},
	{name: "restarts", major: 1, restarts: 3},
	{name: "small cache", major: 1, flags: []string{"--cache", "1MiB", "--log-keep", "1s,64KiB"}},
	{name: "large cache", major: 2, flags: []string{"--cache", "256MiB", "--access-log"}},
	{name: "pretty answers", major: 2, isPretty: true},
}

// TestVariants sends the same requests in several ways and compares the answers to
// the byte.
func TestVariants(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for i := range rounds(1, 20, 200) {
		rng := newRand(n, i)
		dir, sequence := founded(t), randomSequence(t, rng, length(100, 1000, 1000))
		var want []string
		requests := 0
		for _, v := range variants {
			got := v.run(t, copied(t, dir), sequence, newRand(n, i))
			if want == nil {
				want = got
			}
			if difference := firstDifference(sequence, want, got); difference != "" {
				t.Fatalf("%s: %s", v.name, difference)
			}
			requests += len(sequence)
		}
		figures.Report(t, "variants", proof.Count("sequences", 1), proof.Count("requests", requests), proof.Count("differences", 0))
	}
}

// randomSequence returns requests of a user and of the owner.
func randomSequence(t *testing.T, rng *rand.Rand, count int) []request {
	t.Helper()
	token := tokenOf(t, "u")
	sequence := make([]request, count)
	for k := range sequence {
		sequence[k] = randomQuestion(rng, pick(rng, token, token, secret))
		if sequence[k].method == "POST" {
			sequence[k].method = "PUT" // generated keys differ by themselves
		}
	}
	return sequence
}

// run returns the answers of one variant, and last an export of the tree before
// and after it was wiped and imported again.
func (v variant) run(t *testing.T, dir string, sequence []request, rng *rand.Rand) []string {
	t.Helper()
	p := startProcessOn(t, dir, v.flags...)
	defer p.kill()
	c := newClient(t, p, max(v.major, 1))
	if v.dial != nil {
		c = v.dial(p)
	}
	var answers []string
	for _, r := range sequence {
		if rng.IntN(100) < v.restarts {
			end := pick(rng, p.terminate, func() error { p.kill(); return nil })
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if err := p.start(); err != nil {
				t.Fatal(err)
			}
			c.http.CloseIdleConnections()
		}
		a, err := v.send(c, r)
		if err != nil {
			t.Fatalf("%s: %s: %v", v.name, r, err)
		}
		answers = append(answers, seenBy(r, a))
	}
	root := "/.json?format=export&auth=" + secret
	export := c.must(t, request{method: "GET", target: root, header: []string{"X-Firebase-ETag", "true"}})
	c.must(t, request{method: "DELETE", target: "/.json?auth=" + secret})
	c.must(t, request{method: "PUT", target: "/.json?auth=" + secret, body: export.body})
	again := c.must(t, request{method: "GET", target: root, header: []string{"X-Firebase-ETag", "true"}})
	if export.body != again.body || export.header.Get("ETag") != again.header.Get("ETag") {
		t.Errorf("%s: what was exported is\n%s\nand after an import\n%s", v.name, export.body, again.body)
	}
	return append(answers, pushKey.ReplaceAllString(export.body, "<key>"))
}

// send sends a request in the way of the variant.
func (v variant) send(c *client, r request) (answer, error) {
	isPretty := v.isPretty && r.method == "GET"
	for _, other := range []string{"print=", "callback=", "shallow="} {
		isPretty = isPretty && !strings.Contains(r.target, other)
	}
	if isPretty {
		r.target += "&print=pretty"
	}
	a, _, err := c.send(r)
	a.header.Del("Vary") // it tells whether the length was known in advance
	if err != nil || !isPretty || a.status != http.StatusOK {
		return a, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(a.body)); err != nil {
		return a, err
	}
	a.body = compact.String()
	a.header.Set("Content-Length", strconv.Itoa(compact.Len()))
	return a, nil
}

// firstDifference says where two runs of a sequence part.
func firstDifference(sequence []request, want, got []string) string {
	for k := range want {
		if want[k] == got[k] {
			continue
		}
		what := "the tree at the end"
		if k < len(sequence) {
			what = sequence[k].String()
		}
		return fmt.Sprintf("request %d, %s:\n%s\nwas\n%s", k, what, got[k], want[k])
	}
	return ""
}
