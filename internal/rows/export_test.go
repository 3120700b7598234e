package rows

import (
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/tree"
)

// CopyWrite returns the write of a copy, which is made if nothing has changed by then.
func CopyWrite(d *engine.Database, from, to tree.Path) (engine.Request, error) {
	c := &copying{database: d, from: from, to: to, maxBytes: 1 << 20, claim: &budget.Claim{}}
	return c.read(nil)
}
