package scan

import (
	"bytes"
	"errors"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A Node is a node whose children are looked at.
type Node struct {
	// Tree must be that of a view.
	Tree store.Tree
	Path tree.Path
	// Pool bounds how many long passes run at a time, and what is kept.
	Pool *Pool
	// Most, unless it is 0, is how much a pass may cost, about as many children. One that
	// would cost more fails with store.ErrMany. It is for passes that others wait for.
	Most int
}

// splitCost is what a child of several rows costs more than one of a single short row,
// and costBytes how many bytes of a row cost as much as another row.
const (
	splitCost = 10
	costBytes = 1024
)

// A child is one that a pass has come to.
type child struct {
	query.Position
	row  []byte    // its chunk; nil if it has several rows, or none of its own
	node tree.Node // if the parent is in a chunk
}

// A pass goes over the children of a node, in the order of their keys.
type pass struct {
	Node
	order query.Order
	turn  turn
	seen  int
	cost  int
}

func (n Node) pass(order query.Order) *pass {
	return &pass{Node: n, order: order, turn: turn{pool: n.Pool}}
}

// errEnough ends a pass before its end.
var errEnough = errors.New("enough was seen")

// each calls yield with every child until it fails. It reports whether the node has
// children; of a leaf, and of no data, there is nothing to select.
func (p *pass) each(yield func(child) error) (object bool, err error) {
	defer p.turn.end()
	reader := p.Tree.Reader()
	l := reader.Locate(p.Path)
	c, rows, err := reader.Open(l)
	switch {
	case err != nil:
		return false, err
	case c != nil:
		n, err := reader.Decode(l, c)
		below := layout.Below(p.Path, c.Depth)
		c.Release()
		if err != nil {
			return false, err
		}
		return p.eachHeld(n.At(below), yield)
	case rows == nil:
		return false, nil
	}
	err = p.eachRow(reader, rows, l.Key, yield)
	return true, errors.Join(err, damage.Mark(rows.Close()))
}

// eachHeld is each for a node in a chunk.
func (p *pass) eachHeld(n tree.Node, yield func(child) error) (object bool, err error) {
	for key, node := range n.Children() {
		if err := p.step(0); err != nil {
			return true, err
		}
		if err := yield(child{Position: query.Position{Value: p.order.Value(node), Key: key}, node: node}); err != nil {
			return true, err
		}
	}
	return n.IsObject(), nil
}

// eachRow is each for a split node with a key.
func (p *pass) eachRow(reader seek.Reader, rows *seek.Stepper, parent []byte, yield func(child) error) error {
	for ok := rows.SeekGE(append(bytes.Clone(parent), layout.PriorityMark, 0)); ok; {
		end, err := layout.ChildEnd(rows.Key(), len(parent))
		if err != nil {
			return damage.Mark(err)
		}
		found, err := p.look(reader, rows, len(parent), end)
		if err != nil {
			return err
		}
		if err := yield(found); err != nil {
			return err
		}
		ok = rows.SkipChild(end)
	}
	return damage.Mark(rows.Error())
}

// look returns the child that the current row belongs to. Its key is the first end bytes
// of the row's.
func (p *pass) look(reader seek.Reader, rows *seek.Stepper, parent, end int) (c child, err error) {
	if c.Key, _, err = layout.CutComponent(rows.Key()[parent:end]); err != nil {
		return c, damage.Mark(err)
	}
	if len(rows.Key()) > end {
		if err := p.step(splitCost); err != nil {
			return c, err
		}
		c.Value, err = reader.OrderValue(p.Path.Child(c.Key), p.order)
		return c, err
	}
	if c.row, err = rows.ValueAndErr(); err != nil {
		return c, damage.Mark(err)
	}
	if err := p.step(len(c.row) / costBytes); err != nil {
		return c, err
	}
	below, _ := p.order.Child()
	summary, err := layout.SummarizeIn(c.row, below)
	if err != nil {
		return c, damage.AtRow(rows.Key(), err)
	}
	c.Value = summary.Value
	if p.order == query.ByPriority() {
		c.Value = query.LeafValue(summary.Priority)
	}
	return c, nil
}

// step counts a child, which costs some more than others. After the first few it waits
// for the pass's turn.
func (p *pass) step(more int) error {
	p.seen++
	if p.cost += 1 + more; p.Most > 0 {
		if p.cost > p.Most {
			return store.ErrMany
		}
		return nil
	}
	waiter := p.Tree.Reader().Waiter
	if p.cost > freeCost {
		if err := p.turn.begin(waiter); err != nil {
			return err
		}
	}
	return waiter.Left(p.seen)
}
