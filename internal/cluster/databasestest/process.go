package databasestest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

// A Process is one life of a node.
type Process struct {
	Index   int
	Store   *store.Store
	Data    *databases.Databases
	Node    *cluster.Node
	Catalog *catalog.Catalog
	Clock   *state.Clock
	Logger  *slog.Logger
	// Due is nil, or is state.Observers.Due. It is set by Options.Beside.
	Due func(database string, millis int64)

	world     *World
	fs        *vfs.MemFS
	end       context.CancelFunc
	ended     chan struct{}
	endBeside func()
	dead      chan struct{}
	raised    atomic.Uint32
}

func nodeID(i int) record.NodeID { return record.NodeID(i + 1) }

// Raised returns the level of the cluster that this life was told of, 0 for none.
func (p *Process) Raised() uint16 { return uint16(p.raised.Load()) }

// IsDead reports whether this life has ended by a crash.
func (p *Process) IsDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// start starts a node on its files.
func (w *World) start(i int, fs *vfs.MemFS) {
	p := &Process{Index: i, Logger: slog.New(slog.DiscardHandler), world: w, fs: fs, ended: make(chan struct{}), dead: make(chan struct{})}
	if w.options.Loud {
		p.Logger = slog.New(slog.NewTextHandler(w.Output(), nil)).With("node", i)
	}
	if err := p.open(); err != nil {
		w.Fatal(err)
	}
	beside := func(context.Context) {}
	if w.options.Beside != nil {
		var err error
		if beside, err = w.options.Beside(p); err != nil {
			w.Fatal(err)
		}
	}
	p.Node = cluster.New(cluster.Options{
		ID: nodeID(i), Log: w.fake.Log(i), Applier: p.Data, Now: time.Now, Logger: p.Logger, Became: p.Data.Became,
		AppendTime: time.Duration(1+w.Rand.IntN(1500)) * time.Millisecond,
	})
	p.Data.Bind(p.Node, p.Catalog)
	p.run(beside)
	w.mu.Lock()
	w.nodes[i] = p
	w.mu.Unlock()
}

// open opens the store of a node, and what is on it.
func (p *Process) open() (err error) {
	if p.Store, err = store.Open("data", store.Options{FS: p.fs, BallastBytes: -1, Now: time.Now, Replicated: true, ChunkBytes: 64}); err != nil {
		return err
	}
	p.Data, err = databases.New(databases.Options{
		Store: p.Store, Peers: p, Logger: p.Logger, Deadline: 5 * time.Second,
		LargeBytes: p.world.options.LargeBytes, SmallBytes: p.world.options.SmallBytes,
		Raised: func(level uint16) error {
			p.raised.Store(uint32(level))
			return nil
		},
		Checked: func(s int, number uint64, ids []store.ID) { p.world.checked(p, s, number, ids) },
	})
	if err != nil {
		return err
	}
	verifier, err := auth.New(auth.Options{})
	if err != nil {
		return err
	}
	p.Clock = state.NewClock(time.Now, rand.NewChaCha8([32]byte{byte(p.Index)}), p.Store.LastMillis())
	p.Catalog = catalog.New(p.Store, engine.Options{
		Clock: p.Clock, Verifier: verifier, Metrics: &state.Metrics{}, Streams: watch.NewBudget(1 << 20), Log: p.Data, Deadline: 5 * time.Second,
		Observers: &state.Observers{Due: func(database string, millis int64) {
			if p.Due != nil {
				p.Due(database, millis)
			}
		}},
	})
	return nil
}

// run runs the node, and what is beside it, until stop.
func (p *Process) run(beside func(context.Context)) {
	var ctx context.Context
	ctx, p.end = context.WithCancel(context.Background())
	go func() {
		defer close(p.ended)
		if err := p.Node.Run(ctx); ctx.Err() == nil {
			p.world.Fail(fmt.Errorf("node %d: %w", p.Index, err))
		}
	}()
	besideCtx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { beside(besideCtx) })
	p.endBeside = func() {
		cancel()
		running.Wait()
	}
}

// stop ends a node for good.
func (p *Process) stop() {
	p.endBeside()
	p.end()
	<-p.ended
	p.Catalog.Close()
	if err := p.Store.Close(); err != nil {
		p.world.Fail(err)
	}
}

// Call implements databases.Peers: calls are lost, and so are answers.
func (p *Process) Call(ctx context.Context, node record.NodeID, kind string, body []byte) ([]byte, error) {
	w := p.world
	w.mu.Lock()
	other := w.nodes[node-1]
	fate := w.chaos.IntN(12)
	slow := time.Duration(w.chaos.IntN(3)) * time.Millisecond
	cut := w.cut[p.Index] != w.cut[node-1]
	w.mu.Unlock()
	if fate == 0 || cut || other.IsDead() || p.IsDead() {
		return nil, databases.ErrNotSent
	}
	_ = pause.For(ctx, slow)
	said, err := other.serve(ctx, kind, body)
	if w.options.Served != nil {
		w.options.Served(kind, len(body), said)
	}
	if other.IsDead() {
		return nil, errors.New("the node died")
	}
	if fate == 1 {
		return nil, errors.New("the answer was lost")
	}
	return said, err
}

// serve answers a call of another node.
func (p *Process) serve(ctx context.Context, kind string, body []byte) ([]byte, error) {
	switch kind {
	case databases.Forward:
		return p.Data.ServeForward(ctx, body)
	case databases.Create:
		return p.Data.ServeCreate(ctx, body)
	case databases.Drop:
		return p.Data.ServeDrop(ctx, body)
	case databases.Swap:
		return databases.NotesOf(p.Data).Serve(ctx, body)
	}
	return nil, fmt.Errorf("a call of kind %q, which no node serves", kind)
}
