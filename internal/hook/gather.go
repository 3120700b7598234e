package hook

import (
	"errors"
	"slices"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// Limits bound what one commit is to hooks. They are no settings; tests have tiny ones.
type Limits struct {
	// Locations is how many locations a notice has at most.
	Locations int
	// Looks is how many locations are looked at for one commit, in all patterns.
	Looks int
	// ValueBytes is how large a value may be. One that is larger is left out, with a mark.
	ValueBytes int
	// ReadBytes is how much is read, and stored for all hooks, for one commit, about. Locations past it are left out.
	ReadBytes int
}

// leastCost is what a look at a location takes of ReadBytes at least: it is a read, also if nothing is there.
const leastCost = 128

// rowBytes is what a row takes for a location beside its path and its values, about.
const rowBytes = 8

// DefaultLimits are those of all databases but some of tests.
func DefaultLimits() Limits {
	return Limits{Locations: 1000, Looks: 10_000, ValueBytes: 256 << 10, ReadBytes: 8 << 20}
}

// Before is a tree as it was before a commit: a store.Tree.
type Before interface {
	Node(p tree.Path, maxBytes int) (tree.Node, error)
	NextChild(p tree.Path, after string) (string, error)
}

// Gather returns what a change is to the hooks of a set: a notice for each hook that wants
// one. The change is about to be made to the tree.
func (s *Set) Gather(before Before, change tree.Change, limits Limits) ([]Told, error) {
	if s == nil || s.patterns == nil {
		return nil, nil
	}
	g := &gathering{before: before, change: change, limits: limits, looks: limits.Looks, bytes: limits.ReadBytes}
	for i := range change.Assignments {
		if err := g.assignment(s.patterns, i); err != nil {
			return nil, err
		}
	}
	for _, t := range g.touched {
		if err := g.look(t); err != nil {
			return nil, err
		}
	}
	return g.told(), nil
}

// Told is the notice of one hook.
type Told struct {
	Hook   *Hook
	Notice Notice
}

// A gathering works out the notices of one change.
type gathering struct {
	before Before
	change tree.Change
	limits Limits
	// looks and bytes are what is left of the limits.
	looks, bytes int

	touched []*touched
	places  map[place]*touched // those of touched, if there are several assignments
	ends    []*end
	byNode  map[*node]*end // those of ends
}

// A place is a location that a pattern matches.
type place struct {
	node *node
	path tree.Path
}

// touched is a place that may have changed, by some assignments of the change.
type touched struct {
	place
	assignments []int
}

// An end is what was found for the hooks whose patterns end at a node.
type end struct {
	node    *node
	changes []Changed
	more    bool
}

// endOf returns what was found for a node so far.
func (g *gathering) endOf(n *node) *end {
	e := g.byNode[n]
	if e == nil {
		e = &end{node: n}
		g.ends = append(g.ends, e)
		if g.byNode == nil {
			g.byNode = make(map[*node]*end)
		}
		g.byNode[n] = e
	}
	return e
}

// assignment finds the places that an assignment may change.
func (g *gathering) assignment(root *node, i int) error {
	a := &g.change.Assignments[i]
	return g.descend(root, i, a.Path.Depth(), a.Path)
}

// descend goes down the patterns along the path of an assignment: rest is what is left of it, levels
// its depth.
func (g *gathering) descend(n *node, i, levels int, rest tree.Path) error {
	a := &g.change.Assignments[i]
	if len(n.hooks) > 0 {
		g.touchOnWay(n, i, a.Path.Ancestor(levels))
	}
	if levels == 0 {
		if a.Priority || n.isLast() {
			return nil
		}
		return g.below(n, i, a.Path)
	}
	key, rest := rest.Cut()
	if child := n.keys[key]; child != nil {
		if err := g.descend(child, i, levels-1, rest); err != nil {
			return err
		}
	}
	if n.wild != nil {
		return g.descend(n.wild, i, levels-1, rest)
	}
	return nil
}

// below finds the places below the path of an assignment, which replaces all of them.
func (g *gathering) below(n *node, i int, p tree.Path) error {
	for _, key := range n.sortedKeys() {
		if err := g.belowChild(n.keys[key], i, p.Child(key)); err != nil {
			return err
		}
	}
	if n.wild == nil {
		return nil
	}
	return g.eachKey(i, p, func(key string) error { return g.belowChild(n.wild, i, p.Child(key)) }, func() {
		n.wild.eachEndWith(func(end *node) { g.endOf(end).more = true })
	})
}

func (g *gathering) belowChild(n *node, i int, p tree.Path) error {
	if g.looks <= 0 {
		n.eachEndWith(func(end *node) { g.endOf(end).more = true })
		return nil
	}
	g.looks--
	if len(n.hooks) > 0 {
		g.touch(n, i, p)
	}
	if n.isLast() {
		return nil
	}
	return g.below(n, i, p)
}

// eachKey calls yield with the keys of the children that a place has before or after the change,
// in order. When there are too many, it calls more.
func (g *gathering) eachKey(i int, p tree.Path, yield func(key string) error, more func()) error {
	a := &g.change.Assignments[i]
	var after []string
	for key := range a.Node.At(a.Path.Below(p)).Children() {
		if len(after) >= g.looks { // that many are not looked at
			more()
			break
		}
		after = append(after, key)
	}
	old, err := g.before.NextChild(p, "")
	for err == nil && (old != "" || len(after) > 0) {
		if g.looks <= 0 {
			more()
			return nil
		}
		var key string
		switch {
		case len(after) == 0 || old != "" && tree.CompareKeys(old, after[0]) < 0:
			key = old
			old, err = g.before.NextChild(p, old)
		case old == after[0]:
			key, after = old, after[1:]
			old, err = g.before.NextChild(p, old)
		default:
			key, after = after[0], after[1:]
		}
		if err == nil {
			err = yield(key)
		}
	}
	return err
}

// touchOnWay is touch for a place that an assignment is at, or below. There are as many of them as a patch has
// assignments, so new ones are counted.
func (g *gathering) touchOnWay(n *node, i int, p tree.Path) {
	if g.places[place{n, p}] == nil {
		if g.looks <= 0 {
			g.endOf(n).more = true
			return
		}
		g.looks--
	}
	g.touch(n, i, p)
}

// touch notes that an assignment may change a place.
func (g *gathering) touch(n *node, i int, p tree.Path) {
	at := place{n, p}
	if t := g.places[at]; t != nil {
		t.assignments = append(t.assignments, i)
		return
	}
	t := &touched{place: at, assignments: []int{i}}
	g.touched = append(g.touched, t)
	if len(g.change.Assignments) > 1 {
		if g.places == nil {
			g.places = make(map[place]*touched)
		}
		g.places[at] = t
	}
}

// look finds out whether a place changes, and how.
func (g *gathering) look(t *touched) error {
	end := g.endOf(t.node)
	if len(end.changes) >= g.limits.Locations || g.bytes <= 0 {
		end.more = true
		return nil
	}
	hooks := len(t.node.hooks)
	limit := g.valueBytes(hooks)
	before, cut, err := g.read(t.path, limit)
	if err != nil {
		return err
	}
	cost := max(before.Bytes(), leastCost)
	if cut {
		cost = max(limit, leastCost)
	}
	g.bytes -= cost
	c := Changed{Path: t.path, Before: Value{Cut: true}}
	if !cut {
		c.Before = newValue(before, limit)
	}
	after, known := g.after(t, before, cut)
	has := !after.IsNull()
	switch {
	case known && !cut && tree.Equal(before, after):
		return nil
	case known:
		c.After = newValue(after, limit)
	default:
		if has, err = g.remains(t.path, g.under(t)); err != nil {
			return err
		}
		if c.After = (Value{Cut: true}); !has {
			c.After = newValue(tree.Node{}, limit)
		}
	}
	if c.Event = eventOf(cut || !before.IsNull(), has); c.Event != 0 {
		end.changes = append(end.changes, c)
		g.bytes -= max(hooks*(rowBytes+len(c.Path.String())+len(c.Before.Text)+len(c.After.Text))-cost, 0)
	}
	return nil
}

// valueBytes is how large a value may be that some hooks store: with many hooks of one pattern less than else, so that
// one location, which is always stored, cannot make a commit many times as large as what is read.
func (g *gathering) valueBytes(hooks int) int {
	return min(g.limits.ValueBytes, max(g.limits.ReadBytes/(2*hooks), 1))
}

// newValue returns a node as a value, which is cut if it is too large.
func newValue(n tree.Node, limit int) Value {
	if n.IsNull() {
		return Value{Text: []byte("null")}
	}
	text, _, fits := tree.AppendWithin(nil, n, tree.Plain, limit)
	if !fits {
		return Value{Cut: true}
	}
	return Value{Text: text}
}

// eventOf returns what happened to a location, 0 for nothing.
func eventOf(had, has bool) Event {
	switch {
	case had && has:
		return Update
	case has:
		return Create
	case had:
		return Delete
	}
	return 0
}

// read returns what is at a place before the change, or that it is too large.
func (g *gathering) read(p tree.Path, limit int) (n tree.Node, cut bool, err error) {
	n, err = g.before.Node(p, limit)
	if errors.Is(err, store.ErrTooLarge) {
		return tree.Node{}, true, nil
	}
	return n, false, err
}

// after returns what is at a place after the change. It is not known if the place was too large
// to be read, and is not replaced.
func (g *gathering) after(t *touched, before tree.Node, cut bool) (n tree.Node, known bool) {
	for _, i := range t.assignments {
		if a := &g.change.Assignments[i]; !a.Priority && a.Path.Contains(t.path) {
			return a.Node.At(a.Path.Below(t.path)), true
		}
	}
	if cut {
		return tree.Node{}, false
	}
	e := tree.NewEditor(before)
	e.Apply(t.path, slices.Values(g.under(t)))
	return e.Node(), true
}

// under returns the assignments that touch a place.
func (g *gathering) under(t *touched) []tree.Assignment {
	list := make([]tree.Assignment, 0, len(t.assignments))
	for _, i := range t.assignments {
		list = append(list, g.change.Assignments[i])
	}
	return list
}

// remains reports whether there is something at a place, which has data, after assignments at places below it.
// It looks at no more children than there are assignments, and one.
func (g *gathering) remains(p tree.Path, assignments []tree.Assignment) (bool, error) {
	below := map[string][]tree.Assignment{}
	for _, a := range assignments {
		switch {
		case !a.Node.IsNull() && !a.Priority:
			return true, nil
		case a.Path == p && !a.Priority:
			return false, nil
		case a.Path != p:
			key, _ := p.Below(a.Path).Cut()
			below[key] = append(below[key], a)
		}
	}
	key, err := g.before.NextChild(p, "")
	if key == "" {
		return true, err // a leaf: what is deleted below it was not there
	}
	for ; key != "" && err == nil; key, err = g.before.NextChild(p, key) {
		list, ok := below[key]
		if !ok {
			return true, nil
		}
		if has, err := g.remains(p.Child(key), list); has || err != nil {
			return has, err
		}
	}
	return false, err
}

// told returns the notices of the hooks that want one.
func (g *gathering) told() []Told {
	var all []Told
	for _, e := range g.ends {
		for _, h := range e.node.hooks {
			changes := e.changes
			if h.Events != allEvents {
				changes = slices.DeleteFunc(slices.Clone(changes), func(c Changed) bool { return c.Event&h.Events == 0 })
			}
			if len(changes) == 0 && !e.more {
				continue
			}
			all = append(all, Told{h, Notice{
				Position: g.change.Position, Millis: g.change.Millis, Author: g.change.Author,
				At: g.change.At, Changes: changes, More: e.more,
			}})
		}
	}
	return all
}
