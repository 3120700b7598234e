//go:build !no_cluster && unix

package etcdlog_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/proof"
)

var kills = flag.Int("kills", 0, "how often one of three processes is killed under load")

// childVariable holds the options of a member that the test binary runs as, instead of tests.
const childVariable = "LIVETREE_TEST_MEMBER"

type childOptions struct {
	Dir, Peer string
	Members   []string
	Founds    bool
}

// TestMain turns the test binary into a member that may be killed.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(childVariable); ok {
		if err := runChild(text, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	proof.SideBySide(4)
	os.Exit(m.Run())
}

// runChild runs a member that does what lines ask for, one answer each, until there are no more.
func runChild(text string, in io.Reader, out io.Writer) error {
	var c childOptions
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	o := etcdlog.Options{Dir: c.Dir, Peer: c.Peer, Listen: "127.0.0.1:0", Cluster: "killed", Members: c.Members, Founds: c.Founds}
	o.Fatal = func(text string) {
		fmt.Fprintln(os.Stderr, text)
		os.Exit(74)
	}
	m, err := etcdlog.Start(o)
	for i := 0; err != nil && i < 100; i++ {
		_ = pause.For(context.Background(), 100*time.Millisecond)
		m, err = etcdlog.Start(o)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, m.Addr())
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		fmt.Fprintln(out, answer(ctx, m, verb, rest))
		cancel()
	}
	return nil
}

// answer does what a line asks for.
func answer(ctx context.Context, m etcdlog.Member, verb, rest string) string {
	var err error
	switch verb {
	case "add":
		_, err = m.AddLearner(ctx, rest)
	case "promote":
		var peers []etcdlog.Peer
		peers, err = m.Peers(ctx)
		for _, p := range peers {
			if !p.Voter {
				err = errors.Join(err, m.Promote(ctx, p.ID))
			}
		}
	case "write":
		return write(ctx, m, rest)
	case "read":
		return read(ctx, m)
	}
	if err != nil {
		return "failed " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return "ok"
}

func write(ctx context.Context, m etcdlog.Member, token string) string {
	heads, err := m.Heads(ctx)
	if err != nil {
		return "never"
	}
	r := record.Record{Kind: record.Control, Origin: record.Origin{Node: record.NodeID(m.ID()), Number: rand.Uint64()}, Previous: heads[0].Digest, Effect: []byte(token)}
	encoded, err := r.Encode()
	if err != nil {
		return "failed " + err.Error()
	}
	_, err = shard.Settle(ctx, m, 0, heads[0], heads[0].After(1, encoded), encoded)
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, shard.ErrStale):
		return "never"
	}
	return "unknown"
}

// read returns all tokens, or why it has not all.
func read(ctx context.Context, m etcdlog.Member) string {
	heads, err := m.Heads(ctx)
	if err != nil {
		return "failed " + err.Error()
	}
	var tokens []string
	var at shard.Head
	for at.Number < heads[0].Number {
		page, err := m.Page(ctx, 0, at.Number+1)
		if err != nil {
			return "failed " + err.Error()
		}
		for _, e := range page.Entries {
			r, err := record.Decode(e.Record)
			if err != nil || r.Previous != at.Digest || e.Number != at.Number+1 {
				return fmt.Sprintf("failed at record %d after %d: %v", e.Number, at.Number, err)
			}
			at = at.After(1, e.Record)
			tokens = append(tokens, string(r.Effect))
		}
	}
	return strings.Join(tokens, " ")
}

// A child is a process with one member.
type child struct {
	mu      sync.Mutex // one line at a time
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// ask returns the answer to a line, or an error if the process has ended.
func (c *child) ask(line string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return "", err
	}
	text, err := c.out.ReadString('\n')
	return strings.TrimSpace(text), err
}

