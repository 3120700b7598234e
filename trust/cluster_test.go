//go:build unix

package trust_test

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
)

var drills = flag.Int("drills", 0, "how many rounds each drill of a cluster has, in units of some seconds; 0 leaves them out but for a short one")

// drill skips a test that was not asked for, and returns how many rounds it has.
func drill(t *testing.T, each int) int {
	t.Helper()
	if *drills == 0 {
		t.Skip("it takes minutes; ask for it with -drills, or make cluster")
	}
	return each * *drills
}

// A cluster is three processes with the same databases.
type cluster struct {
	nodes []*process
	addrs []string // by which the nodes reach each other
	sight *sightings
}

// startCluster runs a cluster of empty nodes until the test ends. Flags are for all nodes.
func startCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	c := &cluster{addrs: freeaddr.List(t, 3), sight: &sightings{}}
	c.makeNodes(t, c.addrs, flags)
	if err := c.each(func(p *process) error { return p.start() }); err != nil {
		t.Fatal(err)
	}
	return c
}

// makeNodes prepares the processes and starts none. A node listens at an address of its own, which may differ from the one
// by which others reach it.
func (c *cluster) makeNodes(t *testing.T, listen, flags []string) {
	t.Helper()
	dir := t.TempDir()
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, addr := range c.addrs {
		p := &process{dir: filepath.Join(dir, fmt.Sprintf("node%d", i+1))}
		p.flags = append([]string{
			"--admin-addr", "127.0.0.1:0", "--drain-requests", "6s",
			"--cluster", strings.Join(c.addrs, ","), "--cluster-addr", addr, "--cluster-listen", listen[i], "--cluster-key", keyFile,
		}, flags...)
		p.watchOver(t)
		c.nodes = append(c.nodes, p)
	}
}

// each does something to all nodes at once.
func (c *cluster) each(do func(*process) error) error {
	var all sync.WaitGroup
	errs := make([]error, len(c.nodes))
	for i, p := range c.nodes {
		all.Go(func() { errs[i] = do(p) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("node %d: %w", i+1, err)
		}
	}
	return nil
}

// client returns a client of one node, whose answers are noted.
func (c *cluster) client(t *testing.T, node, major int) *client {
	t.Helper()
	made := newClient(t, c.nodes[node], major)
	made.http.Transport = &notedTransport{inner: made.http.Transport, node: node, sight: c.sight}
	return made
}

// create makes a database that is open to all, through a node.
func (c *cluster) create(node int, name string) error {
	p := c.nodes[node]
	if err := p.ask("POST", "/v1/databases", fmt.Sprintf(`{"name":%q}`, name), nil); err != nil {
		return err
	}
	return c.openRules(node, name)
}

// openRules lets everybody read and write a database.
func (c *cluster) openRules(node int, name string) error {
	return c.nodes[node].ask("PUT", "/v1/databases/"+name+"/data/.settings/rules.json", `{"rules":{".read":true,".write":true}}`, nil)
}

// ask sends a request to the admin listener of a process.
func (p *process) ask(method, path, body string, into any) error {
	addr, err := os.ReadFile(filepath.Join(p.dir, "admin", "addr"))
	if err != nil {
		return err
	}
	token, err := os.ReadFile(filepath.Join(p.dir, "admin", "token"))
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, strings.TrimSpace(string(addr))+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return &refusal{answer.StatusCode, fmt.Sprintf("%s %s of the admin listener = %s %s", method, path, answer.Status, said)}
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// A refusal is an answer of the admin listener that is none of 2xx.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// A clusterStatus is what a drill reads of the status of a cluster.
type clusterStatus struct {
	Level  int
	Quorum bool
	Nodes  []struct {
		Node, State string
		Voter       bool
	}
	Shards []struct {
		Leader   string
		Term     uint64
		Replicas []struct{ Node, Digest, State string }
	}
	Problems []string
}

// status asks a node how the cluster is.
func (c *cluster) status(node int) (s clusterStatus, err error) {
	file, err := command.File()
	if err != nil {
		return s, err
	}
	out, err := exec.Command(file, "cluster", "status", "--json", "--data", c.nodes[node].dir).Output()
	if err != nil {
		return s, fmt.Errorf("cluster status: %w", err)
	}
	return s, json.Unmarshal(out, &s)
}

// home returns the node that judges the writes to shard 0.
func (c *cluster) home() (int, error) {
	for node := range c.nodes {
		s, err := c.status(node)
		if err != nil || len(s.Shards) == 0 {
			continue
		}
		for i, addr := range c.addrs {
			if addr == s.Shards[0].Leader {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("no node says which one is the home of shard 0")
}

// equal waits until all nodes have the same of a database, each of its own, and returns how they differ if they do not.
func (c *cluster) equal(clients []*client, database string) error {
	read := request{method: "GET", target: target(database, nil, false, "format=export", "consistency=local")}
	deadline := time.Now().Add(patience / 6)
	for {
		var texts []string
		for i, from := range clients {
			a, _, err := from.send(read)
			if err != nil || a.status != http.StatusOK {
				return fmt.Errorf("node %d: %s = %d %s, %w", i+1, read, a.status, a.body, err)
			}
			texts = append(texts, a.body)
		}
		other := -1
		for i := range texts {
			if texts[i] != texts[0] {
				other = i
			}
		}
		switch {
		case other < 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s: node 1 and node %d differ: %s", database, other+1, firstOther(texts[0], texts[other]))
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // what was acknowledged elsewhere is on its way
	}
}

// Sightings are the answers that clients of a cluster have got.
type sightings struct {
	mu     sync.Mutex
	acks   []time.Time // of writes, in order
	errors []sighting  // 5xx, and no answer at all
}

type sighting struct {
	at   time.Time
	node int
	text string
}

// longest returns the longest time without an acknowledged write since a moment.
func (s *sightings) longest(since time.Time) (pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := since
	for _, at := range s.acks {
		if at.After(last) {
			pause, last = max(pause, at.Sub(last)), at
		}
	}
	return max(pause, time.Since(last))
}

// since returns what went wrong at nodes other than one, since a moment.
func (s *sightings) since(begin time.Time, except int) (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.errors {
		if e.node != except && e.at.After(begin) {
			texts = append(texts, fmt.Sprintf("node %d, after %.2f s: %s", e.node+1, e.at.Sub(begin).Seconds(), e.text))
		}
	}
	return texts
}

// forget leaves out what was long ago.
func (s *sightings) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acks, s.errors = nil, nil
}

// A notedTransport notes the answers of a node.
type notedTransport struct {
	inner http.RoundTripper
	node  int
	sight *sightings
}

// RoundTrip implements http.RoundTripper.
func (n *notedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	answer, err := n.inner.RoundTrip(r)
	n.sight.mu.Lock()
	defer n.sight.mu.Unlock()
	took := fmt.Sprintf("%s %s, %.2f s: ", r.Method, r.URL.RequestURI(), time.Since(began).Seconds())
	switch {
	case err != nil:
		n.sight.errors = append(n.sight.errors, sighting{time.Now(), n.node, took + err.Error()})
	case answer.StatusCode >= 500:
		n.sight.errors = append(n.sight.errors, sighting{time.Now(), n.node, took + answer.Status})
	case answer.StatusCode == http.StatusOK && r.Method != http.MethodGet:
		n.sight.acks = append(n.sight.acks, time.Now())
	}
	return answer, err
}
