//go:build unix && !no_cluster

package passon_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/wiretest"
)

// These tests run three nodes as processes, on this machine, and talk to them as SDKs do.

const secret = "pAsSoNpAsSoNpAsSoNpAsSoNpAsSoNpAsSoNpAsS"

// patience is how long anything is waited for. It is no measure of speed: the machine may be busy.
const patience = 2 * time.Minute

var command = proof.NewCommand()

func TestMain(m *testing.M) { os.Exit(command.Run(m)) }

// A node is a process.
type node struct {
	t         *testing.T
	dir, addr string // of the clients
	peer      string
	flags     []string
	cmd       *exec.Cmd
	out       output
	waited    chan error
	file      string
}

// output is what a process says.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) has(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.text.String(), text)
}

func (o *output) count(text string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Count(o.text.String(), text)
}

// startCluster starts three nodes, and returns them with the home of the default database first.
func startCluster(t *testing.T) []*node {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the command and runs three processes")
	}
	file, err := command.File()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var key [32]byte
	_, _ = rand.Read(key[:])
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, []byte(hex.EncodeToString(key[:])+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := make([]*node, 3)
	var peers []string
	for i := range nodes {
		nodes[i] = &node{t: t, file: file, dir: filepath.Join(dir, fmt.Sprint(i)), addr: freeaddr.One(t), peer: freeaddr.One(t)}
		peers = append(peers, nodes[i].peer)
	}
	for _, n := range nodes {
		n.flags = []string{
			"serve", "--data", n.dir, "--addr", n.addr, "--admin-addr", "", "--allow-http", "--log-level", "DEBUG",
			"--cluster", strings.Join(peers, ","), "--cluster-addr", n.peer, "--cluster-key", keyFile,
		}
		n.start()
	}
	t.Cleanup(func() {
		for _, n := range nodes {
			n.kill()
			if t.Failed() {
				t.Logf("node %s says:\n%s", n.addr, tail(n.out.text.String()))
			}
		}
	})
	for _, n := range nodes {
		n.await("the node listens", func() bool { return n.out.has("listening on") })
	}
	settle(t, nodes)
	slices.SortFunc(nodes, func(a, b *node) int { return b.tenure() - a.tenure() })
	return nodes
}

// settle returns when the home has not changed for a while: nodes that start one after the other take it from each other, and nothing says
// which one is the last.
func settle(t *testing.T, nodes []*node) {
	t.Helper()
	const rounds = 200 // of 10 ms
	last, same := 0, 0
	nodes[0].await("the home is settled", func() bool {
		newest := 0
		for _, n := range nodes {
			newest = max(newest, n.tenure())
		}
		if same++; newest != last {
			last, same = newest, 0
		}
		return same > rounds
	})
}

func tail(text string) string { return text[max(0, len(text)-6000):] }

func (n *node) start() {
	n.t.Helper()
	n.cmd = exec.Command(n.file, n.flags...)
	n.cmd.Env = append(os.Environ(), "LIVETREE_SECRET="+secret)
	n.cmd.Stdout, n.cmd.Stderr = &n.out, &n.out
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.waited = make(chan error, 1)
	go func() { n.waited <- n.cmd.Wait() }()
}

func (n *node) kill() {
	if n.cmd != nil {
		_ = n.cmd.Process.Kill()
		<-n.waited
		n.cmd = nil
	}
}

// tenure returns the newest one in which the node has become the home of the first shard, as its log says; 0 for none.
func (n *node) tenure() (newest int) {
	n.out.mu.Lock()
	defer n.out.mu.Unlock()
	for _, line := range strings.Split(n.out.text.String(), "\n") {
		if _, rest, ok := strings.Cut(line, `"this node is home of a shard","shard":0,"tenure":`); ok {
			_, _ = fmt.Sscan(strings.TrimSuffix(rest, "}"), &newest)
		}
	}
	return newest
}

func (n *node) await(what string, holds func() bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	for !holds() {
		if pause.For(ctx, 10*time.Millisecond) != nil {
			n.t.Fatalf("%s: waited in vain", what)
		}
	}
}

// awaitValue waits until a node shows a value.
func (n *node) awaitValue(path, want string) {
	n.t.Helper()
	got := ""
	n.await(path+" is "+want, func() bool {
		response, err := http.Get("http://" + n.addr + path + ".json?auth=" + secret)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		got = strings.TrimSpace(string(body))
		return err == nil && got == want
	})
}

// connect opens a session by a node, as soon as it can be, and logs in. The session of before ends.
func (n *node) connect(before string) (c *wiretest.Client, session string) {
	n.t.Helper()
	n.await("a session is opened", func() bool {
		var err error
		c, err = wiretest.Try(n.t, wiretest.Dialing{Address: n.addr, Target: "/.ws?v=5&ns=default&ls=" + before})
		var refused *wiretest.Refused
		if errors.As(err, &refused) && refused.Status != http.StatusServiceUnavailable {
			n.t.Fatalf("a session is refused: %v", err)
		}
		return err == nil
	})
	session = c.Hello()
	ask(n.t, c, "auth", fmt.Sprintf(`{"cred":%q}`, secret))
	return c, session
}

