//go:build !no_cluster

package assembly_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/store"
)

// TestProcessEndsAsItHasFounded: a process founds a cluster from data that was in another, and ends as soon as there is a log. The next one goes on with
// that, and does not hold the data against it.
func TestProcessEndsAsItHasFounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs etcd")
	}
	key := newKey(t)
	data, addr := t.TempDir(), freeaddr.One(t)
	n := start(t, data, addr, key)
	d, err := n.catalog.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, 1)
	n.stop(t)
	if err := assembly.BecomeSingle(t.Context(), data, time.Now, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	front, err := peer.Listen(peer.Options{Addr: addr, Key: key, Dir: filepath.Join(data, "cluster-tls")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := membership.Enter(t.Context(), membership.Options{
		Data: data, HasStore: true, Forget: func() error { return store.ForgetApplied(data, store.Options{}) }, Front: front, List: []string{addr},
		Election: 100 * time.Millisecond, Fatal: func(text string) { t.Error(text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !m.Founded() {
		t.Error("the first process has founded nothing")
	}
	m.Close()
	if err := front.Close(); err != nil {
		t.Error(err)
	}
	n = start(t, data, addr, key)
	defer n.stop(t)
	if d, err = n.catalog.Database("one"); err != nil {
		t.Fatal(err)
	}
	put(t, d, 2)
}
