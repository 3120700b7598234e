//go:build !no_cluster

package etcdlog_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// election is short, so that the tests are.
const election = 200 * time.Millisecond

// A front has the address of a member for as long as the test runs, and passes bytes on to where the
// member listens now.
type front struct {
	listener net.Listener
	mu       sync.Mutex
	to       string // "" while the member is stopped
	open     map[net.Conn]bool
}

func newFront(t testing.TB) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{listener: l, open: map[net.Conn]bool{}}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { f.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		f.lead("")
		served.Wait()
	})
	return f
}

func (f *front) addr() string { return f.listener.Addr().String() }

// lead has new connections go to an address, and ends the old ones.
func (f *front) lead(to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = to
	for c := range f.open {
		_ = c.Close()
	}
}

func (f *front) keep(c net.Conn, open bool) (to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if open {
		f.open[c] = true
	} else {
		delete(f.open, c)
		_ = c.Close()
	}
	return f.to
}

func (f *front) pass(c net.Conn) {
	to := f.keep(c, true)
	defer f.keep(c, false)
	if to == "" {
		return
	}
	inner, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	f.keep(inner, true)
	defer f.keep(inner, false)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(c, inner)
		_ = c.Close()
	})
	_, _ = io.Copy(inner, c)
	_ = inner.Close()
	back.Wait()
}

// members are those of one cluster, in this process.
type members struct {
	t     testing.TB
	dir   string
	quota int64
	// election is the time of one, if the test must not see any on a busy machine.
	election time.Duration
	// checkEvery is how often the leader compares what the members have.
	checkEvery time.Duration
	tls        etcdlog.TLS
	fronts     []*front
	wrap       func(shard.Log) shard.Log

	mu    sync.Mutex
	lives []life
}

// life is that of a member from its start to its end.
type life struct {
	etcdlog.Member
	ctx context.Context
	end context.CancelFunc
}

// found starts a cluster: one founds it, the others join as learners, and then get their votes.
func found(t testing.TB, n int, change func(*members)) *members {
	t.Helper()
	c := &members{t: t, dir: t.TempDir(), wrap: func(l shard.Log) shard.Log { return l }}
	for range n {
		c.fronts = append(c.fronts, newFront(t))
	}
	if change != nil {
		change(c)
	}
	t.Cleanup(c.stop)
	c.lives = append(c.lives, c.start(0, []string{c.fronts[0].addr()}, true))
	ids := make([]uint64, n)
	for i := 1; i < n; i++ {
		c.until("a learner is added", func(ctx context.Context) (err error) {
			ids[i], err = c.lives[0].AddLearner(ctx, c.fronts[i].addr())
			return err
		})
		c.lives = append(c.lives, c.start(i, c.addresses(i+1), false))
	}
	for i := 1; i < n; i++ {
		c.until("a learner gets its vote", func(ctx context.Context) error { return c.lives[0].Promote(ctx, ids[i]) })
	}
	return c
}

func (c *members) addresses(n int) (addresses []string) {
	for _, f := range c.fronts[:n] {
		addresses = append(addresses, f.addr())
	}
	return addresses
}

// start starts a member, for the first time or again.
func (c *members) start(i int, list []string, founds bool) life {
	level := slog.LevelError
	if testing.Verbose() && os.Getenv("ETCDLOG_DEBUG") != "" {
		level = slog.LevelDebug
	}
	options := etcdlog.Options{
		Dir: filepath.Join(c.dir, fmt.Sprint(i)), Peer: c.fronts[i].addr(), Listen: "127.0.0.1:0", Cluster: c.t.Name(),
		Members: list, Founds: founds, Election: cmp.Or(c.election, election), Quota: c.quota, CheckEvery: c.checkEvery, TLS: c.tls,
		Fatal: func(text string) { panic("etcd cannot go on: " + text) },
		Log:   slog.New(slog.NewTextHandler(c.t.Output(), &slog.HandlerOptions{Level: level})),
	}
	var m etcdlog.Member
	c.until("a member starts", func(context.Context) (err error) {
		m, err = etcdlog.Start(options)
		return err
	})
	c.fronts[i].lead(m.Addr())
	l := life{Member: m}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// until tries until it works.
func (c *members) until(what string, try func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		if pause.For(ctx, 10*time.Millisecond) != nil {
			c.t.Fatalf("%s: %v", what, err)
		}
	}
}

func (c *members) stop() {
	for i, l := range c.lives {
		l.end()
		c.fronts[i].lead("")
		etcdlog.Kill(l.Member)
	}
}

// Size implements [shardtest.Cluster].
func (c *members) Size() int { return len(c.fronts) }

// Log implements [shardtest.Cluster].
func (c *members) Log(i int) (context.Context, shard.Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lives[i].ctx, c.wrap(c.lives[i].Member)
}

// Restart implements [shardtest.Cluster].
func (c *members) Restart(i int) {
	c.mu.Lock()
	l := c.lives[i]
	c.mu.Unlock()
	l.end()
	c.fronts[i].lead("")
	etcdlog.Kill(l.Member)
	again := c.start(i, c.addresses(len(c.fronts)), false)
	c.mu.Lock()
	c.lives[i] = again
	c.mu.Unlock()
}

// headOf waits for the head of a shard.
func headOf(c *members, s int) (head shard.Head) {
	c.until("the heads are told", func(ctx context.Context) error {
		heads, err := c.lives[0].Heads(ctx)
		head = heads[s]
		return err
	})
	return head
}
