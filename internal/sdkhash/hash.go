package sdkhash

import (
	"cmp"
	"crypto/sha1"
	"slices"
	"sync"

	"github.com/livetree/livetree/internal/tree"
)

// Of returns the hash of n, "" for no data. Server values in it must have been
// resolved.
func Of(n tree.Node) string {
	right, _ := pairOf(n).sums()
	return right
}

func pairOf(n tree.Node) *pair {
	h := hashers.Get().(*hasher)
	defer h.free()
	d := h.node(n)
	return &d
}

// A hasher hashes a tree from its leaves upwards. It keeps one object for each level
// that is open.
type hasher struct {
	open    int // how many of objects are open
	objects []*object
	scratch []byte
}

// hashers are used again: the buffers of a few levels are most of what they need.
var hashers = sync.Pool{New: func() any { return new(hasher) }}

func (h *hasher) free() {
	h.open = 0
	h.scratch = emptied(h.scratch)
	hashers.Put(h)
}

// node returns the hashes of n. It recurses as deep as n is, which is at most
// tree.MaxDepth.
func (h *hasher) node(n tree.Node) pair {
	if !n.IsObject() {
		return h.leaf(clientLeafOf(n.Leaf()), clientLeafOf(n.Priority()))
	}
	o := h.begin()
	o.prioritize(clientLeafOf(n.Priority()))
	for key, child := range n.Children() {
		d := h.node(child)
		o.add(key, clientLeafOf(child.Priority()), &d)
	}
	return h.end()
}

// leaf returns the hashes of a leaf.
func (h *hasher) leaf(l, priority clientLeaf) pair {
	if l.kind == tree.Null {
		return pair{}
	}
	if priority.kind == tree.Null && l.kind == tree.Boolean {
		return booleans[int(l.number)]
	}
	d := pair{data: true, differ: l.differs() || priority.differs()}
	h.scratch = appendLeaf(appendPriority(h.scratch[:0], priority, rightForm), l, rightForm)
	d.right = sha1.Sum(h.scratch)
	if d.differ {
		h.scratch = appendLeaf(appendPriority(h.scratch[:0], priority, jsForm), l, jsForm)
		d.js = sha1.Sum(h.scratch)
	}
	return d
}

// booleans are the hashes of false and true.
var booleans = [2]pair{
	{right: sha1.Sum([]byte("boolean:false")), data: true},
	{right: sha1.Sum([]byte("boolean:true")), data: true},
}

// begin opens an object below the one that is open.
func (h *hasher) begin() *object {
	if h.open == len(h.objects) {
		h.objects = append(h.objects, new(object))
	}
	h.open++
	return h.top()
}

// top returns the innermost object that is open.
func (h *hasher) top() *object { return h.objects[h.open-1] }

// end closes it and returns its hashes.
func (h *hasher) end() pair {
	d := h.top().hashes()
	h.open--
	return d
}

// An object is the text of an object while its children are added.
type object struct {
	right  sum
	js     sum // only if they differ
	differ bool
	data   bool // there is a child
	// ranked are the children with priorities. Those without come first, so that they
	// need not be kept.
	ranked []ranked
}

// A ranked child waits for its place among its siblings.
type ranked struct {
	pair
	key      string
	priority clientLeaf
}

// prioritize gives the object its priority, before any child is added.
func (o *object) prioritize(priority clientLeaf) {
	if priority.kind == tree.Null {
		return
	}
	o.right.buf = appendPriority(o.right.buf, priority, rightForm)
	if o.differ = priority.differs(); o.differ {
		o.js.buf = appendPriority(o.js.buf[:0], priority, jsForm)
		o.js.begun = false
	}
	o.right.flush()
}

// add adds a child. Children come in the order of keys. The text of a key and of a
// priority is kept if there is a priority.
func (o *object) add(key string, priority clientLeaf, d *pair) {
	switch {
	case !d.data:
	case priority.kind == tree.Null:
		o.data = true
		o.append(key, d)
	default:
		o.data = true
		o.ranked = append(o.ranked, ranked{*d, key, priority})
	}
}

// append appends a child to the text.
func (o *object) append(key string, d *pair) {
	if d.differ && !o.differ {
		o.differ = true
		o.js.copyFrom(&o.right)
	}
	o.right.child(key, &d.right)
	if !o.differ {
		return
	}
	if d.differ {
		o.js.child(key, &d.js)
	} else {
		o.js.child(key, &d.right)
	}
}

// child appends a child as it stands in the text of its parent.
func (s *sum) child(key string, d *raw) {
	s.buf = append(append(append(s.buf, ':'), key...), ':')
	s.buf = d.append(s.buf)
	s.flush()
}

// hashes returns the hashes of the object, and makes it ready for another.
func (o *object) hashes() pair {
	o.rank()
	d := pair{data: o.data}
	if o.data {
		d.right = o.right.raw()
		if d.differ = o.differ; d.differ {
			d.js = o.js.raw()
		}
	}
	o.reset()
	return d
}

// rank appends the children with priorities in their order: by priority, then by key,
// in which they came.
func (o *object) rank() {
	if len(o.ranked) == 0 {
		return
	}
	slices.SortStableFunc(o.ranked, func(a, b ranked) int { return comparePriorities(a.priority, b.priority) })
	for i := range o.ranked {
		o.append(o.ranked[i].key, &o.ranked[i].pair)
	}
}

// comparePriorities orders priorities as clients do, to whom integers are doubles:
// numbers first, then strings.
func comparePriorities(a, b clientLeaf) int {
	if c := cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number)); c != 0 {
		return c
	}
	return tree.CompareStrings(a.text, b.text)
}

// reset makes the object ready for another, without what was large.
func (o *object) reset() {
	const many = 64
	if cap(o.ranked) > many {
		o.ranked = nil
	}
	clear(o.ranked) // of what points into trees
	*o = object{right: o.right, js: o.js, ranked: o.ranked[:0]}
	o.right.reset()
	o.js.reset()
}
