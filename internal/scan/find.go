package scan

import (
	"errors"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
)

// Bounds say how much is kept of what a scan finds.
type Bounds struct {
	// Kept is how many children are kept at most, but for Reserve more. A query whose
	// limit is higher is refused if it selects more.
	Kept int
	// Reserve is how many are kept beyond a limit, so that not every child that goes
	// makes another pass necessary.
	Reserve int
	// Bytes is how much memory they may take.
	Bytes int
	// All is how much all that is kept may take together; 0 is the usual.
	All int64
}

// DefaultBounds are those of all databases but some of tests.
func DefaultBounds() Bounds { return Bounds{Kept: 5000, Reserve: 256, Bytes: 16 << 20} }

// positionBytes is what a position takes beside its texts.
const positionBytes = 64

func bytesOf(p query.Position) int { return positionBytes + len(p.Key) + p.Value.TextBytes() }

// Find looks at all children of a node and returns where those stand that a query
// selects, as far as the bounds of the pool allow. It fails with a fault.Invalid error if a limit
// asks for more than may be kept.
func Find(n Node, q query.Query) (*Known, error) {
	g := &gatherer{query: q, Bounds: n.Pool.bounds}
	p := n.pass(q.Order)
	_, err := p.each(func(c child) error { return g.add(c.Position) })
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	known, err := g.known()
	if err == nil {
		known.cost = p.cost
	}
	return known, err
}

// errKept is the refusal of a query that selects more than may be kept.
func errKept(q query.Query) error {
	index, _ := q.Order.Index()
	return fault.New(fault.Invalid, `too much to be ordered without an index, add ".indexOn": %q to the rules or lower the limit`, index.String())
}

// A gatherer keeps the best of the positions that it is given.
type gatherer struct {
	query query.Query
	Bounds
	found   []query.Position
	bytes   int
	horizon *query.Position
	many    bool
}

// open reports whether the limit, if there is one, allows more than may be kept.
func (g *gatherer) open() bool { return g.query.Limit == 0 || g.query.Limit > g.Kept }

// keep returns how many are kept.
func (g *gatherer) keep() int {
	if g.open() {
		return g.Kept
	}
	return g.query.Limit + g.Reserve
}

// add adds a position, unless it is outside the bounds of the query or beyond what is
// kept. It returns errEnough if nothing can be kept at all.
func (g *gatherer) add(p query.Position) error {
	if !g.query.Contains(p) || g.horizon != nil && compare(g.query, p, *g.horizon) > 0 {
		return nil
	}
	p = query.Position{Value: p.Value.Clone(), Key: strings.Clone(p.Key)}
	g.found = append(g.found, p)
	g.bytes += bytesOf(p)
	if g.open() && g.exceeds() {
		g.found, g.bytes, g.many = nil, 0, true
		return errEnough
	}
	if len(g.found) > 2*g.keep() || g.bytes > 2*g.Bytes {
		return g.prune()
	}
	return nil
}

func (g *gatherer) exceeds() bool { return len(g.found) > g.keep() || g.bytes > g.Bytes }

// prune sorts what was found, and forgets what is beyond what is to be kept.
func (g *gatherer) prune() error {
	g.sort()
	left := len(g.found)
	for ; left > g.keep() || g.bytes > g.Bytes && left > g.query.Limit; left-- {
		g.bytes -= bytesOf(g.found[left-1])
	}
	if g.bytes > g.Bytes {
		return errKept(g.query)
	}
	if left == len(g.found) {
		return nil
	}
	clear(g.found[left:])
	g.found = g.found[:left]
	if left > 0 {
		last := g.found[left-1]
		g.horizon = &last
	}
	return nil
}

// sort sorts what was found, in the direction in which the limit counts.
func (g *gatherer) sort() {
	slices.SortFunc(g.found, func(a, b query.Position) int { return compare(g.query, a, b) })
}

// known returns what was gathered.
func (g *gatherer) known() (*Known, error) {
	if g.many && g.query.Limit > 0 {
		return nil, errKept(g.query)
	}
	if g.many {
		return &Known{many: true, bounds: g.Bounds}, nil
	}
	if err := g.prune(); err != nil {
		return nil, err
	}
	return &Known{list: slices.Clip(g.found), horizon: g.horizon, bytes: g.bytes, bounds: g.Bounds}, nil
}

// compare orders positions in the direction in which the limit of a query counts.
func compare(q query.Query, a, b query.Position) int {
	if q.Last {
		a, b = b, a
	}
	return query.Compare(a, b)
}
