package databases_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/databasestest"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A reuse is what clients were told that write to databases which others drop and make again with the same names.
type reuse struct {
	mu sync.Mutex
	tally
	drops   int
	dropped map[store.ID]bool            // of which somebody was told so
	must    map[store.ID]map[string]bool // keys that were acknowledged
	never   map[string]bool              // keys that were refused
	names   map[store.ID]string
}

func newReuse() *reuse {
	return &reuse{dropped: map[store.ID]bool{}, must: map[store.ID]map[string]bool{}, never: map[string]bool{}, names: map[store.ID]string{}}
}

// isDropped reports whether somebody was told so before now.
func (u *reuse) isDropped(id store.ID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.dropped[id]
}

func (w world) reuser(u *reuse, number int, r *rand.Rand) {
	for i := range 30 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		p := w.Process(r.IntN(databasestest.Size))
		name := names[r.IntN(len(names))]
		if db, err := databasestest.Database(p, name); err == nil {
			u.meet(w, engine.IDOf(db), name)
			if r.IntN(6) == 0 {
				w.drop(u, p, db)
			} else {
				w.write(ctx, u, db, fmt.Sprintf("c%d-%d", number, i))
			}
		}
		cancel()
		_ = pause.For(context.Background(), time.Duration(r.IntN(100))*time.Millisecond)
	}
}

// meet notes the name of a database, which stays.
func (u *reuse) meet(w world, id store.ID, name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if was := u.names[id]; was != "" && was != name {
		w.Fail(fmt.Errorf("database %d is called %s and %s", id, was, name))
	}
	u.names[id] = name
}

func (w world) drop(u *reuse, p *databasestest.Process, db *engine.Database) {
	err := p.Data.Drop(db)
	u.mu.Lock()
	defer u.mu.Unlock()
	if fault.KindOf(err) == fault.NotFound {
		return // another was faster
	}
	u.count(err)
	if err == nil {
		u.drops++
		u.dropped[engine.IDOf(db)] = true
	}
}

// write writes a key that nobody else writes.
func (w world) write(ctx context.Context, u *reuse, db *engine.Database, key string) {
	id := engine.IDOf(db)
	gone := u.isDropped(id)
	_, err := db.Write(ctx, engine.Request{Write: tree.Put(path("keys/"+key), node(`"`+strings.Repeat("x", len(key))+`"`)), Who: admin})
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil && gone:
		w.Fail(fmt.Errorf("%s was written to database %d, which was dropped before", key, id))
	case err == nil:
		if u.must[id] == nil {
			u.must[id] = map[string]bool{}
		}
		u.must[id][key] = true
	case fault.KindOf(err) == fault.NotFound:
		u.never[key] = true
		return
	case fault.KindOf(err) != fault.Unknown:
		u.never[key] = true
	}
	u.count(err)
}

// settleNames waits until all nodes agree, and holds what they have against what clients were told.
func (w world) settleNames(u *reuse) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, name := range names {
		all, err := w.equal(ctx, name)
		for tries := 0; err != nil && tries < 30; tries++ {
			_ = pause.For(ctx, time.Second)
			all, err = w.equal(ctx, name)
		}
		if err != nil {
			return err
		}
		var ids [databasestest.Size]store.ID
		for i := range ids {
			db, err := databasestest.Database(w.Process(i), name)
			if err != nil {
				return err
			}
			ids[i] = engine.IDOf(db)
		}
		if ids[1] != ids[0] || ids[2] != ids[0] {
			return fmt.Errorf("%s is database %d", name, ids)
		}
		if err := u.check(ids[0], node(all)); err != nil {
			return err
		}
	}
	return errors.Join(u.failed...)
}

// check holds the data of the database that has a name in the end against what clients were told.
func (u *reuse) check(id store.ID, n tree.Node) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var wrong []error
	if u.dropped[id] {
		wrong = append(wrong, fmt.Errorf("database %d is there, and somebody was told that it was dropped", id))
	}
	for key := range u.must[id] {
		if n.Child("keys").Child(key).IsNull() {
			wrong = append(wrong, fmt.Errorf("database %d lacks %s, which was acknowledged", id, key))
		}
	}
	for other, keys := range u.must {
		for key := range keys {
			if other != id && !n.Child("keys").Child(key).IsNull() {
				wrong = append(wrong, fmt.Errorf("database %d has %s, which was written to %d", id, key, other))
			}
		}
	}
	for key := range u.never {
		if !n.Child("keys").Child(key).IsNull() {
			wrong = append(wrong, fmt.Errorf("database %d has %s, which was refused", id, key))
		}
	}
	return errors.Join(wrong...)
}

// TestNameHistories plays histories in which databases are dropped, and made again with the same names, while clients write to them at all
// nodes, with crashes, cuts, lost calls and changing homes. What was written to one of them is never seen in another.
func TestNameHistories(t *testing.T) {
	n, done, drops := *seeds, 0, 0
	if testing.Short() {
		n = min(n, 3)
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
		u := newReuse()
		err := databasestest.Play(t, databasestest.Options{Seed: seed, Shards: 1 + int(seed)%shard.Count, Loud: *loud}, func(of *databasestest.World) error {
			w := world{of}
			var clients sync.WaitGroup
			for c := range 4 {
				clients.Go(func() { w.reuser(u, c, rand.New(rand.NewPCG(seed, 20+uint64(c)))) })
			}
			w.Disturb(14)
			clients.Wait()
			for i := range databasestest.Size { // what was not flushed is applied again, the makings of all databases first
				w.Crash(i)
			}
			w.AllUp()
			return w.settleNames(u)
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		done, drops = done+u.done, drops+u.drops
	}
	t.Logf("%d requests were made, %d of them drops", done, drops)
	if done < 10*n || drops < n {
		t.Errorf("only %d requests were made, %d of them drops", done, drops)
	}
}
