// Package catalog finds, makes and drops databases by name.
//
// A Catalog opens a database when it is first asked for and keeps it; an open
// database that no client uses costs some hundred bytes and no goroutine.
//
// Making, opening and dropping a database takes as long as the disk does. Meanwhile its name
// is held, and what would make, open or drop a database of the same name waits. Requests for
// other names never wait, and those for a database that is being dropped find it until it is
// gone.
//
// The order of locks: first a name is held, one at a time. Then comes, in a cluster, the lock of
// opening, then those of engine and store. The lock of the catalog guards its maps alone and is the last: no other lock is
// taken and nothing is called while it is held.
package catalog

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// names is the form of a database name: it can be the first label of a host.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckName reports why a database cannot have a name, or nil.
func CheckName(name string) error {
	if names.MatchString(name) {
		return nil
	}
	return fault.New(fault.Invalid,
		"invalid database name %.80q: it must be 1 to 63 lower-case letters, digits and hyphens, and not begin with a hyphen", name)
}

// A Catalog holds the databases of a store. It is safe for concurrent use.
type Catalog struct {
	store *store.Store
	opts  engine.Options

	// others, if not nil, are the nodes that have the same databases.
	others  Others
	opening sync.Mutex // held while a database is opened, if there are others

	mu     sync.RWMutex
	open   map[string]*engine.Database
	byID   map[store.ID]*engine.Database // all that are open, if there are others: see others.go
	held   map[string]chan struct{}      // names, with what is closed when each is given back
	moves  uint64                        // how often homes have changed: see others.go
	closed bool
}

// New returns the catalog of a store.
func New(s *store.Store, opts engine.Options) *Catalog {
	return &Catalog{store: s, opts: opts, open: make(map[string]*engine.Database), held: make(map[string]chan struct{})}
}

// Database returns the database with a name; a fault.NotFound error if there is
// none.
func (c *Catalog) Database(name string) (*engine.Database, error) {
	c.mu.RLock()
	d := c.open[name]
	c.mu.RUnlock()
	if d != nil {
		return d, nil
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	// The catalog keeps the name, which may be a part of a whole request.
	name = strings.Clone(name)
	d, err := c.hold(name)
	if err != nil {
		return nil, err
	}
	defer c.giveBack(name)
	if d != nil {
		return d, nil
	}
	return c.load(name)
}

// hold waits until a name is free and holds it until giveBack. It returns the database
// of that name if it is open, else nil.
func (c *Catalog) hold(name string) (*engine.Database, error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, fault.Wrap(fault.Unavailable, store.ErrClosed, "the server is stopping")
		}
		free := c.held[name]
		if free == nil {
			c.held[name] = make(chan struct{})
			d := c.open[name]
			c.mu.Unlock()
			return d, nil
		}
		c.mu.Unlock()
		<-free
	}
}

func (c *Catalog) giveBack(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.held[name])
	delete(c.held, name)
}

// load opens a database that is not open. Its name is held.
func (c *Catalog) load(name string) (*engine.Database, error) {
	id, found, err := c.store.Find(name)
	if err == nil && !found && c.others != nil {
		if err = c.others.Await(); err == nil { // another node may have made it
			id, found, err = c.store.Find(name)
		}
	}
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, state.NoDatabase(name)
	}
	if c.others != nil {
		return c.openShared(name)
	}
	d, err := c.openAs(name, id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[name] = d
	return d, nil
}

// openAs opens the database with a number.
func (c *Catalog) openAs(name string, id store.ID) (*engine.Database, error) {
	opts := c.opts
	opts.Name = name
	return engine.Open(c.store, id, opts)
}

// Create makes a database; a fault.Conflict error if there is one already.
func (c *Catalog) Create(name string) (*engine.Database, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	name = strings.Clone(name)
	if _, err := c.hold(name); err != nil {
		return nil, err
	}
	defer c.giveBack(name)
	if err := c.create(name); errors.Is(err, store.ErrExists) {
		return nil, fault.Wrap(fault.Conflict, err, "the database %q exists already", name)
	} else if err != nil {
		return nil, state.Classify(err)
	}
	c.mu.RLock()
	d := c.open[name] // the nodes have made it, and somebody has written to it
	c.mu.RUnlock()
	if d != nil {
		return d, nil
	}
	return c.load(name)
}

// create makes a database in the store. Its name is held.
func (c *Catalog) create(name string) error {
	if c.others != nil {
		return c.others.Create(name)
	}
	_, err := c.store.Create(name)
	return err
}

// Drop removes a database with all it holds. Requests that have it find it until it is
// removed for good.
func (c *Catalog) Drop(name string) error {
	d, err := c.hold(name)
	if err != nil {
		return err
	}
	defer c.giveBack(name)
	if d == nil {
		if d, err = c.load(name); err != nil {
			return err
		}
	}
	if err := c.drop(d); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name] == d {
		delete(c.open, name)
	}
	return nil
}

func (c *Catalog) drop(d *engine.Database) error {
	if c.others != nil {
		return c.others.Drop(d)
	}
	return d.Drop()
}

// Names returns the names of all databases, in order.
func (c *Catalog) Names() ([]string, error) {
	var list []string
	err := c.store.Names(func(name string, _ store.ID) bool {
		list = append(list, name)
		return true
	})
	return list, err
}

// WithHooks calls yield with the names of the databases that have webhooks, or had some.
func (c *Catalog) WithHooks(yield func(name string)) error {
	view := c.store.View()
	defer view.Release()
	var failed error
	err := c.store.Names(func(name string, id store.ID) bool {
		has, err := view.Tree(id).Reader().HasSetting(state.SettingHooks)
		if has || err != nil { // opening it says why it cannot be read
			yield(name)
		}
		failed = errors.Join(failed, err)
		return true
	})
	return errors.Join(err, failed)
}

// Each calls yield with the databases that are open, in any order, until it
// returns false.
func (c *Catalog) Each(yield func(name string, d *engine.Database) bool) {
	c.mu.RLock()
	open := maps.Clone(c.open)
	c.mu.RUnlock()
	for name, d := range open {
		if !yield(name, d) {
			return
		}
	}
}

// Close closes all databases, when those that are being made, opened or dropped are. The
// store stays open.
func (c *Catalog) Close() {
	c.mu.Lock()
	c.closed = true // from here on no name is held any more
	held := slices.Collect(maps.Values(c.held))
	c.mu.Unlock()
	for _, free := range held {
		<-free
	}
	c.Each(func(_ string, d *engine.Database) bool {
		d.Close()
		return true
	})
	c.mu.RLock()
	shared := slices.Collect(maps.Values(c.byID))
	c.mu.RUnlock()
	for _, d := range shared {
		d.Close() // once more does nothing
	}
}
