//go:build !no_cluster

package membership_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/proof"
)

var long = flag.Bool("long", false, "run the tests that take long")

const (
	election = 200 * time.Millisecond
	patience = 60 * time.Second
)

func TestMain(m *testing.M) {
	proof.SideBySide(4)
	os.Exit(m.Run())
}

// world is some nodes in one process, each with a directory for a store.
type world struct {
	t     *testing.T
	key   peer.Key
	nodes []*node
}

// node is one of them, in one of its lives.
type node struct {
	w    *world
	addr string
	data string
	list []string

	front *peer.Front
	*membership.Membership
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	known uint16 // the newest level that it knows, 0 for that of the binary

	mu      sync.Mutex
	up      []record.NodeID
	firstUp int // how many were up when it was told first
	keeping int // copies for which the log is kept
	sent    int // copies that were sent
	ran     error
}

func newWorld(t *testing.T, n int) *world {
	t.Helper()
	key, err := peer.ParseKey(peer.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, key: key}
	list := freeaddr.List(t, n)
	for _, addr := range list {
		w.nodes = append(w.nodes, &node{w: w, addr: addr, list: list, data: filepath.Join(t.TempDir(), "data")})
		if err := os.MkdirAll(w.nodes[len(w.nodes)-1].data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, n := range w.nodes {
			n.stop()
		}
	})
	return w
}

func (n *node) storeFile() string { return filepath.Join(n.data, "pebble", "rows") }

func (n *node) write(text string) {
	if err := os.MkdirAll(filepath.Dir(n.storeFile()), 0o700); err != nil {
		n.w.t.Error(err)
	}
	if err := os.WriteFile(n.storeFile(), []byte(text), 0o600); err != nil {
		n.w.t.Error(err)
	}
}

func (n *node) rows() string {
	text, _ := os.ReadFile(n.storeFile())
	return string(text)
}

// Checkpoint implements [membership.Source].
func (n *node) Checkpoint(dir string) error {
	n.mu.Lock()
	if n.keeping == 0 {
		n.w.t.Error("a copy is begun, and the log is not kept for it")
	}
	n.mu.Unlock()
	return os.CopyFS(filepath.Join(dir, "pebble"), os.DirFS(filepath.Join(n.data, "pebble")))
}

// Extra implements [membership.Source].
func (n *node) Extra() []string { return []string{"tls/ca.pem"} }

// Keep implements [membership.Source].
func (n *node) Keep() (end func(sent bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keeping++
	return func(sent bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.keeping--; sent {
			n.sent++
		}
	}
}

// enter opens the port of a node and has it enter its cluster.
func (n *node) enter(ctx context.Context) error {
	level := slog.LevelError + 1
	if os.Getenv("MEMBERSHIP_DEBUG") != "" {
		level = slog.LevelInfo
	}
	logger := slog.New(slog.NewTextHandler(n.w.t.Output(), &slog.HandlerOptions{Level: level})).With("at", n.addr)
	var err error
	if n.front, err = peer.Listen(peer.Options{Addr: n.addr, Key: n.w.key, Dir: filepath.Join(n.data, "cluster-tls"), Logger: logger}); err != nil {
		return err
	}
	n.Membership, err = membership.Enter(ctx, membership.Options{
		Data: n.data, Known: n.known, HasStore: n.rows() != "", Front: n.front, List: n.list, Election: election, Logger: logger,
		Fatal: func(text string) { panic("etcd cannot go on: " + text) },
	})
	if err != nil {
		n.Membership = nil
		_ = n.front.Close()
	}
	return err
}

// start has a node enter and get ready.
func (n *node) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.enter(ctx); err != nil {
		return fmt.Errorf("%s: %w", n.addr, err)
	}
	return n.serve(ctx)
}

func (n *node) serve(ctx context.Context) error {
	if n.Founded() && n.rows() == "" {
		n.write("made by the founder of " + n.Cluster())
	}
	n.Serve(n)
	n.ctx, n.end = context.WithCancel(context.Background())
	n.running.Go(func() {
		err := n.Run(n.ctx, func(up []record.NodeID) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.up = up; n.firstUp == 0 {
				n.firstUp = len(up)
			}
		})
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ran = err
	})
	return n.Ready(ctx, func(ctx context.Context) error {
		for {
			if _, err := n.Log().Heads(ctx); err == nil {
				return nil
			}
			if err := pause.For(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	})
}

// stop ends a node. The port goes first, so that nothing is handed over: to the others it is dead.
func (n *node) stop() {
	if n.front == nil {
		return
	}
	_ = n.front.Close()
	if n.end != nil {
		n.end()
		n.running.Wait()
	}
	if n.Membership != nil {
		n.Close()
	}
	n.front, n.end, n.Membership = nil, nil, nil
}

// startAll starts nodes at the same time.
func (w *world) startAll(nodes ...*node) {
	w.t.Helper()
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = n.start() })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

// until tries until it works.
func (w *world) until(what string, try func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		if pause.For(ctx, 10*time.Millisecond) != nil {
			w.t.Fatalf("%s: %v", what, err)
		}
	}
}

// wantVoters waits until all nodes know that exactly some of them are the members, vote, and are up.
func (w *world) wantVoters(nodes ...*node) {
	w.t.Helper()
	for _, n := range nodes {
		w.until("all members are known", func(context.Context) error {
			n.mu.Lock()
			up := len(n.up)
			n.mu.Unlock()
			members := n.Members()
			if len(members) != len(nodes) || up != len(nodes) {
				return fmt.Errorf("%s knows %+v, and %d are up", n.addr, members, up)
			}
			for _, other := range nodes {
				id := n.IDOf(other.addr)
				if uint64(id) != other.Log().ID() || n.AddrOf(id) != other.addr {
					return fmt.Errorf("%s has the id %x for %s", n.addr, id, other.addr)
				}
			}
			for _, m := range members {
				if !m.Voter || !m.Up || !m.Ready {
					return fmt.Errorf("%s knows %+v", n.addr, m)
				}
			}
			return nil
		})
	}
}

// wantUp waits until a node was told that so many are up.
func (w *world) wantUp(n *node, want int) {
	w.t.Helper()
	w.until("nodes come and go", func(context.Context) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.up) != want {
			return fmt.Errorf("%x are up, want %d", n.up, want)
		}
		return nil
	})
}

// append appends a record to a shard, through one node.
func (n *node) append(ctx context.Context, s int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	heads, err := n.Log().Heads(ctx)
	if err != nil {
		return err
	}
	encoded, err := record.Record{Kind: record.Control, Previous: heads[s].Digest, Effect: []byte("x")}.Encode()
	if err != nil {
		return err
	}
	_, err = n.Log().Append(ctx, s, heads[s], heads[s].After(1, encoded), encoded)
	return err
}

// saying is an error with a text in it.
func saying(err error, texts ...string) bool {
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			return false
		}
	}
	return true
}
