package databases_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A homeLog has a node be the home of all databases, and hands the groups that it judges to a test.
type homeLog struct {
	*databases.Databases
	groups chan *engine.Group
}

func (homeLog) Home(store.ID) (tenure uint64, ok bool)                 { return 1, true }
func (homeLog) Barrier(context.Context, store.ID, time.Duration) error { return nil }
func (l homeLog) Append(g *engine.Group)                               { l.groups <- g }
func (homeLog) Enter(context.Context, <-chan time.Time, store.ID, *engine.Request) (func(), error) {
	return func() {}, nil
}

// TestOwnGroupThatDoesNotFollow: a group of the home itself that the log has behind commits which it was not judged on is void at the home, as it is at the other
// nodes, and what is in it is judged again.
func TestOwnGroupThatDoesNotFollow(t *testing.T) {
	k := newTaker(t)
	log := homeLog{k.data, make(chan *engine.Group, 1)}
	k.catalog.Close()
	k.catalog = catalog.New(k.store, engine.Options{Log: log, Clock: state.NewClock(time.Now, rand.NewChaCha8([32]byte{}), 0), Metrics: &state.Metrics{}})
	k.data.Bind(new(cluster.Node), k.catalog)
	naming, id := k.naming("x")
	k.must(0, naming)
	s, number := store.ShardOf(id), uint64(0)
	// group takes the next group of the home, and returns what puts it into the log.
	group := func() (apply func()) {
		g := <-log.groups
		number++
		origin := record.Origin{Node: 1, Number: number}
		r := record.Group{Database: uint32(id), Base: g.Base, Commits: []record.Commit{{Origin: origin, Effect: g.Parts[0].Batch.Effect()}}}
		return func() {
			databases.Pend(k.data, g, []record.Origin{origin})
			k.must(s, record.Record{Kind: record.Groups, Groups: []record.Group{r}})
		}
	}
	db := k.database("x")
	told := make(chan error, 1)
	go func() {
		_, err := db.Write(t.Context(), engine.Request{Write: tree.Put(path("b"), node(`2`)), Who: admin})
		told <- err
	}()
	apply := group()
	k.must(s, k.write(id, 1)) // of another node
	apply()
	if void := k.data.Void(); void != 1 {
		t.Fatalf("%d groups are void, want that of the home", void)
	}
	group()()
	if err := <-told; err != nil {
		t.Errorf("the write that was judged again: %v", err)
	}
	if position := db.Published().Position; position != 2 || k.data.Void() != 1 {
		t.Errorf("the database is at position %d, and %d groups are void, want 2 and 1", position, k.data.Void())
	}
}
