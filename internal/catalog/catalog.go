// Package catalog finds, makes and drops databases by name.
//
// A Catalog opens a database when it is first asked for and keeps it; an open
// database that nobody uses costs some hundred bytes and no goroutine.
package catalog

import (
	"errors"
	"maps"
	"regexp"
	"sync"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
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

	mu     sync.RWMutex
	open   map[string]*engine.Database
	closed bool
}

// New returns the catalog of a store.
func New(s *store.Store, opts engine.Options) *Catalog {
	return &Catalog{store: s, opts: opts, open: make(map[string]*engine.Database)}
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
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load(name)
}

// load opens a database. The lock is held.
func (c *Catalog) load(name string) (*engine.Database, error) {
	if c.closed {
		return nil, fault.Wrap(fault.Unavailable, store.ErrClosed, "the server is stopping")
	}
	if d := c.open[name]; d != nil {
		return d, nil
	}
	id, found, err := c.store.Find(name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "there is no database %q", name)
	}
	opts := c.opts
	opts.Name = name
	d, err := engine.Open(c.store, id, opts)
	if err != nil {
		return nil, err
	}
	c.open[name] = d
	return d, nil
}

// Create makes a database; a fault.Conflict error if there is one already.
func (c *Catalog) Create(name string) (*engine.Database, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fault.Wrap(fault.Unavailable, store.ErrClosed, "the server is stopping")
	}
	if _, err := c.store.Create(name); errors.Is(err, store.ErrExists) {
		return nil, fault.Wrap(fault.Conflict, err, "the database %q exists already", name)
	} else if err != nil {
		return nil, err
	}
	return c.load(name)
}

// Drop removes a database with all it holds.
func (c *Catalog) Drop(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := c.load(name)
	if err != nil {
		return err
	}
	delete(c.open, name)
	d.Close()
	return c.store.Drop(name)
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

// Close closes all databases. The store stays open.
func (c *Catalog) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, d := range c.open {
		d.Close()
	}
}