func startChild(t *testing.T, dir string, f *front, list []string, founds bool) *child {
	t.Helper()
	text, err := json.Marshal(childOptions{dir, f.addr(), list, founds})
	if err != nil {
		t.Fatal(err)
	}
	c := &child{command: exec.Command(os.Args[0])}
	c.command.Env = append(os.Environ(), childVariable+"="+string(text))
	c.command.Stderr = t.Output()
	if c.in, err = c.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// ready waits until the member listens, and has its front lead there.
func (c *child) ready(t *testing.T, f *front) {
	t.Helper()
	addr, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("a member does not start: %v", err)
	}
	f.lead(strings.TrimSpace(addr))
}

// TestKilledProcesses kills processes under load. What was acknowledged is there, once, and what never was is not.
func TestKilledProcesses(t *testing.T) {
	if *kills == 0 {
		t.Skip("kills processes for a while: -kills 20")
	}
	dir, seed := t.TempDir(), rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	var children [3]*child
	var fronts [3]*front
	var list []string
	until := (&members{t: t}).until
	for i := range fronts {
		fronts[i] = newFront(t)
		list = append(list, fronts[i].addr())
		if i > 0 {
			until("a learner is added", func(context.Context) error { return want(children[0], "add "+list[i]) })
		}
		children[i] = startChild(t, filepath.Join(dir, fmt.Sprint(i)), fronts[i], list, i == 0)
		children[i].ready(t, fronts[i])
	}
	until("all vote", func(context.Context) error { return want(children[0], "promote") })

	var mu sync.Mutex // over children and fates
	fates := map[string]string{}
	over, end := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 6 {
		writers.Go(func() {
			for i := 0; over.Err() == nil; i++ {
				token := fmt.Sprintf("%d.%d", w, i)
				mu.Lock()
				c := children[w%3]
				mu.Unlock()
				text, err := c.ask("write " + token)
				if err != nil {
					text = "unknown"
					_ = pause.For(over, 20*time.Millisecond)
				}
				mu.Lock()
				fates[token] = text
				mu.Unlock()
			}
		})
	}
	for range *kills {
		_ = pause.For(over, time.Duration(300+r.IntN(900))*time.Millisecond)
		i := r.IntN(3)
		c := children[i]
		fronts[i].lead("")
		_ = c.command.Process.Kill()
		_ = c.command.Wait()
		again := startChild(t, filepath.Join(dir, fmt.Sprint(i)), fronts[i], list, false)
		again.ready(t, fronts[i])
		mu.Lock()
		children[i] = again
		mu.Unlock()
	}
	end()
	writers.Wait()
	counts := map[string]int{}
	for _, c := range children {
		checkTokens(t, seed, c, fates, until)
	}
	for _, c := range children {
		_ = c.in.Close()
		_ = c.command.Wait()
	}
	for _, fate := range fates {
		counts[fate]++
	}
	t.Logf("seed %d, %d kills: %v", seed, *kills, counts)
	if counts["ok"] == 0 {
		t.Error("nothing was written")
	}
}

// want asks, and returns any answer but ok as an error.
func want(c *child, line string) error {
	text, err := c.ask(line)
	if err == nil && text != "ok" {
		err = errors.New(text)
	}
	return err
}

// checkTokens holds what a member has against what writers were told.
func checkTokens(t *testing.T, seed uint64, c *child, fates map[string]string, until func(string, func(context.Context) error)) {
	t.Helper()
	var text string
	until("a member has everything", func(context.Context) (err error) {
		text, err = c.ask("read")
		if strings.HasPrefix(text, "failed") {
			err = errors.New(text)
		}
		return err
	})
	there := map[string]int{}
	for _, token := range strings.Fields(text) {
		there[token]++
	}
	for token := range maps.Keys(fates) {
		switch n := there[token]; {
		case n > 1:
			t.Errorf("seed %d: %s was written %d times", seed, token, n)
		case fates[token] == "ok" && n == 0:
			t.Errorf("seed %d: %s was acknowledged, and is lost", seed, token)
		case fates[token] == "never" && n > 0:
			t.Errorf("seed %d: %s never was, and is there", seed, token)
		}
	}
}
