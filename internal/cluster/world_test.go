package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/shardtest"
	"github.com/livetree/livetree/internal/pause"
)

const (
	size      = 3   // nodes of a world
	partBytes = 164 // so that two short groups fit into a record
)

// used are the shards that clients write to.
var used = []int{0, 5}

// Lists are data that a test can judge: for each shard the tokens that were written, in order. It
// keeps what was flushed through a crash, and loses the rest.
type lists struct {
	mu           sync.Mutex
	now, flushed [shard.Count]list
	void         int
}

type list struct {
	head   shard.Head
	tokens []string
}

func (l *lists) Applied(s int) shard.Head { return l.read(s).head }

func (l *lists) read(s int) list {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now[s]
}

// Apply implements [cluster.Applier]. A group says how long the list was on which it was judged.
func (l *lists) Apply(s int, r record.Record, after shard.Head) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := &l.now[s]
	if after.Number != now.head.Number+1 {
		return fmt.Errorf("record %d is applied after %d", after.Number, now.head.Number)
	}
	now.head = after
	for _, g := range r.Groups {
		if g.Base != uint64(len(now.tokens)) {
			l.void++
			continue
		}
		for _, c := range g.Commits {
			now.tokens = append(now.tokens[:len(now.tokens):len(now.tokens)], string(c.Effect))
		}
	}
	return nil
}

// flush keeps the data through a crash; the heads not, if both are written one after the other.
func (l *lists) flush(apart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, now := range l.now {
		if apart {
			now.head = l.flushed[s].head
		}
		l.flushed[s] = now
	}
}

func (l *lists) kept() [shard.Count]list {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flushed
}

// flaws are errors to plant into a world.
type flaws struct {
	fake         shardtest.Options
	wrap         func(shard.Log) shard.Log
	toldEarly    bool // a node says that it has flushed what it has not
	trimEarly    bool // what one node has applied is trimmed, whatever was flushed
	skipsBarrier bool // readers read without a barrier
	twoBatches   bool // a record and the head after it are not written together
}

// A world is a cluster of nodes with clients, moved by one seed.
type world struct {
	flaws flaws
	rand  *rand.Rand
	fake  *shardtest.Fake
	nodes [size]*process

	mu      sync.Mutex
	cut     [size]bool
	history history
	failed  error
}

// A process is one life of a node.
type process struct {
	node   *cluster.Node
	data   *lists
	ctx    context.Context
	end    context.CancelFunc
	ended  chan struct{}
	writer [shard.Count]chan struct{}
	// led is the tenure of each shard in which the process was told to be the home, 0 if it is not.
	led [shard.Count]atomic.Uint64
}

// became is told that the process is the home of a shard, or is it no more.
func (p *process) became(s int, home bool) {
	tenure, _ := p.node.Home(s)
	if !home {
		tenure = 0
	}
	p.led[s].Store(tenure)
}

// knows says whether the process was told of which shard it is the home.
func (p *process) knows(s int) bool {
	tenure, home := p.node.Home(s)
	if !home {
		tenure = 0
	}
	return p.led[s].Load() == tenure
}

func id(i int) record.NodeID { return record.NodeID(i + 1) }

// start starts a node with the data that its last process has flushed.
func (w *world) start(i int) { w.startFrom(i, i) }

// startFrom starts a node with a copy of what another has flushed. Before that, the log is told that the node has nothing: so nothing is trimmed until
// it has told what came with the copy.
func (w *world) startFrom(i, from int) {
	if i != from {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		if shard.Publish(ctx, w.fake.Log(from), shard.Flushed{Node: id(i)}) != nil {
			from = i
		}
		cancel()
	}
	p := &process{data: &lists{}, ended: make(chan struct{})}
	if last := w.nodes[from]; last != nil {
		flushed := last.data.kept()
		p.data.now, p.data.flushed = flushed, flushed
	}
	for s := range p.writer {
		p.writer[s] = make(chan struct{}, 1)
	}
	p.ctx, p.end = context.WithCancel(context.Background())
	numbers := w.rand.Uint64()
	log := w.fake.Log(i)
	if w.flaws.wrap != nil {
		log = w.flaws.wrap(log)
	}
	p.node = cluster.New(cluster.Options{
		ID: id(i), Log: log, Applier: p.data, Rand: func() uint64 { return numbers }, Now: time.Now,
		PartBytes: partBytes, Became: p.became,
		Upkeep: cluster.Upkeep{
			Flush:      func() (shard.Numbers, error) { return w.flush(p), nil },
			FlushEvery: time.Duration(1+w.rand.IntN(3000)) * time.Millisecond, FlushBytes: 2000,
			Members:   func() []record.NodeID { return []record.NodeID{id(0), id(1), id(2)} },
			TrimEvery: time.Duration(1+w.rand.IntN(1000)) * time.Millisecond, KeepBytes: 100,
		},
		AppendTime: time.Duration(1+w.rand.IntN(1500)) * time.Millisecond,
	})
	go func() {
		defer close(p.ended)
		if err := p.node.Run(p.ctx); p.ctx.Err() == nil {
			w.fail(fmt.Errorf("node %d: %w", i, err))
		}
	}()
	w.mu.Lock()
	w.nodes[i] = p
	w.mu.Unlock()
}

