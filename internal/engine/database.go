package engine

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// DefaultDeadline is how long a write waits for its commit.
const DefaultDeadline = 10 * time.Second

// Options configure a Database.
type Options struct {
	// Clock is shared by the databases of a store.
	Clock *state.Clock
	// Deadline is how long a write may take, DefaultDeadline by default.
	Deadline time.Duration
	// Name is what the database is called: tokens may be for it alone.
	Name string
	// Streams bounds what the watches of all databases keep that is not taken.
	Streams *hub.Budget
	// Verifier judges credentials; one that knows no issuers by default.
	Verifier *auth.Verifier
	// Metrics are shared by the databases of a store; its own by default.
	Metrics *state.Metrics
	// Scans is what the scans of all databases share; that of all who have none by default.
	Scans *scan.Pool
	// Log, if set, is what several nodes agree by on the order of commits.
	Log Log
	// Observers are told what happens; nil for none.
	Observers *state.Observers
	// Limits are for tests; the usual ones by default.
	Limits *Limits
}

// usualScans is the pool of databases that were given none.
var usualScans = scan.NewPool(scan.DefaultBounds())

// A Database is one tree with one order of writes. All methods are safe for
// concurrent use. Soon after the last write it has no goroutine.
type Database struct {
	source   state.Source
	deadline time.Duration

	// published is what the newest views show of this database.
	published atomic.Pointer[state.Published]

	ended   chan struct{} // closed by Close
	watches watch.Set
	writer  writer
	indexer indexer
}

// Open returns the database with a number in a store. There must be only one
// Database for it at a time.
func Open(s *store.Store, id store.ID, opts Options) (*Database, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	d := &Database{
		source: state.Source{
			Store: s, ID: id, Name: opts.Name, Clock: opts.Clock, Verifier: opts.Verifier, Metrics: opts.Metrics,
			Scans: opts.Scans, Observers: opts.Observers, HeavyBytes: opts.Limits.HeavyBytes,
		},
		deadline: opts.Deadline,
		ended:    make(chan struct{}),
	}
	d.writer.db, d.writer.limits = d, opts.Limits
	d.indexer.db = d
	if err := d.load(); err != nil {
		return nil, state.Classify(err)
	}
	if opts.Log != nil {
		d.writer.group = newGrouping(&d.writer, opts.Log)
	}
	d.watches.Init(d, &d.source, &opts.Limits.Watch, opts.Streams)
	d.indexer.start()
	return d, nil
}

// complete sets what was left to the defaults.
func (opts *Options) complete() (err error) {
	if opts.Limits == nil {
		opts.Limits = usualLimits
	}
	if opts.Deadline == 0 {
		opts.Deadline = DefaultDeadline
	}
	if opts.Metrics == nil {
		opts.Metrics = &state.Metrics{}
	}
	if opts.Scans == nil {
		opts.Scans = usualScans
	}
	if opts.Verifier == nil {
		opts.Verifier, err = auth.New(auth.Options{})
	}
	return err
}

// load reads where the order of writes goes on, and publishes it.
func (d *Database) load() error {
	view := d.source.Store.View()
	defer view.Release()
	t := view.Tree(d.source.ID)
	position, err := t.Position()
	if err != nil {
		return err
	}
	rows, err := t.Settings()
	if err != nil {
		return err
	}
	settings, err := state.NewSettings(rows)
	if err != nil {
		return err
	}
	unbuilt, err := t.HasUnbuilt()
	if err != nil {
		return err
	}
	w := &d.writer
	w.position, w.settings = position, settings
	if unbuilt {
		w.begun = position
	}
	d.published.Store(&state.Published{Position: position, Begun: w.begun, Settings: settings})
	return nil
}

// Close refuses further writes and waits until those that were queued are
// handed to the store. It ends all watches. Reads go on, unless the database was dropped.
func (d *Database) Close() {
	d.writer.mu.Lock()
	if !d.writer.closed {
		d.writer.closed = true
		close(d.ended)
	}
	d.writer.mu.Unlock()
	d.writer.goroutines.Wait()
	d.watches.Close()
}

// View returns the database as of its newest durable commit, which is no older than
// the newest that was answered.
func (d *Database) View() *state.View {
	view, published := d.view()
	return d.source.View(view, published)
}

// Published returns what belongs to the newest view, or to one that is about to be.
func (d *Database) Published() *state.Published { return d.published.Load() }

// Watches returns the watches of the database.
func (d *Database) Watches() *watch.Set { return &d.watches }

// Name returns the name of the database.
func (d *Database) Name() string { return d.source.Name }

// Epoch returns the epoch of the database's positions. No other database has the
// same, be it in the same store or under the same name after this one was dropped:
// their positions cannot be compared either.
func (d *Database) Epoch() uint64 { return d.source.Epoch() }

// ETagOf returns the ETag that a location has when n is there.
func (d *Database) ETagOf(n tree.Node) string { return d.source.ETagOf(n) }

// view returns the newest view and what belongs to it. The syncer stores what
// is published just before it publishes the view, so for a moment the first can
// be ahead of the second.
func (d *Database) view() (*store.View, *state.Published) {
	for {
		v := d.source.Store.View()
		if p := d.published.Load(); p.Since <= v.Number() {
			return v, p
		}
		v.Release()
		runtime.Gosched()
	}
}
