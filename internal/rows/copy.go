package rows

import (
	"context"
	"errors"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A CopyRequest says which node is to be copied, or moved, where to. ETag, if not empty, is the
// one that the node must have.
type CopyRequest struct {
	From string `json:"from"`
	To   string `json:"to"`
	Move bool   `json:"move"`
	ETag string `json:"etag"`
	// By is who is noted to have written it.
	By string `json:"-"`
}

// copyTries is how often a node is read again because it changed while it was copied.
const copyTries = 8

// Copy copies a node to where there is no data, exactly and with all its priorities, or moves
// it. It is one write: nobody sees a part of it, and what is copied is the node as it is at
// that moment. It returns the position of the commit.
//
// It fails with a fault.Conflict error if there is data at the destination, with a
// fault.Precondition error if the node has another ETag, with a fault.NotFound error if there
// is none, with a fault.TooLarge error if its text takes more than maxBytes, and with a
// fault.Unavailable error if the claim, which is for the memory that it takes, cannot grow.
func Copy(ctx context.Context, d *engine.Database, req CopyRequest, maxBytes int, claim *budget.Claim) (position uint64, err error) {
	c := &copying{database: d, move: req.Move, etag: req.ETag, by: req.By, maxBytes: maxBytes, claim: claim}
	if c.from, err = tree.ParsePath(req.From); err == nil {
		c.to, err = tree.ParsePath(req.To)
	}
	if err != nil {
		return 0, fault.Wrap(fault.Invalid, err, "from and to must be valid paths: %v", err)
	}
	if c.move && c.from.Overlaps(c.to) {
		return 0, fault.New(fault.Invalid, "a node cannot be moved to %s from %s: one is below the other", c.to, c.from)
	}
	for range copyTries {
		write, err := c.read(ctx.Done())
		if err != nil {
			return 0, err
		}
		commit, err := d.Write(ctx, write)
		if fault.KindOf(err) != fault.Precondition {
			return commit.Position, err
		}
	}
	return 0, fault.New(fault.Unavailable, "the node at %s changes too often to be copied, try again", c.from)
}

// A copying is a copy under way.
type copying struct {
	database *engine.Database
	from, to tree.Path
	move     bool
	etag, by string
	maxBytes int
	claim    *budget.Claim
}

// read reads the node, and returns the write that copies it if nothing has changed by then.
func (c *copying) read(done <-chan struct{}) (engine.Request, error) {
	v := c.database.View()
	defer v.Close()
	v.Until(done)
	tag, err := v.ETag(c.from)
	if err != nil {
		return engine.Request{}, err
	}
	if c.etag != "" && tag != c.etag {
		return engine.Request{}, fault.New(fault.Precondition, "the node at %s has another ETag by now", c.from)
	}
	if tag == state.NullETag {
		return engine.Request{}, fault.New(fault.NotFound, "there is no data at %s", c.from)
	}
	occupied, err := v.Tree().Exists(c.to)
	if err != nil {
		return engine.Request{}, state.Classify(err)
	}
	if occupied {
		return engine.Request{}, fault.New(fault.Conflict, "there is data at %s already", c.to)
	}
	if err := c.checkAbove(v); err != nil {
		return engine.Request{}, err
	}
	n, err := c.node(v)
	if err != nil {
		return engine.Request{}, err
	}
	also := []engine.Condition{{Path: c.to, ETag: state.NullETag}, {Path: c.from, ETag: tag}}
	if !c.to.IsRoot() { // nothing is there either if a client puts a value above it by then
		also = append(also, engine.Condition{Path: c.to.Parent()})
	}
	return engine.Request{Write: c.write(n), Also: also, Who: auth.Identity{Admin: true, Operator: true, By: c.by}}, nil
}

// checkAbove refuses a destination below a value, which the copy would replace.
func (c *copying) checkAbove(v *state.View) error {
	for at := c.to; !at.IsRoot(); {
		at = at.Parent()
		kind, err := v.Tree().Kind(at)
		if err != nil {
			return state.Classify(err)
		}
		if kind != tree.Null {
			return fault.New(fault.Conflict, "there is a value at %s, which a copy below it would replace", at)
		}
	}
	return nil
}

// firstCopyBytes is how large a node is taken to be before it is read.
const firstCopyBytes = 64 << 10

// hold reads the node. The memory that it takes is claimed before: it is read with a bound, and
// again with one that is four times as large if it is larger.
func (c *copying) hold(v *state.View) (tree.Node, error) {
	for limit := min(firstCopyBytes, c.maxBytes); ; limit = min(4*limit, c.maxBytes) {
		if !c.claim.Grow(int64(limit)) {
			return tree.Node{}, fault.New(fault.Unavailable, "the server has no memory for this copy at the moment, try again")
		}
		n, err := v.Tree().Node(c.from, limit)
		if !errors.Is(err, store.ErrTooLarge) {
			return n, state.Classify(err)
		}
		if limit == c.maxBytes {
			return n, fault.Wrap(fault.TooLarge, err, "the node at %s takes more than %d bytes: export and import it", c.from, c.maxBytes)
		}
	}
}

// node reads the node, for the depth of its destination.
func (c *copying) node(v *state.View) (tree.Node, error) {
	n, err := c.hold(v)
	if err != nil {
		return n, err
	}
	if deepest := c.to.Depth() + depth(n); deepest > tree.MaxDepth {
		return n, fault.New(fault.Invalid, "the copy at %s would be %d levels deep, at most %d are allowed", c.to, deepest, tree.MaxDepth)
	}
	return n, nil
}

// depth returns how many keys are above the deepest leaf of a node.
func depth(n tree.Node) (deepest int) {
	for _, child := range n.Children() {
		deepest = max(deepest, 1+depth(child))
	}
	return deepest
}

// write returns the write that puts the node where it is to be, and takes it away from where
// it was if it is moved.
func (c *copying) write(n tree.Node) tree.Write {
	if !c.move {
		return tree.Put(c.to, n)
	}
	at := c.from
	for !at.Contains(c.to) {
		at = at.Parent()
	}
	return tree.Write{At: at, Patch: true, Assignments: []tree.Assignment{{Path: c.to, Node: n}, {Path: c.from}}}
}
