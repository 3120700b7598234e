package store

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/tree"
)

// A Tree reads one database at one moment: that of a view, or live.
type Tree struct {
	store  *Store
	reader pebble.Reader
	id     ID
	origin *View // nil if live
	cost   *Cost // counted if not nil
	waiter waiter
}

// A waiter is who waits for what is read: until it is closed, or for ever if it is
// nil.
type waiter <-chan struct{}

// rowsBetween is after how many rows a read looks whether somebody still waits for
// it, while it has nothing to write.
const rowsBetween = 256

// left returns ErrUnwanted if nobody waits any more. It looks at the first row and
// then now and then. In between it lets others run: whoever is to tell that nobody
// waits, and reads of a few rows. The scheduler would let it go on for 200 times as
// long.
func (w waiter) left(row int) error {
	if row%rowsBetween != 0 {
		return nil
	}
	if row > 0 {
		runtime.Gosched()
	}
	select {
	case <-w:
		return ErrUnwanted
	default:
		return nil
	}
}

// Until returns the tree for somebody who waits until done is closed. Then reads of
// many rows fail with ErrUnwanted.
func (t Tree) Until(done <-chan struct{}) Tree {
	t.waiter = done
	return t
}

// A Cost is what a read has taken from the store.
type Cost struct {
	Rows, Bytes int
}

func (c *Cost) add(bytes int) {
	if c != nil {
		c.Rows++
		c.Bytes += bytes
	}
}

// A location is a path as a key, with the places where its ancestors' keys end.
type location struct {
	key  []byte
	ends []int // ends[d] is the length of the key of the first d keys of the path
}

func (t Tree) locate(p tree.Path) location {
	l := location{key: make([]byte, 0, 64), ends: make([]int, 0, 8)}
	l.move(t.id, p)
	return l
}

// move makes l that of a path of a database, in the memory that it has.
func (l *location) move(id ID, p tree.Path) {
	l.key = appendSpace(l.key[:0], spaceData, id)
	l.ends = append(l.ends[:0], len(l.key))
	for key := range p.Keys() {
		l.key = appendComponent(l.key, key)
		l.ends = append(l.ends, len(l.key))
	}
}

// depth returns the number of keys of the path.
func (l location) depth() int { return len(l.ends) - 1 }

// at returns the key of the first d keys of the path.
func (l location) at(d int) []byte { return l.key[:l.ends[d]:l.ends[d]] }

// end returns the end of the subtree.
func (l location) end() []byte { return subtreeEnd(nil, l.key) }

// A cover is the chunk that holds a location: the location's own, or that of an
// ancestor.
type cover struct {
	depth int    // of the chunk's node
	row   []byte // valid until release
	io.Closer
}

func (c *cover) release() {
	if c != nil {
		_ = c.Close()
	}
}

// cover finds the chunk that holds l; nil if there is none, because the node is
// split or absent. Looking for each possible row is cheap: a row that is not
// there is ruled out by the bloom filters, and unlike an iterator's step a Get
// does not slow down when a row was rewritten many times. There is one at most,
// so the order of looking is free: the depth that was right for a similar
// location comes first.
func (t Tree) cover(l location) (*cover, error) {
	hint := t.store.hints.of(l)
	guess := int(min(hint.Load(), uint32(l.depth())))
	if c, err := t.chunkAt(l, guess); c != nil || err != nil {
		return c, err
	}
	for d := l.depth(); d >= 0; d-- {
		if d == guess {
			continue
		}
		if c, err := t.chunkAt(l, d); c != nil || err != nil {
			hint.Store(uint32(d))
			return c, err
		}
	}
	return nil, nil
}

// open finds what holds l: a cover, or, if its node is split, an iterator at the
// first of its rows. There is neither if there is no data.
//
// What was split before is looked for among the rows first. One that is found
// below l makes it needless to ask for chunks: there is none above a row.
func (t Tree) open(l location) (*cover, *pebble.Iterator, error) {
	hint := t.store.hints.of(l)
	if hint.Load() == splitHint {
		it, err := t.openRows(l)
		if err != nil || it != nil && len(it.Key()) > len(l.key) {
			return nil, it, err
		}
		if it != nil {
			_ = it.Close()
		}
		hint.Store(uint32(l.depth()))
	}
	c, err := t.cover(l)
	if c != nil || err != nil {
		return c, nil, err
	}
	it, err := t.openRows(l)
	if it != nil {
		hint.Store(splitHint)
	}
	return nil, it, err
}

// openRows returns an iterator at the first row of the subtree at l, nil if it
// has none.
func (t Tree) openRows(l location) (*pebble.Iterator, error) {
	it, err := t.iterator(l.key)
	if err != nil {
		return nil, damaged(err)
	}
	if !it.SeekGE(l.key) {
		return nil, damaged(errors.Join(it.Error(), it.Close()))
	}
	return it, nil
}