// flush has a process flush its data, and returns what it has flushed.
func (w *world) flush(p *process) (numbers shard.Numbers) {
	if !w.flaws.toldEarly {
		p.data.flush(w.flaws.twoBatches)
	}
	for s, kept := range p.data.kept() {
		numbers[s] = kept.head.Number
		if w.flaws.toldEarly {
			numbers[s] = p.data.read(s).head.Number
		}
	}
	return numbers
}

func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = errors.Join(w.failed, err)
}

func (w *world) process(i int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[i]
}

// crash ends a node, and starts it with what it has flushed, or from a copy of what another has.
func (w *world) crash(i, from int) {
	p := w.nodes[i]
	w.fake.Crash(i)
	p.end()
	<-p.ended
	w.startFrom(i, from)
}

// sweep abandons all transfers that are open. That is allowed at any time.
func (w *world) sweep(i int) {
	log := w.fake.Log(i)
	open, _ := log.OpenTransfers(context.Background())
	for _, t := range open {
		_ = log.Abandon(context.Background(), t, 0)
	}
}

// disturb does one thing that clients do not ask for.
func (w *world) disturb() {
	i := w.rand.IntN(size)
	switch w.rand.IntN(10) {
	case 0:
		w.crash(i, i)
	case 1:
		w.cutOff(i, true)
	case 2:
		for i := range size {
			w.cutOff(i, false)
		}
	case 3:
		w.trim(i)
	case 4, 5:
		w.nodes[i].data.flush(w.flaws.twoBatches)
	case 6:
		w.crash(i, w.rand.IntN(size))
	case 7:
		w.sweep(i)
	}
	for i := range size {
		w.look(i)
	}
}

func (w *world) cutOff(i int, cut bool) {
	w.cut[i] = cut
	w.fake.Cut(i, cut)
}

// look tells a node which others are up. It is sometimes wrong.
func (w *world) look(i int) {
	var up []record.NodeID
	for j := range size {
		if j == i || !w.cut[j] && w.rand.IntN(5) > 0 {
			up = append(up, id(j))
		}
	}
	w.nodes[i].node.SetUp(up)
}

// trim trims what all nodes have flushed, but for the newest of these records.
func (w *world) trim(i int) {
	var below shard.Numbers
	for s := range below {
		below[s] = w.nodes[i].data.read(s).head.Number
		for _, p := range w.nodes {
			if !w.flaws.trimEarly {
				below[s] = min(below[s], p.data.kept()[s].head.Number)
			}
		}
	}
	_ = w.fake.Log(i).Trim(context.Background(), below)
}

// play runs clients and disturbances with one seed, and returns what is wrong in the end.
func play(t *testing.T, seed uint64, f flaws) (told tally, found error) {
	synctest.Test(t, func(t *testing.T) {
		f.fake.Seed, f.fake.Members = seed, size
		w := &world{flaws: f, rand: rand.New(rand.NewPCG(seed, 3)), fake: shardtest.New(f.fake)}
		moving, stop := context.WithCancel(context.Background())
		var moves, clients sync.WaitGroup
		moves.Go(func() { w.fake.Run(moving) })
		for i := range size {
			w.start(i)
		}
		for c := range 3 {
			clients.Go(func() { w.client(c, rand.New(rand.NewPCG(seed, 10+uint64(c)))) })
		}
		for range 14 {
			w.disturb()
			_ = pause.For(moving, time.Duration(w.rand.IntN(300))*time.Millisecond)
		}
		for i := range size {
			w.cutOff(i, false)
			w.nodes[i].node.SetUp([]record.NodeID{id(0), id(1), id(2)})
		}
		clients.Wait()
		found = errors.Join(w.settle(), w.failed)
		if found == nil {
			found = w.history.check(w.nodes[0].data)
		}
		w.history.count(&told)
		for _, p := range w.nodes {
			p.end()
			<-p.ended
		}
		stop()
		moves.Wait()
	})
	return told, found
}

// settle waits until all nodes have all records, and know which of them is home, and holds them against each other.
func (w *world) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for s := range shard.Count {
		// A node may still take the shard between two looks.
		for {
			same, err := w.same(ctx, s)
			if err != nil {
				return err
			}
			if same {
				break
			}
			if err := pause.For(ctx, time.Second); err != nil {
				return fmt.Errorf("nodes do not come to the same end of shard %d, or were not told who is its home: %w", s, err)
			}
		}
	}
	return nil
}

// same says whether all nodes are equally far with a shard, and returns an error if they then differ.
func (w *world) same(ctx context.Context, s int) (bool, error) {
	var all [size]list
	for i, p := range w.nodes {
		if err := p.node.Barrier(ctx, s); err != nil {
			return false, fmt.Errorf("node %d has not come to the end of shard %d: %w", i, s, err)
		}
		if p.data.void > 0 {
			return false, fmt.Errorf("node %d has %d records that were judged on other data", i, p.data.void)
		}
		all[i] = p.data.read(s)
		if all[i].head.Number != all[0].head.Number || !p.knows(s) {
			return false, nil
		}
	}
	for i, got := range all {
		if got.head != all[0].head || !slices.Equal(got.tokens, all[0].tokens) {
			return false, fmt.Errorf("shard %d is %+v at node 0, and %+v at node %d", s, all[0], got, i)
		}
	}
	return true, nil
}
