package catalog

import (
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
)

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
func (c *Catalog) Share(others Others) { c.others = others }

// Opened returns the database with a number, which it opens if need be. It is for who applies what the others have decided, and
// knows its name.
func (c *Catalog) Opened(name string, id store.ID) (*engine.Database, error) {
	c.mu.RLock()
	d := c.open[name]
	c.mu.RUnlock()
	if d != nil && engine.IDOf(d) == id {
		return d, nil
	}
	return c.openAs(name, id)
}

// Forget has a name not be that of a database any more, unless it is another's already.
func (c *Catalog) Forget(name string, id store.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.open[name]; d != nil && engine.IDOf(d) == id {
		delete(c.open, name)
	}
}
