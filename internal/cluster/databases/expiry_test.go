package databases_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster/databasestest"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/expiry"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
)

// counted counts how often a worker looks at a database.
type counted struct {
	*catalog.Catalog
	looks atomic.Int64
}

// Database implements expiry.Databases.
func (c *counted) Database(name string) (*engine.Database, error) {
	c.looks.Add(1)
	return c.Catalog.Database(name)
}

// An expiringWorld is one in which all nodes but the first delete what expires.
type expiringWorld struct {
	*databasestest.World
	looks [databasestest.Size]*counted
}

func (x *expiringWorld) beside(p *databasestest.Process) (func(context.Context), error) {
	c := &counted{Catalog: p.Catalog}
	x.looks[p.Index] = c
	worker := expiry.New(p.Clock, p.Logger, func() {})
	p.Due = worker.Note
	return func(ctx context.Context) {
		if p.Index > 0 {
			worker.Start(c, p.Catalog.Due)
		}
		<-ctx.Done()
		worker.Close()
	}, nil
}

// give makes a node the home of a shard.
func (x *expiringWorld) give(s, to int) {
	for {
		if _, home := x.Process(to).Node.Home(s); home {
			return
		}
		for _, p := range x.Processes() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_ = p.Node.Give(ctx, s, record.NodeID(to+1)) // only the home can
			cancel()
		}
		_ = pause.For(context.Background(), 100*time.Millisecond)
	}
}

// must calls something until it succeeds: calls between nodes may be lost.
func must(f func() error) {
	for f() != nil {
		_ = pause.For(context.Background(), 100*time.Millisecond)
	}
}

// TestExpiryFollowsTheHome: nodes that are not the home of a database do not look again and again at what is due there. One that
// becomes the home deletes it within seconds, also if it has only opened the database and followed no record.
func TestExpiryFollowsTheHome(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		if expiryFollowsTheHome(t, seed+1) {
			return
		}
	}
	t.Error("the node that was to be the home was it in none of the worlds")
}

// expiryFollowsTheHome looks at one world, and reports whether that let a node be the home for as long as it was to be.
func expiryFollowsTheHome(t *testing.T, seed uint64) (stayed bool) {
	x := &expiringWorld{}
	err := databasestest.Play(t, databasestest.Options{Seed: seed, Beside: x.beside}, func(w *databasestest.World) error {
		x.World = w
		first := w.Process(0)
		must(func() error {
			_, _ = first.Catalog.Create("db")
			_, err := first.Catalog.Database("db")
			return err
		})
		d, err := first.Catalog.Database("db")
		if err != nil {
			return err
		}
		s := store.ShardOf(engine.IDOf(d))
		x.give(s, 0)
		must(func() error {
			_, err := d.SetRules(context.Background(), `{"rules":{"sessions":{".expireOn":"t"}}}`)
			return err
		})
		write, err := enginetest.DecodePut(enginetest.Path(t, "/sessions/a"), fmt.Sprintf(`{"t":%d}`, time.Now().Add(time.Minute).UnixMilli()))
		if err != nil {
			return err
		}
		must(func() error {
			_, err := d.Write(context.Background(), engine.Request{Write: write, Who: enginetest.Admin})
			return err
		})
		_ = pause.For(context.Background(), time.Second) // all have it
		for i := 1; i < databasestest.Size; i++ {
			if err := store.Flush(w.Process(i).Store); err != nil {
				return err
			}
			w.Crash(i)
		}
		w.AllUp()
		x.give(s, 0)
		given, _ := first.Node.Home(s)
		_ = pause.For(context.Background(), 5*time.Minute)
		if tenure, home := first.Node.Home(s); !home || tenure != given {
			return nil // another one has been the home
		}
		stayed = true
		for i := 1; i < databasestest.Size; i++ {
			if n := x.looks[i].looks.Load(); n == 0 || n > 5 {
				t.Errorf("node %d, which is not the home, has looked %d times at what is due", i, n)
			}
		}
		if !x.exists(d) {
			t.Error("a node that is not the home has deleted what is due")
		}
		x.give(s, 1)
		_ = pause.For(context.Background(), 5*time.Second)
		if x.exists(d) {
			t.Error("five seconds after a node became the home, what is due is not deleted")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return stayed
}

func (x *expiringWorld) exists(d *engine.Database) bool {
	v := d.View()
	defer v.Close()
	exists, err := v.Tree().Exists(enginetest.Path(x.TB, "/sessions/a"))
	if err != nil {
		x.Error(err)
	}
	return exists
}
