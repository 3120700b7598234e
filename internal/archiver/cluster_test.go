package archiver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/placetest"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/shardtest"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file archives histories of a cluster, and restores them from the archive alone.

// An archivist is what the archiver of a node asks of its cluster.
type archivist struct{ p *process }

func (a archivist) Tenure() (uint64, bool) { return a.p.node.Home(0) }

func (a archivist) CaughtUp(ctx context.Context) error {
	for s := range shard.Count {
		if err := a.p.node.Barrier(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (a archivist) Note(ctx context.Context, tenure uint64, notes []byte) error {
	return databases.NoteHeld(ctx, a.p.data, tenure, notes)
}

// hold begins to keep what is to be archived.
func (p *process) hold(logger *slog.Logger) {
	var err error
	p.archiver, err = archiver.New(archiver.Options{
		Store: p.store, Place: p.world.place, SecretKey: []byte("a key"), Cluster: archivist{p}, Now: time.Now, Logger: logger,
		Pace: archiver.Pace{
			Every: 50 * time.Millisecond, Bytes: 2000, MaxSegment: 1000, LeastPause: 10 * time.Millisecond, MostPause: 200 * time.Millisecond,
			Patience: time.Second, Last: 20 * time.Millisecond,
		},
	})
	if err != nil {
		p.world.Fatal(err)
	}
}

// archive archives until the node ends.
func (p *process) archive() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.archiver.Run(ctx) })
	p.archived = func() {
		cancel()
		running.Wait()
	}
}

// A content is what a store has of its databases.
type content map[string]string

// contents returns what a store has, up to where each database is.
func contents(s *store.Store) (content, error) {
	found := content{}
	var failed error
	v := s.View()
	defer v.Release()
	err := s.Names(func(name string, id store.ID) bool {
		var position uint64
		if position, failed = v.Tree(id).Position(); failed == nil {
			var text limited
			failed = v.Tree(id).Print(&text, tree.Path{}, tree.Export)
			found[name] = fmt.Sprintf("%d %s", position, text)
		}
		return failed == nil
	})
	return found, errors.Join(err, failed)
}

type limited []byte

func (l *limited) Write(b []byte) (int, error) {
	*l = append(*l, b...)
	return len(b), nil
}

