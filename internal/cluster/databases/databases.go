// Package databases has the databases of a cluster's node: it is what the engine and the log of the cluster know of each
// other.
//
// To the engine, [Databases] is the [engine.Log]: it hands the groups that databases judge to the node, and sends
// requests of databases that have their home elsewhere there. To the node, it is the [cluster.Applier]: it commits the records
// of the log to the store, and has the databases follow them. To the catalog, it is the [catalog.Others].
//
// A group that was judged here is applied with the batches and tickets that it was judged with; one of another node
// from its bytes. Which it is, the origins of its commits tell.
//
// A request that is forwarded has an origin: the node that a client asked, and a number. If its answer is lost, the log tells
// what became of it: it is in a record, or a record of a later tenure came without it, and then it never was. The home keeps the
// origins that it knows, so that the same request may be sent twice. See forward.go.
//
// What grows: the name of each database is in memory, and each that was written to since the start is open. A forwarded
// request is in memory while it is under way, and its origin for some time after it. Large requests wait until there is room for them: see entry.go.
package databases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/large"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// Kinds of calls between nodes.
const (
	Forward = "forward" // a request of a database, to its home
	Create  = "create"  // the name of a database, to the home of the first shard
	Drop    = "drop"    // the number of a database, to its home
)

// ErrNotSent says that a node that was called has not seen the call. Any other error than a text of the node leaves that open.
var ErrNotSent = errors.New("the node was not reached")

// Peers calls other nodes.
type Peers interface {
	// Call has a node answer.
	Call(ctx context.Context, node record.NodeID, kind string, body []byte) ([]byte, error)
}

// Options say what a node's databases work with.
type Options struct {
	Store  *store.Store
	Peers  Peers
	Logger *slog.Logger
	// Deadline is how long a request that is forwarded may take. 0 is engine.DefaultDeadline.
	Deadline time.Duration
	// LargeBytes is how many bytes of large writes may be under way, of those that are sent to their home and of those that are judged here, each by
	// itself. 0 is DefaultLargeBytes. SmallBytes is how large a write may be that does not count; 0 is what a record holds.
	LargeBytes, SmallBytes int64
	// Led is told that this node is the home of a shard from now on, or is it no more. It must not wait. nil for nobody.
	Led func(shard int, home bool)
	// Checked is told that a shard is as a check record asks for it: the databases that it has. It must not wait. nil for nobody.
	Checked func(shard int, number uint64, ids []store.ID)
	// Raised is told to which level the cluster is raised, before that is applied. nil for nobody.
	Raised func(level uint16) error
	// Aside says whether this node gives away what it is the home of, since its disk is nearly full. Then other nodes do not tell their clients what this one
	// refuses for that, but ask the next home. nil for never.
	Aside func() bool
}

// Databases are those of a node.
type Databases struct {
	o       Options
	node    *cluster.Node
	catalog *catalog.Catalog

	start   uint64        // the number before the first
	numbers atomic.Uint64 // of origins
	void    atomic.Uint64 // groups that did not follow what their database had
	level   atomic.Uint32 // of the cluster
	sent    Forwards
	// outgoing are the large writes that are sent to their home, judging those that are made here: see package large.
	outgoing, judging *large.Gate

	// control is held, by taking what is in it, by who judges which databases there are. Only the home of the first shard does.
	control chan struct{}

	mu      sync.Mutex
	names   map[store.ID]string
	open    map[store.ID]*engine.Database
	pending map[store.ID]*pendingGroup
	waiting waiting
	origins knownOrigins
}

// A pendingGroup was judged here, and may be in the log.
type pendingGroup struct {
	group   *engine.Group
	origins []record.Origin // of its commits
}

// New returns the databases of a node. Bind is called before they are used.
func New(o Options) (*Databases, error) {
	if o.Deadline == 0 {
		o.Deadline = engine.DefaultDeadline
	}
	o.LargeBytes, o.SmallBytes = cmp.Or(o.LargeBytes, DefaultLargeBytes), cmp.Or(o.SmallBytes, record.MaxBytes)
	if o.Checked == nil {
		o.Checked = func(int, uint64, []store.ID) {}
	}
	if o.Led == nil {
		o.Led = func(int, bool) {}
	}
	if o.Raised == nil {
		o.Raised = func(uint16) error { return nil }
	}
	d := &Databases{
		o: o, names: make(map[store.ID]string), open: make(map[store.ID]*engine.Database),
		pending: make(map[store.ID]*pendingGroup), waiting: waiting{of: make(map[record.Origin]*forwarded)},
		control:  make(chan struct{}, 1),
		outgoing: large.New(o.LargeBytes, o.SmallBytes), judging: large.New(o.LargeBytes, o.SmallBytes),
	}
	d.control <- struct{}{}
	d.start = rand.Uint64() // no other process of this node has the same
	d.numbers.Store(d.start)
	level, err := store.LevelOf(o.Store)
	if err != nil {
		return nil, err
	}
	d.level.Store(uint32(level))
	err = o.Store.Names(func(name string, id store.ID) bool {
		d.names[id] = name
		return true
	})
	if err == nil {
		err = store.Displaced(o.Store, func(name string, id store.ID) { d.names[id] = name })
	}
	return d, err
}