// chunkAt returns the chunk at the first d keys of l, if there is one.
func (t Tree) chunkAt(l location, d int) (*cover, error) {
	row, closer, err := t.reader.Get(l.at(d))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damaged(err)
	}
	t.cost.add(len(row))
	return &cover{d, row, closer}, nil
}

// hints remember at what depth chunks were found, by the depth and the first key
// of what they were found for. They are guesses, also about each other's
// locations.
type hints [256]atomic.Uint32

// splitHint says that there was no chunk, but a split node.
const splitHint = math.MaxUint32

func (h *hints) of(l location) *atomic.Uint32 {
	shape := uint32(l.depth())
	for _, c := range l.at(min(1, l.depth()))[1:] { // the database and the first key
		shape = shape*31 + uint32(c)
	}
	return &h[shape%uint32(len(h))]
}

// below returns the path without its first d keys.
func below(p tree.Path, d int) tree.Path {
	for range d {
		_, p = p.Cut()
	}
	return p
}

// Chunk-held nodes are decoded whole: a chunk is small.
func (t Tree) decode(l location, c *cover) (tree.Node, error) {
	n, err := decodeRow(c.row)
	if err != nil {
		return tree.Node{}, rowError(l.at(c.depth), err)
	}
	return n, nil
}

// Look returns the leaf and the priority at p, null where there is none. It
// reads one chunk at most. It is how server values see the tree.
func (t Tree) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	l := t.locate(p)
	c, err := t.cover(l)
	if err != nil {
		return leaf, priority, err
	}
	if c == nil {
		priority, err = t.splitPriority(l.key)
		return leaf, priority, err
	}
	defer c.release()
	leaf, priority, err = lookRow(c.row, below(p, c.depth))
	if err != nil {
		return leaf, priority, rowError(l.at(c.depth), err)
	}
	return leaf, priority, nil
}

// splitPriority returns the priority of the split node with a key.
func (t Tree) splitPriority(key []byte) (tree.Leaf, error) {
	key = append(key[:len(key):len(key)], priorityMark)
	row, closer, err := t.reader.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return tree.Leaf{}, nil
	}
	if err != nil {
		return tree.Leaf{}, damaged(err)
	}
	defer func() { _ = closer.Close() }()
	return decodePriorityRow(key, row)
}

func decodePriorityRow(key, row []byte) (tree.Leaf, error) {
	n, err := decodeRow(row)
	if err == nil && (n.IsObject() || n.Kind() == tree.Boolean) {
		err = errors.New("not a priority")
	}
	if err != nil {
		return tree.Leaf{}, rowError(key, err)
	}
	return n.Leaf(), nil
}

// Exists reports whether there is data at p.
func (t Tree) Exists(p tree.Path) (bool, error) {
	l := t.locate(p)
	c, rows, err := t.open(l)
	switch {
	case err != nil || c == nil && rows == nil:
		return false, err
	case rows != nil:
		return true, damaged(rows.Close())
	}
	defer c.release()
	exists, err := existsRow(c.row, below(p, c.depth))
	if err != nil {
		return false, rowError(l.at(c.depth), err)
	}
	return exists, nil
}

// NextChild returns the first key behind after, in key order, that the node at p
// has a child under; "" if there is none. After "" comes the first child.
func (t Tree) NextChild(p tree.Path, after string) (string, error) {
	l := t.locate(p)
	c, err := t.cover(l)
	if err != nil {
		return "", err
	}
	if c != nil {
		defer c.release()
		n, err := t.decode(l, c)
		for key := range n.At(below(p, c.depth)).Children() {
			if after == "" || tree.CompareKeys(key, after) > 0 {
				return key, err
			}
		}
		return "", err
	}
	var from []byte
	if after != "" {
		from = subtreeEnd(nil, appendComponent(bytes.Clone(l.key), after))
	}
	next := ""
	err = t.eachChild(l.key, from, func(end int, row []byte) (bool, error) {
		var err error
		next, _, err = cutComponent(row[len(l.key):end])
		return false, damaged(err)
	})
	return next, err
}

// Node returns the whole node at p, or ErrTooLarge when its text takes more
// than maxBytes.
func (t Tree) Node(p tree.Path, maxBytes int) (tree.Node, error) {
	var text bytes.Buffer
	if err := t.Print(&boundedWriter{&text, maxBytes}, p, tree.Export); err != nil {
		return tree.Node{}, err
	}
	n, err := tree.DecodeBytes(text.Bytes(), tree.DecodeOptions{Depth: p.Depth()})
	if err != nil {
		return tree.Node{}, rowError(t.locate(p).key, err)
	}
	return n, nil
}

// A boundedWriter fails when more than left bytes are written.
type boundedWriter struct {
	w    io.Writer
	left int
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, ErrTooLarge
	}
	return b.w.Write(p)
}

// iterator returns an iterator over the subtree of a key.
func (t Tree) iterator(key []byte) (*pebble.Iterator, error) {
	return t.reader.NewIter(&pebble.IterOptions{
		LowerBound: bytes.Clone(key),
		UpperBound: subtreeEnd(nil, key),
	})
}
