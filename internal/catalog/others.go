package catalog

import (
	"maps"
	"slices"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// This file has what is different where several nodes have the same databases.
//
// A node may learn that a name is that of a new database before it learns that the old one was dropped: these are records of two
// shards. Until then it has both, and both follow the log. So a database is kept by its number, and for each number there is one. By its name the
// catalog finds the one that the store has under that name, which is the newest.

// Others are the nodes of a cluster, this one among them, which have the same databases and decide together which
// there are.
type Others interface {
	// Create makes a database, and returns when this node has it; store.ErrExists if there is one.
	Create(name string) error
	// Drop removes a database, and returns when this node has it no more.
	Drop(d *engine.Database) error
	// Await returns when this node has all databases that were made before the call.
	Await() error
}

// Share has others decide which databases there are. It is called before anything else.
func (c *Catalog) Share(others Others) {
	c.others = others
	c.byID = make(map[store.ID]*engine.Database)
}

// Opened returns the database with a number, which it opens if need be. It is for who applies what the others have decided, and
// knows its name. It returns nil if the database is not there any more when it is its turn to be opened: exists says so, until Forget is called.
func (c *Catalog) Opened(name string, id store.ID, exists func() bool) (*engine.Database, error) {
	if d := c.numbered(id); d != nil {
		return d, nil
	}
	c.opening.Lock()
	defer c.opening.Unlock()
	moves := c.movesSoFar()
	if !exists() {
		return nil, nil
	}
	now, found, err := c.store.Find(name)
	if err != nil {
		return nil, err
	}
	return c.openOnce(name, id, found && now == id, moves)
}

// openShared opens the database that has a name now. The name is held, and may become that of another database all the same, or of none.
func (c *Catalog) openShared(name string) (*engine.Database, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	moves := c.movesSoFar()
	id, found, err := c.store.Find(name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, state.NoDatabase(name)
	}
	return c.openOnce(name, id, true, moves)
}

// numbered returns the database with a number if it is open.
func (c *Catalog) numbered(id store.ID) *engine.Database {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id]
}

// AllOpen returns the databases that are open, for who tells them that homes have changed: those that are being opened are told when they
// are open. It waits for nothing.
func (c *Catalog) AllOpen() []*engine.Database {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moves++
	return slices.Collect(maps.Values(c.byID))
}

// movesSoFar counts how often homes have changed.
func (c *Catalog) movesSoFar() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.moves
}

// openOnce opens a database unless it is open, and has its name be its own if isNamed. Databases are opened without their names being held, too, so
// only one is opened at a time: the lock of opening is held. If homes have changed since there were so many moves, it is told.
func (c *Catalog) openOnce(name string, id store.ID, isNamed bool, moves uint64) (*engine.Database, error) {
	d := c.numbered(id)
	isNew := d == nil
	if isNew {
		var err error
		if d, err = c.openAs(name, id); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID[id] = d
	if isNamed {
		c.open[name] = d
	}
	if isNew && c.moves != moves {
		go engine.Moved(d)
	}
	return d, nil
}

// Named is called when the store has a name for a new database. The one that had it before, if that is not dropped yet, is found by
// its number alone from now on.
func (c *Catalog) Named(name string, id store.ID) {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.open[name]; d != nil && engine.IDOf(d) != id {
		delete(c.open, name)
	}
}

// Forget is called when the store has a database no more. Its name may be another's already.
func (c *Catalog) Forget(name string, id store.ID) {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
	if d := c.open[name]; d != nil && engine.IDOf(d) == id {
		delete(c.open, name)
	}
}
