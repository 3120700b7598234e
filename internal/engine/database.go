package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/store"
)

// Limits that protect a database from its writers.
const (
	// maxQueued is how many writes may wait for their turn; more are refused.
	maxQueued = 4096
	// heavyBytes is how much a write may read or encode at its turn. More is
	// done before it.
	heavyBytes = 64 << 10
	// maxRounds is how often what was done before a write's turn is done again
	// because the data changed meanwhile.
	maxRounds = 3
	// DefaultDeadline is how long a write waits for its commit.
	DefaultDeadline = 10 * time.Second
)

// Options configure a Database.
type Options struct {
	// Clock is shared by the databases of a store.
	Clock *Clock
	// Deadline is how long a write may take, DefaultDeadline by default.
	Deadline time.Duration
	// Name is what the database is called: tokens may be for it alone.
	Name string
	// Streams bounds what the watches of all databases keep that is not taken.
	Streams *hub.Budget
	// Verifier judges credentials; one that knows no issuers by default.
	Verifier *auth.Verifier
	// Metrics are shared by the databases of a store; its own by default.
	Metrics *Metrics
	// Unindexed, if set, is told of queries that were refused for the lack of an
	// index.
	Unindexed func(database, path, index string)
}

// A Database is one tree with one order of writes. All methods are safe for
// concurrent use. Soon after the last write it has no goroutine.
type Database struct {
	store *store.Store
	id    store.ID
	opts  Options

	// published is what the newest views show of this database.
	published atomic.Pointer[published]

	mu      sync.Mutex
	queue   []*operation
	running bool // there is a writer goroutine, which takes from the queue
	idle    bool // it waits to be woken
	closed  bool
	// maintaining says that a goroutine works on indexes.
	maintaining bool
	writers     sync.WaitGroup

	kept []*operation  // for the next requests, while there is a writer
	wake chan struct{} // wakes the writer, made for the first; it has room when that is idle

	ended   chan struct{} // closed by Close
	watches watches

	// The rest belongs to the writer goroutine.

	position uint64 // of the newest commit
	settings *settings
	recent   recent
	frontier store.Frontier
}

// published is the part of a database's state that is not in its rows.
type published struct {
	since    uint64 // the number of the first view that it belongs to
	position uint64
	settings *settings
}

// Open returns the database with a number in a store. There must be only one
// Database for it at a time.
func Open(s *store.Store, id store.ID, opts Options) (*Database, error) {
	if opts.Deadline == 0 {
		opts.Deadline = DefaultDeadline
	}
	if opts.Metrics == nil {
		opts.Metrics = &Metrics{}
	}
	if opts.Verifier == nil {
		var err error
		if opts.Verifier, err = auth.New(auth.Options{}); err != nil {
			return nil, err
		}
	}
	view := s.View()
	defer view.Release()
	position, err := view.Tree(id).Position()
	if err != nil {
		return nil, classify(err)
	}
	rows, err := view.Tree(id).Settings()
	if err != nil {
		return nil, classify(err)
	}
	d := &Database{store: s, id: id, opts: opts, position: position, ended: make(chan struct{})}
	if d.settings, err = newSettings(rows, nil); err != nil {
		return nil, err
	}
	d.recent.position = position
	d.published.Store(&published{position: position, settings: d.settings})
	d.watches.init(d)
	d.startMaintenance()
	return d, nil
}

// Close refuses further writes and waits until those that were queued are
// handed to the store. It ends all watches. Reads go on.
func (d *Database) Close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.ended)
	}
	d.mu.Unlock()
	d.writers.Wait()
	d.watches.close()
}

// view returns the newest view and what belongs to it. The syncer stores what
// is published just before it publishes the view, so for a moment the first can
// be ahead of the second.
func (d *Database) view() (*store.View, *published) {
	for {
		v := d.store.View()
		if p := d.published.Load(); p.since <= v.Number() {
			return v, p
		}
		v.Release()
		runtime.Gosched()
	}
}
