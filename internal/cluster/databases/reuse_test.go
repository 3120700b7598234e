package databases_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A taker has databases that apply records which a test hands over, without a node.
type taker struct {
	*testing.T
	store   *store.Store
	data    *databases.Databases
	catalog *catalog.Catalog
}

func newTaker(t *testing.T) *taker {
	s, err := store.Open("data", store.Options{FS: vfs.NewMem(), Replicated: true, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	k := &taker{T: t, store: s}
	k.start()
	t.Cleanup(func() {
		k.catalog.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// start begins another life on the same store.
func (k *taker) start() {
	if k.catalog != nil {
		k.catalog.Close()
	}
	var err error
	if k.data, err = databases.New(databases.Options{Store: k.store, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		k.Fatal(err)
	}
	clock := state.NewClock(time.Now, rand.NewChaCha8([32]byte{}), k.store.LastMillis())
	k.catalog = catalog.New(k.store, engine.Options{Log: k.data, Clock: clock, Metrics: &state.Metrics{}})
	k.data.Bind(new(cluster.Node), k.catalog)
}

// take applies the next record of a shard.
func (k *taker) take(s int, r record.Record) error {
	return k.data.Apply(s, r, shard.Head{Number: k.data.Applied(s).Number + 1, Tenure: 1})
}

// must is take for a record that can be applied.
func (k *taker) must(s int, r record.Record) {
	k.Helper()
	if err := k.take(s, r); err != nil {
		k.Fatal(err)
	}
}

func (k *taker) database(name string) *engine.Database {
	k.Helper()
	d, err := k.catalog.Database(name)
	if err != nil {
		k.Fatal(err)
	}
	return d
}

// naming is the record that makes the next database.
func (k *taker) naming(name string) (record.Record, store.ID) {
	n, err := store.NewNaming(k.store, name, shard.Count)
	if err != nil {
		k.Fatal(err)
	}
	return record.Record{Kind: record.Control, Effect: n.Encode()}, n.ID
}

// write is a record with the next commit of a database. Every third one changes its rules.
func (k *taker) write(id store.ID, position uint64) record.Record {
	c := tree.Change{Position: position, Millis: 1000 + int64(position)}
	var b *store.Batch
	var err error
	if position%3 == 0 {
		b, err = k.store.BuildSettings(k.store.Live(id), c, store.Settings{state.SettingRules: []byte(state.OpenRules)}, nil)
	} else {
		c.Write = tree.Put(path("a"), node(`1`))
		b, err = k.store.Build(k.store.Live(id), c, nil, nil, nil)
	}
	if err != nil {
		k.Fatal(err)
	}
	defer b.Close()
	return record.Record{Kind: record.Groups, Groups: []record.Group{{
		Database: uint32(id), Base: position - 1,
		Commits: []record.Commit{{Origin: record.Origin{Node: 9, Number: position}, Effect: b.Effect()}},
	}}}
}

func drop(id store.ID) record.Record {
	return record.Record{Kind: record.Drop, Database: uint32(id), Millis: 1000}
}

// TestNameOfAnother has a node learn that a name is that of a new database before it learns that the old one was dropped.
func TestNameOfAnother(t *testing.T) {
	home, late := newTaker(t), newTaker(t)
	make := func() (record.Record, store.ID) {
		r, id := home.naming("x")
		home.must(0, r)
		return r, id
	}
	pad, first := make()
	home.must(0, drop(first))
	late.must(0, pad)
	late.must(0, drop(first))
	makeOld, old := make() // in another shard than the first
	late.must(0, makeOld)
	before := late.database("x")
	home.must(store.ShardOf(old), drop(old))
	makeNew, id := make()

	late.must(0, makeNew)
	now := late.database("x")
	if engine.IDOf(now) != id {
		t.Errorf("the name is that of database %x, want %x", engine.IDOf(now), id)
	}
	late.must(store.ShardOf(id), home.write(id, 1))
	late.must(store.ShardOf(old), drop(old))
	if err := before.Standing(); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the database that was dropped says %v", err)
	}
	if late.database("x") != now {
		t.Error("there are two databases with one number")
	}
	late.must(store.ShardOf(id), late.write(id, 2))
	if got := late.database("x").Published().Position; got != 2 {
		t.Errorf("the database that clients have is at position %d, want 2", got)
	}
}

// A story is what a cluster has decided, shard by shard.
type story struct {
	log       [shard.Count][]record.Record
	positions map[store.ID]uint64
}

// tell makes, drops and writes to databases of few names at random, at one node that has all records in their order.
func tell(home *taker, r *rand.Rand, steps int) story {
	s := story{positions: map[store.ID]uint64{}}
	add := func(shard int, r record.Record) {
		home.must(shard, r)
		s.log[shard] = append(s.log[shard], r)
	}
	for range steps {
		name := string(rune('a' + r.IntN(3)))
		id, found, err := home.store.Find(name)
		switch {
		case err != nil:
			home.Fatal(err)
		case !found:
			r, _ := home.naming(name)
			add(0, r)
		case r.IntN(3) == 0:
			add(store.ShardOf(id), drop(id))
		default:
			s.positions[id]++
			add(store.ShardOf(id), home.write(id, s.positions[id]))
		}
	}
	return s
}

// TestAnyOrder has a node apply the records of a cluster in any order that shards allow, while clients ask for databases and the node is started
// again.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		home, late := newTaker(t), newTaker(t)
		s := tell(home, r, 150)
		at := map[store.ID]uint64{} // what was applied
		left := func() (open []int) {
			for i := range s.log {
				if late.data.Applied(i).Number < uint64(len(s.log[i])) {
					open = append(open, i)
				}
			}
			return open
		}
		for open, rounds := left(), 0; len(open) > 0; open = left() {
			if rounds++; rounds > 5000 {
				t.Fatalf("seed %d: records of the shards %v are never applied", seed, open)
			}
			next := open[r.IntN(len(open))]
			for range 1 + r.IntN(4) {
				number := late.data.Applied(next).Number
				if number == uint64(len(s.log[next])) {
					break
				}
				err := late.take(next, s.log[next][number])
				if errors.Is(err, cluster.ErrEarly) {
					break
				}
				if err != nil {
					t.Fatalf("seed %d, record %d of shard %d: %v", seed, number+1, next, err)
				}
				for _, g := range s.log[next][number].Groups {
					at[store.ID(g.Database)]++
				}
			}
			if r.IntN(10) == 0 {
				late.start()
			}
			look(t, late, at, string(rune('a'+r.IntN(3))))
		}
		for _, name := range []string{"a", "b", "c"} {
			look(t, late, at, name)
			want, exists, _ := home.store.Find(name)
			got, found, _ := late.store.Find(name)
			if got != want || found != exists {
				t.Errorf("seed %d: %s is database %x, %v, want %x, %v", seed, name, got, found, want, exists)
			}
		}
		if err := store.Displaced(late.store, func(name string, id store.ID) { t.Errorf("database %x, once %s, is left", id, name) }); err != nil {
			t.Error(err)
		}
		if n := late.data.Void(); n > 0 {
			t.Errorf("seed %d: %d groups are void", seed, n)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// look opens a database as a client does: it is the one that the store has, and has what was applied.
func look(t *testing.T, k *taker, at map[store.ID]uint64, name string) {
	id, found, err := k.store.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return
	}
	d := k.database(name)
	if p := d.Published(); engine.IDOf(d) != id || p.Position != at[id] || p.Dropped || (p.Settings.Rules != nil) != (at[id] >= 3) {
		t.Errorf("%s is database %x at position %d, dropped %v; want %x at %d", name, engine.IDOf(d), p.Position, p.Dropped, id, at[id])
	}
}