// ask asks, and wants that it is done.
func ask(t *testing.T, c *wiretest.Client, action, body string) {
	t.Helper()
	if _, status, d := c.Ask(action, body); status != "ok" {
		t.Fatalf("%s %s: %s %s", action, body, status, d)
	}
}

// awaitEnd returns when the session has ended.
func awaitEnd(t *testing.T, c *wiretest.Client) {
	t.Helper()
	var late net.Error
	if text, err := c.NextOrEnd(); err == nil || errors.As(err, &late) && late.Timeout() {
		t.Fatalf("a session goes on that is to end: %q, %v", text, err)
	}
}

// TestSessionsThroughEveryNode: writes, listens, transactions and what is left work at whichever node a client comes to.
func TestSessionsThroughEveryNode(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	listener, _ := nodes[2].connect("")
	ask(t, listener, "q", `{"p":"/shared","h":""}`)
	for i, n := range nodes {
		c, _ := n.connect("")
		ask(t, c, "p", fmt.Sprintf(`{"p":"/shared/%d","d":%d}`, i, i))
		listener.Expect(fmt.Sprintf(`{"t":"d","d":{"a":"d","b":{"p":"shared/%d","d":%d}}}`, i, i))
		if _, status, _ := c.Ask("p", fmt.Sprintf(`{"p":"/shared/%d","d":7,"h":"wrong"}`, i)); status != "datastale" {
			t.Errorf("a transaction on data that has changed: %s, want datastale", status)
		}
		ask(t, c, "o", fmt.Sprintf(`{"p":"/left/%d","d":{".sv":{"increment":1}}}`, i))
		c.Conn().Close()
		for _, other := range nodes {
			other.awaitValue(fmt.Sprintf("/left/%d", i), "1")
		}
	}
}

// TestPollsAreAnsweredByTheHome: long polling goes by a node that is not the home.
func TestPollsAreAnsweredByTheHome(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	p := wiretest.Poll(t, wiretest.Over(&http.Client{}, "http://"+nodes[1].addr), "&ns=default", "")
	if hello, err := p.Next(); err != nil || !strings.Contains(hello, `"t":"h"`) {
		t.Fatalf("the first message is %q, %v", hello, err)
	}
	p.Send(fmt.Sprintf(`{"t":"d","d":{"r":1,"a":"auth","b":{"cred":%q}}}`, secret))
	if said, err := p.Next(); err != nil || !strings.Contains(said, `"s":"ok"`) {
		t.Fatalf("the login is answered with %q, %v", said, err)
	}
	p.Send(`{"t":"d","d":{"r":2,"a":"p","b":{"p":"/polled","d":"yes"}}}`)
	p.Expect(`{"t":"d","d":{"r":2,"b":{"s":"ok","d":""}}}`)
	nodes[2].awaitValue("/polled", `"yes"`)
	p.Stop()
}

// TestHomeDies: clients come back by another node, and what they had left was written once, by the new home. Then the old home comes back.
func TestHomeDies(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	home, others := nodes[0], nodes[1:]
	c, session := others[0].connect("")
	ask(t, c, "o", `{"p":"/died","d":{".sv":{"increment":1}}}`)
	ask(t, c, "p", `{"p":"/before","d":1}`)
	home.kill()
	awaitEnd(t, c)
	c, _ = others[1].connect(session)
	ask(t, c, "p", `{"p":"/after","d":2}`)
	for _, n := range others {
		n.awaitValue("/died", "1")
		n.awaitValue("/before", "1")
		n.awaitValue("/after", "2")
	}
	ask(t, c, "o", `{"p":"/died","d":{".sv":{"increment":1}}}`)
	listening := home.out.count("listening on")
	home.start()
	home.await("the home is back", func() bool { return home.out.count("listening on") > listening })
	c.Conn().Close()
	home.awaitValue("/died", "2")
}

// TestNodeThatPassesOnDies: the home notices, and writes what the client has left.
func TestNodeThatPassesOnDies(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	c, session := nodes[1].connect("")
	ask(t, c, "o", `{"p":"/gone","d":{".sv":{"increment":1}}}`)
	nodes[1].kill()
	nodes[0].awaitValue("/gone", "1")
	c, _ = nodes[2].connect(session)
	ask(t, c, "p", `{"p":"/back","d":true}`)
	nodes[0].awaitValue("/gone", "1")
}

// TestHomeIsGivenAway: a home that stops in order gives its shards away first. Its sessions end, and their clients go on elsewhere.
func TestHomeIsGivenAway(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	var clients []*wiretest.Client
	var sessions []string
	for i, n := range nodes {
		c, session := n.connect("")
		ask(t, c, "o", fmt.Sprintf(`{"p":"/moved/%d","d":{".sv":{"increment":1}}}`, i))
		clients, sessions = append(clients, c), append(sessions, session)
	}
	if err := nodes[0].cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for i, c := range clients {
		awaitEnd(t, c)
		again, _ := nodes[1+i%2].connect(sessions[i])
		ask(t, again, "p", fmt.Sprintf(`{"p":"/again/%d","d":true}`, i))
	}
	for i := range clients {
		nodes[1].awaitValue(fmt.Sprintf("/moved/%d", i), "1")
	}
	nodes[2].awaitValue("/again", "[true,true,true]")
}
