package archiver_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/archive/placetest"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shardtest"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

const size = 3 // nodes of a world

var (
	seeds     = flag.Int("seeds", 6, "how many histories of a cluster are played")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first one")
	loud      = flag.Bool("loud", false, "print what nodes log")
)

// A world is a cluster of nodes with real stores, whose log is a fake. Package databases has the same for histories without an archive.
type world struct {
	testing.TB
	rand *rand.Rand
	fake *shardtest.Fake

	mu    sync.Mutex
	chaos *rand.Rand // of calls between nodes
	nodes [size]*process
	cut   [size]bool
	wrong error

	place *placetest.Faulty // where nodes archive to
	made  map[string]bool   // keys whose writes were acknowledged
}

// A process is one life of a node.
type process struct {
	index   int
	world   *world
	fs      *vfs.MemFS
	store   *store.Store
	data    *databases.Databases
	node    *cluster.Node
	catalog *catalog.Catalog
	end     context.CancelFunc
	ended   chan struct{}
	dead    chan struct{}

	archiver *archiver.Archiver
	archived func() // ends it
}

func nodeID(i int) record.NodeID { return record.NodeID(i + 1) }

func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = errors.Join(w.wrong, err)
}

// found makes the data that all nodes begin with.
func (w *world) found() *vfs.MemFS {
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

// start starts a node on its files.
func (w *world) start(i int, fs *vfs.MemFS) {
	logger := slog.New(slog.DiscardHandler)
	if *loud {
		logger = slog.New(slog.NewTextHandler(w.Output(), nil)).With("node", i)
	}
	p := &process{index: i, world: w, fs: fs, ended: make(chan struct{}), dead: make(chan struct{})}
	var err error
	p.store, err = store.Open("data", store.Options{FS: fs, BallastBytes: -1, Now: time.Now, Replicated: true, ChunkBytes: 64})
	if err != nil {
		w.Fatal(err)
	}
	p.data, err = databases.New(databases.Options{Store: p.store, Peers: p, Logger: logger, Deadline: 5 * time.Second})
	if err != nil {
		w.Fatal(err)
	}
	verifier, err := auth.New(auth.Options{})
	if err != nil {
		w.Fatal(err)
	}
	p.catalog = catalog.New(p.store, engine.Options{
		Clock: state.NewClock(time.Now, rand.NewChaCha8([32]byte{byte(i)}), p.store.LastMillis()), Verifier: verifier, Metrics: &state.Metrics{},
		Streams: watch.NewBudget(1 << 20), Log: p.data, Deadline: 5 * time.Second,
	})
	p.hold(logger)
	p.node = cluster.New(cluster.Options{
		ID: nodeID(i), Log: w.fake.Log(i), Applier: p.data, Now: time.Now, Logger: logger, Became: p.data.Became,
		AppendTime: time.Duration(1+w.rand.IntN(1500)) * time.Millisecond,
	})
	p.data.Bind(p.node, p.catalog)
	var ctx context.Context
	ctx, p.end = context.WithCancel(context.Background())
	go func() {
		defer close(p.ended)
		if err := p.node.Run(ctx); ctx.Err() == nil {
			w.fail(fmt.Errorf("node %d: %w", i, err))
		}
	}()
	p.archive()
	w.mu.Lock()
	w.nodes[i] = p
	w.mu.Unlock()
}

// Call implements databases.Peers: calls are lost, and so are answers.
func (p *process) Call(ctx context.Context, node record.NodeID, kind string, body []byte) ([]byte, error) {
	w := p.world
	w.mu.Lock()
	other := w.nodes[node-1]
	fate := w.chaos.IntN(12)
	slow := time.Duration(w.chaos.IntN(3)) * time.Millisecond
	cut := w.cut[p.index] != w.cut[node-1]
	w.mu.Unlock()
	select {
	case <-other.dead:
		return nil, databases.ErrNotSent
	case <-p.dead:
		return nil, databases.ErrNotSent
	default:
	}
	if fate == 0 || cut {
		return nil, databases.ErrNotSent
	}
	_ = pause.For(ctx, slow)
	var said []byte
	var err error
	switch kind {
	case databases.Forward:
		said, err = other.data.ServeForward(ctx, body)
	case databases.Create:
		said, err = other.data.ServeCreate(ctx, body)
	case databases.Drop:
		said, err = other.data.ServeDrop(ctx, body)
	}
	select {
	case <-other.dead:
		return nil, errors.New("the node died")
	default:
	}
	if fate == 1 {
		return nil, errors.New("the answer was lost")
	}
	return said, err
}

func (w *world) process(i int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[i]
}

// crash ends a node, which loses what was not flushed, and some of what was not synced.
func (w *world) crash(i int) {
	p := w.nodes[i]
	close(p.dead)
	left := p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: w.rand.IntN(101), RNG: rand.New(rand.NewPCG(w.rand.Uint64(), 1))})
	w.fake.Crash(i)
	p.stop()
	w.start(i, left)
}

// stop ends a node for good.
func (p *process) stop() {
	p.archived()
	p.end()
	<-p.ended
	p.catalog.Close()
	if err := p.store.Close(); err != nil {
		p.world.fail(err)
	}
}

// disturb does one thing that clients do not ask for.
func (w *world) disturb() {
	i := w.rand.IntN(size)
	switch w.rand.IntN(8) {
	case 0, 1:
		w.crash(i)
	case 2:
		w.cutOff(i, true)
	case 3:
		for i := range size {
			w.cutOff(i, false)
		}
	case 4, 5:
		if err := store.Flush(w.nodes[i].store); err != nil {
			w.fail(err)
		}
	case 6:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = w.nodes[i].node.Give(ctx, w.rand.IntN(2), nodeID(w.rand.IntN(size)))
		cancel()
	}
	for i := range size {
		w.look(i)
	}
}

func (w *world) cutOff(i int, cut bool) {
	w.mu.Lock()
	w.cut[i] = cut
	w.mu.Unlock()
	w.fake.Cut(i, cut)
}

// look tells a node which others are up. It is sometimes wrong.
func (w *world) look(i int) {
	var up []record.NodeID
	for j := range size {
		if j == i || !w.cut[j] && w.rand.IntN(5) > 0 {
			up = append(up, nodeID(j))
		}
	}
	w.nodes[i].node.SetUp(up)
}

func (w *world) allUp() {
	for i := range size {
		w.cutOff(i, false)
	}
	for i := range size {
		w.nodes[i].node.SetUp([]record.NodeID{nodeID(0), nodeID(1), nodeID(2)})
	}
}
