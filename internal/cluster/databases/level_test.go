package databases_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/shardtest"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
)

// TestRaise: the level is raised by a record. Every node applies it, tells so first, and knows it after a crash; databases are made before and after.
func TestRaise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			TB: t, rand: rand.New(rand.NewPCG(1, 3)), chaos: rand.New(rand.NewPCG(1, 4)),
			fake: shardtest.New(shardtest.Options{Seed: 1, Members: size}),
		}
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
		var moves sync.WaitGroup
		moves.Go(func() { w.fake.Run(ctx) })
		first := w.found()
		for i := range size {
			w.start(i, first.CrashClone(vfs.CrashCloneCfg{}))
		}
		w.allUp()
		if _, err := w.nodes[1].catalog.Create("before"); err != nil {
			t.Fatal(err)
		}
		until := func(what string, is func(p *process) bool) {
			t.Helper()
			for slices.ContainsFunc(w.nodes[:], func(p *process) bool { return !is(p) }) {
				if pause.For(ctx, 10*time.Millisecond) != nil {
					t.Fatal(what)
				}
			}
		}
		until("the level of a new cluster is 1", func(p *process) bool { return databases.Level(p.data) == 1 })
		raise := func(level uint16) {
			for _, p := range w.nodes { // one of them is the home
				if err := databases.Raise(ctx, p.data, level); err != nil {
					t.Log(err)
				}
			}
		}
		raise(2)
		until("one node raises the level, and all have it", func(p *process) bool { return databases.Level(p.data) == 2 })
		raise(1)
		if err := store.Flush(w.nodes[0].store); err != nil {
			t.Fatal(err)
		}
		w.crash(0)
		w.allUp()
		if _, err := w.nodes[2].catalog.Create("after"); err != nil {
			t.Fatal(err)
		}
		until("the level stays", func(p *process) bool { return databases.Level(p.data) == 2 })
		for _, p := range w.nodes {
			if level, err := store.LevelOf(p.store); err != nil || level != 2 {
				t.Errorf("node %d has stored level %d, %v", p.index, level, err)
			}
			if raised := p.raised.Load(); p.index != 0 && raised != 2 { // the first began after it
				t.Errorf("node %d was told of level %d", p.index, raised)
			}
			p.stop()
		}
		if w.wrong != nil {
			t.Error(errors.Join(w.wrong))
		}
		stop()
		moves.Wait()
	})
}
