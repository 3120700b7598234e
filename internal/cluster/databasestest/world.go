// Package databasestest plays histories of a cluster in a test: nodes with real stores on disks in memory, which crash, are cut off
// and lose calls, over the replicated log of shardtest.
//
// [Play] makes a [World] of three nodes and hands it to a function, inside a bubble of testing/synctest. The function runs clients,
// has the world disturb the nodes, and compares what the nodes have in the end. A [Process] is one life of a node: after a
// crash the node has another. The world itself finds nodes whose rows differ as of one record, and errors that end a node.
//
// A seed is one history, up to what goroutines of one node do at the same moment.
package databasestest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shardtest"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
)

// Size is the number of nodes of a world.
const Size = 3

// Options say what is played.
type Options struct {
	Seed uint64
	// LargeBytes and SmallBytes are those of databases.Options.
	// Served is told what nodes say to calls, and how long those were; nil for nobody.
	Served                 func(kind string, bytes int, said []byte)
	LargeBytes, SmallBytes int64
	// Shards is how many of them change their homes, 2 if it is 0.
	Shards int
	// Loud prints what nodes log.
	Loud bool
	// Beside is nil, or is called for each life of a node before the node has applied anything. What it returns runs beside the node, and
	// is ended before the node is.
	Beside func(p *Process) (run func(context.Context), err error)
}

// A World is a cluster of nodes with real stores, whose log is a fake. But for Process and Fail, its methods are for one goroutine.
type World struct {
	testing.TB
	// Rand decides what is disturbed. It is for the goroutine that does that.
	Rand *rand.Rand

	options Options
	fake    *shardtest.Fake

	mu    sync.Mutex
	chaos *rand.Rand // of calls between nodes
	nodes [Size]*Process
	cut   [Size]bool
	wrong error
	// checks are the digests of rows by shard and number of the check record, of the first node that had it.
	checks map[[2]uint64]string
}

// Play has a function play a history in a new world, whose nodes are all up. It returns what the function found, and what was
// wrong otherwise.
func Play(t *testing.T, o Options, play func(*World) error) (found error) {
	synctest.Test(t, func(t *testing.T) {
		w := &World{
			TB: t, options: o, Rand: rand.New(rand.NewPCG(o.Seed, 3)), chaos: rand.New(rand.NewPCG(o.Seed, 4)),
			fake: shardtest.New(shardtest.Options{Seed: o.Seed, Members: Size}), checks: map[[2]uint64]string{},
		}
		moving, stop := context.WithCancel(context.Background())
		var moves sync.WaitGroup
		moves.Go(func() { w.fake.Run(moving) })
		first := w.found()
		for i := range Size {
			w.start(i, first.CrashClone(vfs.CrashCloneCfg{}))
		}
		w.AllUp()
		found = play(w)
		for _, p := range w.nodes {
			p.stop()
		}
		stop()
		moves.Wait()
		found = errors.Join(found, w.wrong)
	})
	return found
}

// Fail notes what is wrong; Play returns it.
func (w *World) Fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = errors.Join(w.wrong, err)
}

// Process returns the present life of a node.
func (w *World) Process(i int) *Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[i]
}

// Processes returns the present lives of all nodes.
func (w *World) Processes() []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes[:])
}

// Disturb does so many things that clients do not ask for, with pauses in between, and leaves all nodes up.
func (w *World) Disturb(times int) {
	for range times {
		w.disturb()
		_ = pause.For(context.Background(), time.Duration(w.Rand.IntN(300))*time.Millisecond)
	}
	w.AllUp()
}

func (w *World) disturb() {
	i, shards := w.Rand.IntN(Size), cmp.Or(w.options.Shards, 2)
	switch w.Rand.IntN(8) {
	case 0, 1:
		w.Crash(i)
	case 2:
		w.cutOff(i, true)
	case 3:
		for i := range Size {
			w.cutOff(i, false)
		}
	case 4, 5:
		if err := store.Flush(w.nodes[i].Store); err != nil {
			w.Fail(err)
		}
	case 6:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = w.nodes[i].Node.Give(ctx, w.Rand.IntN(shards), nodeID(w.Rand.IntN(Size)))
		cancel()
	case 7:
		s := w.Rand.IntN(shards)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if tenure, home := w.nodes[i].Node.Home(s); home {
			_, _ = w.nodes[i].Node.Append(ctx, s, tenure, record.Record{Kind: record.Check})
		}
		cancel()
	}
	for i := range Size {
		w.look(i)
	}
}

// Crash ends a node, which loses what was not flushed and some of what was not synced, and starts it again.
func (w *World) Crash(i int) {
	p := w.nodes[i]
	close(p.dead)
	left := p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: w.Rand.IntN(101), RNG: rand.New(rand.NewPCG(w.Rand.Uint64(), 1))})
	w.fake.Crash(i)
	p.stop()
	w.start(i, left)
}

// AllUp ends all cuts, and tells all nodes that all are up.
func (w *World) AllUp() {
	for i := range Size {
		w.cutOff(i, false)
	}
	for i := range Size {
		w.nodes[i].Node.SetUp([]record.NodeID{nodeID(0), nodeID(1), nodeID(2)})
	}
}

func (w *World) cutOff(i int, cut bool) {
	w.mu.Lock()
	w.cut[i] = cut
	w.mu.Unlock()
	w.fake.Cut(i, cut)
}

// look tells a node which others are up. It is sometimes wrong.
func (w *World) look(i int) {
	var up []record.NodeID
	for j := range Size {
		if j == i || !w.cut[j] && w.Rand.IntN(5) > 0 {
			up = append(up, nodeID(j))
		}
	}
	w.nodes[i].Node.SetUp(up)
}

// found makes the data that all nodes begin with.
func (w *World) found() *vfs.MemFS {
	fs := vfs.NewCrashableMem()
	s, err := store.Open("data", store.Options{FS: fs, BallastBytes: -1, Now: time.Now})
	if err != nil {
		w.Fatal(err)
	}
	if err := s.Close(); err != nil {
		w.Fatal(err)
	}
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// checked compares the rows of a node, as of a check record, with those of the others.
func (w *World) checked(p *Process, s int, number uint64, ids []store.ID) {
	view := p.Store.View()
	defer view.Release()
	slices.Sort(ids)
	sum := sha256.New()
	for _, id := range ids {
		if err := store.DigestRows(view, id, sum, func(int) error { return nil }); err != nil {
			w.Fail(err)
		}
	}
	digest := fmt.Sprintf("%x", sum.Sum(nil))
	w.mu.Lock()
	defer w.mu.Unlock()
	at := [2]uint64{uint64(s), number}
	if first := w.checks[at]; first != "" && first != digest {
		w.wrong = errors.Join(w.wrong, fmt.Errorf("node %d has other rows than another, as of record %d of shard %d", p.Index, number, s))
	}
	w.checks[at] = digest
}

// Database returns a database at a node, which it makes if there is none.
func Database(p *Process, name string) (*engine.Database, error) {
	db, err := p.Catalog.Database(name)
	if fault.KindOf(err) == fault.NotFound {
		db, err = p.Catalog.Create(name)
	}
	if fault.KindOf(err) == fault.Conflict {
		return p.Catalog.Database(name)
	}
	return db, err
}
