// Package compare finds where two trees differ: two moments of one database, or what
// was restored and what there is.
//
// Most of two such trees is alike, row by row. So the rows of both are walked side by side,
// and only where they differ are nodes looked at. A place that only one tree has is told
// once, however much is below it, and passed by a seek: the cost is that of reading both
// trees once at most, and memory does not grow with them.
package compare

import (
	"bytes"
	"errors"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A Kind says how a place differs.
type Kind byte

// The kinds of differences.
const (
	// Gone is a place that has data in the first tree only, New one that has some in the
	// second only.
	Gone Kind = iota + 1
	New
	// Changed is a place with a leaf in one tree and another leaf, or an object, in the
	// other.
	Changed
	// Priority is a place where only the priority differs.
	Priority
)

// String returns the word for people.
func (k Kind) String() string {
	return [...]string{"", "gone", "new", "changed", "priority"}[k]
}

// A Difference is a place where two trees differ. No place below it is told of, unless only
// its priority differs.
type Difference struct {
	Path tree.Path
	Kind Kind
}

// Trees calls yield with the differences of two trees at and below a path, until it
// returns an error, or nobody waits for one of the trees any more. Those below a node come in
// the order of keys.
func Trees(then, now store.Tree, p tree.Path, yield func(Difference) error) error {
	c := &comparison{sides: [2]store.Tree{then, now}, yield: yield}
	return c.place(p)
}

// A comparison is one that is under way.
type comparison struct {
	sides [2]store.Tree // then, now
	yield func(Difference) error
	steps int // rows and places that were looked at
}

// left fails if nobody waits for the result any more.
func (c *comparison) left() error {
	for _, t := range c.sides {
		if err := t.Reader().Waiter.Left(c.steps); err != nil {
			return err
		}
	}
	c.steps++
	return nil
}

// only is the kind of a place that just one side has.
var only = [2]Kind{Gone, New}

func (c *comparison) tell(p tree.Path, k Kind) error { return c.yield(Difference{p, k}) }

// A held is what a tree has at a place: a node that is read, or the rows of one that is
// split, or neither.
type held struct {
	node tree.Node
	rows *seek.Stepper
}

func (h held) isNull() bool { return h.rows == nil && h.node.IsNull() }

// open finds what a side has at a path. The rows must be closed.
func (c *comparison) open(side int, p tree.Path) (held, error) {
	r := c.sides[side].Reader()
	l := r.Locate(p)
	chunk, rows, err := r.Open(l)
	if err != nil || chunk == nil {
		return held{rows: rows}, err
	}
	defer chunk.Release()
	n, err := r.Decode(l, chunk)
	if err != nil {
		return held{}, err
	}
	return held{node: n.At(layout.Below(p, chunk.Depth))}, nil
}

// place compares one place, whatever each tree has there.
func (c *comparison) place(p tree.Path) (err error) {
	if err := c.left(); err != nil {
		return err
	}
	var both [2]held
	for side := range both {
		if both[side], err = c.open(side, p); err != nil {
			break
		}
	}
	defer func() {
		for _, h := range both {
			if h.rows != nil {
				err = errors.Join(err, damage.Mark(h.rows.Close()))
			}
		}
	}()
	switch {
	case err != nil:
		return err
	case both[0].isNull() || both[1].isNull():
		return c.absent(p, both)
	case both[0].rows != nil && both[1].rows != nil:
		return c.walk(p, both[0].rows, both[1].rows)
	case both[0].rows != nil:
		return c.mixed(p, 0, both[1].node)
	case both[1].rows != nil:
		return c.mixed(p, 1, both[0].node)
	}
	return c.nodes(p, both[0].node, both[1].node)
}

// absent compares a place that a side has nothing at.
func (c *comparison) absent(p tree.Path, both [2]held) error {
	for side := range both {
		if !both[side].isNull() {
			return c.tell(p, only[side])
		}
	}
	return nil
}

// nodes compares two nodes that are read.
func (c *comparison) nodes(p tree.Path, then, now tree.Node) error {
	if then.IsObject() != now.IsObject() || !then.IsObject() && then.Leaf() != now.Leaf() {
		return c.tell(p, Changed)
	}
	if then.Priority() != now.Priority() {
		if err := c.tell(p, Priority); err != nil {
			return err
		}
	}
	return merge(keysOf(then), keysOf(now), func(key string, side int) error {
		if side != inBoth {
			return c.tell(p.Child(key), only[side])
		}
		return c.nodes(p.Child(key), then.Child(key), now.Child(key))
	})
}

// mixed compares a place where one side is split and the other has a node that is read.
func (c *comparison) mixed(p tree.Path, split int, n tree.Node) error {
	if !n.IsObject() {
		return c.tell(p, Changed)
	}
	t := c.sides[split]
	priority, err := t.Priority(p)
	if err == nil && priority != n.Priority() {
		err = c.tell(p, Priority)
	}
	if err != nil {
		return err
	}
	var failed error
	next := [2]func(after string) (string, bool){keysOf(n), keysOf(n)}
	next[split] = func(after string) (string, bool) {
		key, err := t.NextChild(p, after)
		failed = errors.Join(failed, err)
		return key, key != "" && err == nil
	}
	err = merge(next[0], next[1], func(key string, side int) error {
		if failed != nil {
			return failed
		}
		if side != inBoth {
			return c.tell(p.Child(key), only[side])
		}
		return c.place(p.Child(key))
	})
	return errors.Join(failed, err)
}

// inBoth is what merge reports of a key that both sides have.
const inBoth = 2

// keysOf returns the keys of a node one after the other.
func keysOf(n tree.Node) func(after string) (string, bool) {
	var keys []string
	for key := range n.Children() {
		keys = append(keys, key)
	}
	return func(string) (string, bool) {
		if len(keys) == 0 {
			return "", false
		}
		key := keys[0]
		keys = keys[1:]
		return key, true
	}
}

// merge calls yield with the keys of two sides in their order, and says which side has
// each.
func merge(then, now func(after string) (string, bool), yield func(key string, side int) error) error {
	a, hasA := then("")
	b, hasB := now("")
	for hasA || hasB {
		order := 0
		switch {
		case !hasB:
			order = -1
		case !hasA:
			order = 1
		default:
			order = tree.CompareKeys(a, b)
		}
		key, side := a, 0
		if order == 0 {
			side = inBoth
		} else if order > 0 {
			key, side = b, 1
		}
		if err := yield(key, side); err != nil {
			return err
		}
		if order <= 0 {
			a, hasA = then(a)
		}
		if order >= 0 {
			b, hasB = now(b)
		}
	}
	return nil
}

// walk compares a place that is split on both sides, row by row. Each stepper is at the
// first row.
func (c *comparison) walk(p tree.Path, then, now *seek.Stepper) error {
	for then.Valid() && now.Valid() {
		a, b := then.Key()[layout.RootBytes:], now.Key()[layout.RootBytes:]
		err := c.left()
		switch order := bytes.Compare(a, b); {
		case err != nil:
		case order == 0:
			err = c.rows(then, now)
			then.Step()
			now.Step()
		case order < 0:
			err = c.lone(p, 0, then, now)
		default:
			err = c.lone(p, 1, now, then)
		}
		if err != nil {
			return err
		}
	}
	for side, rows := range []*seek.Stepper{then, now} {
		for rows.Valid() {
			if err := errors.Join(c.left(), c.lone(p, side, rows, nil)); err != nil {
				return err
			}
		}
	}
	return damage.Mark(errors.Join(then.Error(), now.Error()))
}

// rows compares two rows with the same key.
func (c *comparison) rows(then, now *seek.Stepper) error {
	a, errA := then.ValueAndErr()
	b, errB := now.ValueAndErr()
	if err := errors.Join(errA, errB); err != nil {
		return damage.Mark(err)
	}
	if bytes.Equal(a, b) {
		return nil
	}
	p, isPriority, err := layout.CutDataKey(then.Key())
	if err != nil {
		return damage.Mark(err)
	}
	if isPriority {
		return c.tell(p, Priority)
	}
	x, errX := layout.DecodeChunk(a)
	y, errY := layout.DecodeChunk(b)
	if err := errors.Join(errX, errY); err != nil {
		return damage.AtRow(then.Key(), err)
	}
	return c.nodes(p, x, y)
}

// lone compares the place of a row that comes before the next one of the other side, which
// may be nil, and goes on behind it.
func (c *comparison) lone(p tree.Path, side int, rows, other *seek.Stepper) error {
	at, isPriority, err := layout.CutDataKey(rows.Key())
	if err != nil {
		return damage.Mark(err)
	}
	if other != nil && other.Valid() && !isPriority && layout.Belongs(other.Key()[layout.RootBytes:], rows.Key()[layout.RootBytes:]) {
		// The other side has the node split.
		err := c.place(at)
		pass(rows, c.sides[side], at)
		pass(other, c.sides[1-side], at)
		return err
	}
	place, err := c.missing(p, at, 1-side)
	if err != nil {
		return err
	}
	if place == p { // the other side has the node, without a priority
		rows.Step()
		return c.tell(at, Priority)
	}
	pass(rows, c.sides[side], place)
	return c.tell(place, only[side])
}

// pass goes on behind a place.
func pass(rows *seek.Stepper, t store.Tree, p tree.Path) { rows.SeekGE(t.Reader().Locate(p).End()) }

// missing returns the highest place from below p to a place at which a side has nothing; p if
// there is none.
func (c *comparison) missing(p, at tree.Path, side int) (tree.Path, error) {
	place := p
	for ; at != p; at = at.Parent() {
		h, err := c.open(side, at)
		if h.rows != nil {
			err = errors.Join(err, damage.Mark(h.rows.Close()))
		}
		if err != nil {
			return p, err
		}
		if !h.isNull() {
			break
		}
		place = at
	}
	return place, nil
}