// restoredAll returns what an archive has at a moment.
func restoredAll(t *testing.T, r *archive.Reader, at time.Time) content {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := restore.Run(t.Context(), r, dir, restore.Options{At: restore.Moment{Time: at}}); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(dir, store.Options{BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	found, err := contents(s)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// passing makes databases, writes to them, and drops them again, at changing nodes.
func (w *world) passing(r *rand.Rand) {
	for range 8 {
		p := w.process(r.IntN(size))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if db, err := w.database(p, "passing"); err == nil {
			for range r.IntN(3) {
				_, _ = db.Write(ctx, engine.Request{Write: tree.Put(path(fmt.Sprint("k", r.IntN(9))), node("1")), Who: auth.Identity{Admin: true}})
			}
			if r.IntN(3) > 0 {
				_ = p.catalog.Drop("passing")
			}
		}
		cancel()
		_ = pause.For(context.Background(), time.Duration(r.IntN(300))*time.Millisecond)
	}
}

// TestClusterHistories archives histories, with crashes, cuts, changing homes and an archive that fails. What is restored is what all nodes
// have, and at a moment in the middle what they had.
func TestClusterHistories(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 3)
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
		place := placetest.NewFaulty(placetest.NewMemory())
		var want, middle content
		var at time.Time
		writes := 0
		err := play(t, seed, place, func(w *world) (err error) {
			if middle, at, err = w.caughtUp(); err != nil {
				return err
			}
			_ = pause.For(context.Background(), time.Second)
			w.client(99, rand.New(rand.NewPCG(seed, 32)))
			if want, _, err = w.caughtUp(); err != nil {
				return err
			}
			writes = len(w.made)
			return w.missing(want)
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r := archive.NewReader(place, archive.ReaderOptions{})
		if err := r.CheckAll(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := restoredAll(t, r, time.Time{}); !maps.Equal(got, want) {
			t.Fatalf("seed %d: what is restored is\n%v, want\n%v", seed, got, want)
		}
		if got := restoredAll(t, r, at); !maps.Equal(got, middle) {
			t.Fatalf("seed %d: what is restored of %s is\n%v, want\n%v", seed, at, got, middle)
		}
		lines, err := r.Lines(t.Context())
		if err != nil || len(lines) != 1 {
			t.Fatalf("seed %d: %d lines, %v", seed, len(lines), err)
		}
		t.Logf("seed %d: %d writes, %d segments, %d bases", seed, writes, lines[0].Segment, len(lines[0].Bases))
	}
}

// caughtUp returns what all nodes have, when the archive has it, and the time of that.
func (w *world) caughtUp() (content, time.Time, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var first content
	for i, p := range w.nodes {
		if err := p.archiver.CatchUp(ctx, time.Time{}); err != nil {
			return nil, time.Time{}, fmt.Errorf("node %d: the archive does not catch up: %w: %+v", i, err, p.archiver.Status())
		}
		found, err := contents(p.store)
		if err != nil {
			return nil, time.Time{}, err
		}
		if first == nil {
			first = found
		} else if !maps.Equal(found, first) {
			return nil, time.Time{}, fmt.Errorf("node %d has %v, and node 0 %v", i, found, first)
		}
	}
	return first, time.Now(), nil
}

// names are the databases that are written to. They are in different shards.
var names = []string{"one", "two", "three"}

// client writes keys that nobody else writes, at changing nodes.
func (w *world) client(number int, r *rand.Rand) {
	for i := range 25 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		name, key := names[r.IntN(len(names))], fmt.Sprintf("c%d-%d", number, i)
		db, err := w.database(w.process(r.IntN(size)), name)
		if err == nil {
			value := `"` + strings.Repeat("x", r.IntN(200)) + `"`
			if r.IntN(10) == 0 {
				value = `"` + strings.Repeat("y", 70_000) + `"` // which the log leaves out
			}
			_, err = db.Write(ctx, engine.Request{Write: tree.Put(path(key), node(value)), Who: auth.Identity{Admin: true}})
		}
		if err == nil {
			w.mu.Lock()
			w.made[name+"/"+key] = true
			w.mu.Unlock()
		}
		cancel()
		_ = pause.For(context.Background(), time.Duration(r.IntN(100))*time.Millisecond)
	}
}

// missing returns an error if something that was acknowledged is not there.
func (w *world) missing(found content) error {
	for place := range w.made {
		name, key, _ := strings.Cut(place, "/")
		if !strings.Contains(found[name], `"`+key+`":`) {
			return fmt.Errorf("%s was acknowledged, and is not there", place)
		}
	}
	return nil
}

func path(text string) tree.Path { return tree.Path{}.Child(text) }

func node(text string) tree.Node {
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		panic(err)
	}
	return n
}

// database returns a database at a node, which it makes if there is none.
func (w *world) database(p *process, name string) (*engine.Database, error) {
	db, err := p.catalog.Database(name)
	if fault.KindOf(err) == fault.NotFound {
		db, err = p.catalog.Create(name)
	}
	if fault.KindOf(err) == fault.Conflict {
		return p.catalog.Database(name)
	}
	return db, err
}

// failing returns faults of a place, at random.
func failing(seed uint64) placetest.Faults {
	random, mu := rand.New(rand.NewPCG(seed, 30)), sync.Mutex{}
	return placetest.Faults{Fail: func(string, string) error {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(15) == 0 {
			return placetest.ErrServer
		}
		return nil
	}}
}

// play runs clients and disturbances with one seed, and has the world looked at in the end.
func play(t *testing.T, seed uint64, place *placetest.Faulty, look func(*world) error) (found error) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			TB: t, rand: rand.New(rand.NewPCG(seed, 3)), chaos: rand.New(rand.NewPCG(seed, 4)),
			fake: shardtest.New(shardtest.Options{Seed: seed, Members: size}), place: place, made: map[string]bool{},
		}
		place.Set(failing(seed))
		moving, stop := context.WithCancel(context.Background())
		var moves, clients sync.WaitGroup
		moves.Go(func() { w.fake.Run(moving) })
		first := w.found()
		for i := range size {
			w.start(i, first.CrashClone(vfs.CrashCloneCfg{}))
		}
		w.allUp()
		for c := range 3 {
			clients.Go(func() { w.client(c, rand.New(rand.NewPCG(seed, 10+uint64(c)))) })
		}
		clients.Go(func() { w.passing(rand.New(rand.NewPCG(seed, 31))) })
		for range 14 {
			w.disturb()
			_ = pause.For(moving, time.Duration(w.rand.IntN(300))*time.Millisecond)
		}
		w.allUp()
		clients.Wait()
		place.Set(placetest.Faults{})
		if found = w.wrong; found == nil {
			found = look(w)
		}
		for _, p := range w.nodes {
			p.stop()
		}
		found = errors.Join(found, w.wrong)
		stop()
		moves.Wait()
	})
	return found
}
