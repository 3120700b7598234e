package archiver_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/placetest"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/databasestest"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file archives histories of a cluster, and restores them from the archive alone.

var (
	seeds     = flag.Int("seeds", 6, "how many histories of a cluster are played")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first one")
	loud      = flag.Bool("loud", false, "print what nodes log")
)

// A world is one whose nodes have archivers.
type world struct {
	*databasestest.World
	archivers [databasestest.Size]*archiver.Archiver

	mu   sync.Mutex
	made map[string]bool // keys whose writes were acknowledged
}

// An archivist is what the archiver of a node asks of its cluster.
type archivist struct{ p *databasestest.Process }

func (a archivist) Tenure() (uint64, bool) { return a.p.Node.Home(0) }

func (a archivist) CaughtUp(ctx context.Context) error {
	for s := range shard.Count {
		if err := a.p.Node.Barrier(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (a archivist) Note(ctx context.Context, tenure uint64, notes []byte) error {
	return databases.NoteHeld(ctx, a.p.Data, tenure, notes)
}

// newArchiver begins to keep what is to be archived of a node.
func newArchiver(p *databasestest.Process, place *placetest.Faulty) (*archiver.Archiver, error) {
	return archiver.New(archiver.Options{
		Store: p.Store, Place: place, SecretKey: []byte("a key"), Cluster: archivist{p}, Now: time.Now, Logger: p.Logger,
		Pace: archiver.Pace{
			Every: 50 * time.Millisecond, Bytes: 2000, MaxSegment: 1000, LeastPause: 10 * time.Millisecond, MostPause: 200 * time.Millisecond,
			Patience: time.Second, Last: 20 * time.Millisecond,
		},
	})
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
		p := w.Process(r.IntN(databasestest.Size))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if db, err := databasestest.Database(p, "passing"); err == nil {
			for range r.IntN(3) {
				_, _ = db.Write(ctx, engine.Request{Write: tree.Put(path(fmt.Sprint("k", r.IntN(9))), node("1")), Who: auth.Identity{Admin: true}})
			}
			if r.IntN(3) > 0 {
				_ = p.Catalog.Drop("passing")
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
	for i, p := range w.Processes() {
		if err := w.archivers[i].CatchUp(ctx, time.Time{}); err != nil {
			return nil, time.Time{}, fmt.Errorf("node %d: the archive does not catch up: %w: %+v", i, err, w.archivers[i].Status())
		}
		found, err := contents(p.Store)
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
		db, err := databasestest.Database(w.Process(r.IntN(databasestest.Size)), name)
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
func play(t *testing.T, seed uint64, place *placetest.Faulty, look func(*world) error) error {
	w := &world{made: map[string]bool{}}
	place.Set(failing(seed))
	return databasestest.Play(t, databasestest.Options{
		Seed: seed, Loud: *loud,
		Beside: func(p *databasestest.Process) (func(context.Context), error) {
			a, err := newArchiver(p, place)
			if err != nil {
				return nil, err
			}
			w.archivers[p.Index] = a
			return a.Run, nil
		},
	}, func(of *databasestest.World) error {
		w.World = of
		var clients sync.WaitGroup
		for c := range 3 {
			clients.Go(func() { w.client(c, rand.New(rand.NewPCG(seed, 10+uint64(c)))) })
		}
		clients.Go(func() { w.passing(rand.New(rand.NewPCG(seed, 31))) })
		w.Disturb(14)
		clients.Wait()
		place.Set(placetest.Faults{})
		return look(w)
	})
}
