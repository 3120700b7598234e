//go:build !no_cluster

package membership_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
)

// mad opens the front of a process that has the key and is no node.
func (w *world) mad(addr, listen string) *peer.Front {
	w.t.Helper()
	f, err := peer.Listen(peer.Options{Addr: addr, Listen: listen, Key: w.key, Dir: w.t.TempDir()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = f.Close() })
	return f
}

// callUp calls a node that is connected by now.
func (w *world) callUp(f *peer.Front, to, kind string, body []byte) error {
	w.t.Helper()
	var failed error
	f.Keep([]string{to})
	w.until("a call is sent", func(ctx context.Context) error {
		if _, failed = f.Call(ctx, to, kind, body); errors.Is(failed, peer.ErrNotSent) {
			return failed
		}
		return nil
	})
	return failed
}

// TestMemberThatAnswersIsNotReplaced: another process says that it has the address of a member, and wants its place.
func TestMemberThatAnswersIsNotReplaced(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.startAll(n)
	thief := w.mad("127.0.0.1:1", "127.0.0.1:0")
	request, _ := json.Marshal(map[string]any{"cluster": n.Cluster(), "process": "thief"})
	if err := w.callUp(thief, n.addr, "join", request); !saying(err, "it is not reached from") {
		t.Errorf("a node that is not reached joins: %v", err)
	}
	id := n.Log().ID()
	liar := w.mad("127.0.0.1:2", "127.0.0.1:0")
	for name, body := range map[string]string{"another cluster": `{"cluster":"x"}`, "no JSON": `{`, "nothing": ``} {
		var refused *peer.Refused
		if err := w.callUp(liar, n.addr, "join", []byte(body)); !errors.As(err, &refused) {
			t.Errorf("%s is answered with %v", name, err)
		}
	}
	if err := w.callUp(liar, n.addr, "promise", nil); !saying(err, "belongs to one") {
		t.Errorf("a member promises to found nothing: %v", err)
	}
	peers, err := n.Log().Peers(t.Context())
	if err != nil || len(peers) != 1 || peers[0].ID != id {
		t.Errorf("the members are %+v, %v", peers, err)
	}
}

// logged is told each line of a log.
type logged func(line string)

func (l logged) Write(b []byte) (int, error) {
	l(string(b))
	return len(b), nil
}

// TestTwoNodesWithOneAddress: an empty node that is reached at the address of a member that lives does not take its place.
func TestTwoNodesWithOneAddress(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 2)
	one, two := w.nodes[0], w.nodes[1]
	w.startAll(one, two)
	w.wantVoters(one, two)
	id := two.Log().ID()
	// It listens elsewhere, so calls of the first to the address reach the member.
	front := w.mad(two.addr, "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	told := logged(func(line string) {
		if strings.Contains(line, "two nodes have this address") {
			cancel()
		}
	})
	_, err := membership.Enter(ctx, membership.Options{
		Data: t.TempDir(), Front: front, List: one.list, Election: election, Logger: slog.New(slog.NewTextHandler(told, nil)),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a second node with the same address enters with %v", err)
	}
	peers, err := one.Log().Peers(t.Context())
	if err != nil || len(peers) != 2 || !slices.ContainsFunc(peers, func(p etcdlog.Peer) bool { return p.ID == id }) {
		t.Errorf("the members are %+v, %v", peers, err)
	}
}

// TestAddressMustStay: the others know the member by its address.
func TestAddressMustStay(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 2)
	n := w.nodes[0]
	n.list = []string{n.addr}
	w.startAll(n)
	n.stop()
	was := n.addr
	n.addr = w.nodes[1].addr
	if err := n.start(); !errors.Is(err, membership.ErrRefused) || !saying(err, was, n.addr, "--cluster-addr") {
		t.Errorf("with another address it starts with %v", err)
	}
	n.stop()
	n.addr = was
	w.startAll(n)
}

// TestFiveNodes: etcd takes two members without a vote at a time, and the next only after seconds.
func TestFiveNodes(t *testing.T) {
	t.Parallel()
	if !*long {
		t.Skip("takes half a minute: -long")
	}
	w := newWorld(t, 5)
	started := make(chan error, len(w.nodes))
	for _, i := range []int{3, 0, 4, 2, 1} {
		go func() { started <- w.nodes[i].start() }()
		w.until("it has begun", func(context.Context) error {
			_, err := os.Stat(filepath.Join(w.nodes[i].data, "cluster-tls", "node.pem"))
			return err
		})
	}
	for range w.nodes {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	w.wantVoters(w.nodes...)
}
