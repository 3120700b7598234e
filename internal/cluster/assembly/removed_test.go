//go:build !no_cluster

package assembly_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/pause"
)

// TestRecoverRefusesARemovedNode: the directory of a node that was removed becomes no single server, by either way, and stays as it is.
func TestRecoverRefusesARemovedNode(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs etcd")
	}
	data, first, second := t.TempDir(), freeaddr.One(t), freeaddr.One(t)
	until := func(what string, try func(context.Context) error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for err := try(ctx); err != nil; err = try(ctx) {
			if pause.For(ctx, 10*time.Millisecond) != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	// A founder that has not agreed on its version yet takes nobody in.
	run := func(dir, addr string, founds bool, list ...string) (m etcdlog.Member) {
		until("etcd starts", func(context.Context) (err error) {
			m, err = etcdlog.Start(etcdlog.Options{
				Dir: dir, Peer: addr, Listen: addr, Cluster: "c1", Members: list, Founds: founds, Election: 100 * time.Millisecond, Fatal: func(text string) { t.Error(text) },
			})
			return err
		})
		return m
	}
	founder := run(t.TempDir(), first, true, first)
	defer founder.Stop()
	until("a learner is added", func(ctx context.Context) error { _, err := founder.AddLearner(ctx, second); return err })
	member := run(membership.LogDir(data), second, false, first, second)
	until("it has what the founder has", func(ctx context.Context) error { _, err := member.Heads(ctx); return err })
	until("it is removed", func(ctx context.Context) error { return founder.Remove(ctx, member.ID()) })
	if err := <-member.Failed(); !errors.Is(err, etcdlog.ErrRemoved) {
		t.Fatalf("the member ends with %v", err)
	}
	member.Stop()
	file := filepath.Join(data, membership.FileName)
	if err := os.WriteFile(file, []byte(`{"cluster":"c1","node":"10.0.0.2:9100"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, way := range map[string]func(context.Context, string, func() time.Time, *slog.Logger) error{"recover": assembly.Recover, "alone": assembly.BecomeSingle} {
		err := way(t.Context(), data, time.Now, slog.New(slog.DiscardHandler))
		if !errors.Is(err, membership.ErrRefused) || !strings.Contains(err.Error(), "10.0.0.2:9100, which was removed from the cluster c1") {
			t.Errorf("%s of the directory of a node that was removed: %v", name, err)
		}
	}
	if _, err := os.Stat(membership.LogDir(data)); err != nil || !membership.IsNode(data) {
		t.Errorf("the directory has changed: %v", err)
	}
}