// Bind says which node and catalog these databases are of.
func (d *Databases) Bind(node *cluster.Node, c *catalog.Catalog) {
	d.node, d.catalog = node, c
	c.Share(d)
}

// Void returns how many groups of the log did not follow what their database had. It is 0, or there is a defect.
func (d *Databases) Void() uint64 { return d.void.Load() }

// Forwarded counts the requests that were sent to their home.
func (d *Databases) Forwarded() *Forwards { return &d.sent }

// Home implements [engine.Log].
func (d *Databases) Home(id store.ID) (tenure uint64, ok bool) { return d.node.Home(store.ShardOf(id)) }

// Barrier implements [engine.Log].
func (d *Databases) Barrier(ctx context.Context, id store.ID, atMost time.Duration) error {
	return cluster.BarrierWithin(ctx, d.node, store.ShardOf(id), atMost)
}

// origin returns one that no other request has.
func (d *Databases) origin() record.Origin {
	return record.Origin{Node: d.node.ID(), Number: d.numbers.Add(1)}
}

// Append implements [engine.Log]. It returns when the fate of the group is told.
func (d *Databases) Append(g *engine.Group) {
	p := &pendingGroup{group: g}
	r := record.Group{Database: uint32(g.ID), Base: g.Base}
	for _, part := range g.Parts {
		if part.Batch == nil {
			continue
		}
		from := engine.OriginOf(part)
		origin := record.Origin{Node: record.NodeID(from.Node), Number: from.Number}
		if origin == (record.Origin{}) {
			origin = d.origin()
		}
		p.origins = append(p.origins, origin)
		r.Commits = append(r.Commits, record.Commit{Origin: origin, Effect: part.Batch.EffectUntil()})
	}
	d.mu.Lock()
	d.pending[g.ID] = p
	d.mu.Unlock()
	var err error
	if g.Drop {
		// Nothing else ends it, once the node has: it would keep the catalog from being closed.
		ctx, cancel := d.untilEnd(d.node.Life(), d.o.Deadline)
		_, err = d.node.Append(ctx, store.ShardOf(g.ID), g.Tenure, record.Record{
			Kind: record.Drop, Database: uint32(g.ID), Millis: millisOf(g),
		})
		cancel()
	} else {
		err = d.node.AppendGroup(context.Background(), store.ShardOf(g.ID), g.Tenure, r)
	}
	if d.claim(g.ID, p) == nil {
		return // it was applied, and told so
	}
	switch {
	case errors.Is(err, cluster.ErrTooLarge):
		g.Fail(fault.Wrap(fault.TooLarge, err, "the write is too large for the cluster"))
	case errors.Is(err, shard.ErrUnknown) || !errors.Is(err, cluster.ErrNever):
		g.Tell(engine.NotKnown)
	case errors.Is(err, shard.ErrAgain):
		g.Fail(fault.Wrap(fault.Unavailable, err, "nothing was written: the log of the cluster is full or busy, try again"))
	default:
		g.Tell(engine.Refused)
	}
}

// millisOf returns the time of the drop that a group is.
func millisOf(g *engine.Group) (millis int64) {
	for _, part := range g.Parts {
		if part.Batch != nil {
			millis = part.Batch.Logged.Millis
		}
	}
	return millis
}

// claim returns the pending group of a database if it is the one that is asked for, and has it not be pending any more: whoever
// has claimed a group tells its fate.
func (d *Databases) claim(id store.ID, p *pendingGroup) *pendingGroup {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p == nil || d.pending[id] != p {
		return nil
	}
	delete(d.pending, id)
	return p
}

// nameOf returns the name of a database, "" if there is none.
func nameOf(d *Databases, id store.ID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names[id]
}

// database returns the database with a number, which it opens if need be; nil if there is none.
func (d *Databases) database(id store.ID) (*engine.Database, error) {
	d.mu.Lock()
	db, name := d.open[id], d.names[id]
	d.mu.Unlock()
	if db != nil || name == "" {
		return db, nil
	}
	// Meanwhile it may be dropped.
	db, err := d.catalog.Opened(name, id, func() bool { return nameOf(d, id) != "" })
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if db == nil || d.names[id] == "" {
		return nil, nil
	}
	d.open[id] = db
	return db, nil
}

// known returns the database with a number, once this node knows of all that there are; a fault.NotFound error if there is none.
func (d *Databases) known(ctx context.Context, id store.ID) (*engine.Database, error) {
	db, err := d.database(id)
	if db == nil && err == nil {
		if err := d.node.Barrier(ctx, controlShard); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the nodes do not agree at present, try again")
		}
		db, err = d.database(id)
	}
	if db == nil && err == nil {
		err = fault.New(fault.NotFound, "the database was dropped")
	}
	return db, err
}

// Became is for [cluster.Options.Became].
func (d *Databases) Became(s int, home bool) {
	d.o.Led(s, home)
	for _, db := range d.catalog.AllOpen() { // also those that have followed no record yet
		if store.ShardOf(engine.IDOf(db)) == s {
			go engine.Moved(db)
		}
	}
}
