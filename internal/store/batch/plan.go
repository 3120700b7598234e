package batch

import (
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A plan is what a write changes: its homes, and what it leaves at each of them. It
// reads the tree as it was before the write, and writes nothing.
type plan struct {
	reader     seek.Reader
	chunkBytes int
	prepared   preparedNodes
	frontier   *Frontier // may be nil
	most       int64     // how many bytes the keys of all assignments may take: each is that of a row
	data       dataRows

	homes homeSet
	// priorities are the new ones of nodes that stay split.
	priorities map[tree.Path]tree.Leaf
	marks      map[tree.Path]mark // what was found out about assignments
	isPatch    bool
	emptying   bool // some home is left empty

	// filledBefore remembers what data.has said, for a patch, and leaves what
	// leavesData said.
	filledBefore, leaves map[string]bool
	// leafAt are the keys of leaves that a patch deletes something below.
	leafAt map[string]bool
	// filled are the keys of the homes that the write leaves data at, and of all
	// nodes above them; lastEmptied are the last homes below nodes that it leaves
	// nothing at. Both are nil until they are needed, and unless there are many homes.
	filled      map[string]bool
	lastEmptied map[string][]byte

	// held are the long chunks that are homes. They are not copied.
	held []*seek.Chunk

	// The rest is memory that is used again: for the chunks of homes and what comes of
	// them, for a row and a text that are being made, for the key of the row after a new
	// child, and for the location of an assignment.
	chunks    block
	row, text []byte
	until     []byte
	location  layout.Location
}

// emptied returns a plan that knows nothing, with the memory of this one.
func (pl *plan) emptied() plan {
	pl.homes.reset()
	for _, c := range pl.held {
		c.Release()
	}
	return plan{homes: pl.homes, data: pl.data.emptied(), location: pl.location, chunks: kept(pl.chunks), row: kept(pl.row), text: kept(pl.text), until: kept(pl.until)}
}

// make finds the homes of a write, and works out what it leaves at them.
func (pl *plan) make(w tree.Write) error {
	pl.isPatch = len(w.Assignments) > 1
	keys := int64(0)
	for _, priorities := range []bool{false, true} { // what gets a priority must be there first
		for _, a := range w.Assignments {
			if a.Priority != priorities {
				continue
			}
			if err := pl.assign(a); err != nil {
				return err
			}
			if keys += int64(len(pl.location.Key)); keys > pl.most {
				return ErrTooMuch
			}
		}
	}
	for _, h := range pl.homes.list {
		if err := pl.workOut(h); err != nil {
			return err
		}
		pl.emptying = pl.emptying || h.empty
	}
	return nil
}

// assign finds the home of an assignment.
func (pl *plan) assign(a tree.Assignment) error {
	pl.location.Move(pl.reader.ID, a.Path)
	l := pl.location
	if h := pl.homes.above(l); h != nil {
		h.edits = append(h.edits, a)
		return nil
	}
	if pl.isBelowLeaf(l) && pl.isVoid(a) {
		return nil
	}
	if lacks, outermost := pl.frontier.look(l); lacks {
		if !pl.isVoid(a) {
			pl.assignNew(l, l.Depth(), a).isLast = outermost
		}
		return nil
	}
	c, err := pl.reader.Chunk(l)
	if err != nil {
		return err
	}
	if c != nil {
		return pl.assignChunk(l, c, a)
	}
	return pl.assignRows(l, a)
}

// assignRows finds the home of an assignment to a place that no chunk holds.
func (pl *plan) assignRows(l layout.Location, a tree.Assignment) error {
	exists, looked, err := pl.occupied(l)
	if err != nil {
		return err
	}
	if exists && a.Priority {
		if pl.priorities == nil {
			pl.priorities = make(map[tree.Path]tree.Leaf)
		}
		pl.priorities[a.Path] = a.Node.Leaf()
		return nil
	}
	if exists {
		pl.assignNew(l, l.Depth(), a).split = true
		return nil
	}
	if pl.isVoid(a) {
		return nil
	}
	depth, err := pl.highestAbsent(l)
	if err != nil {
		return err
	}
	looked = looked && depth == l.Depth()
	if looked {
		pl.frontier.add(l, pl.until)
	}
	pl.assignNew(l, depth, a).isLast = looked && len(pl.until) == 0
	return nil
}

// isVoid reports whether an assignment to a place where nothing is, or to one below a
// leaf, brings nothing, and marks it then.
func (pl *plan) isVoid(a tree.Assignment) bool {
	void := a.Priority || a.Node.IsNull()
	if void {
		pl.mark(a.Path, mark{void: true})
	}
	return void
}

// assignNew makes a new home for an assignment, at the first keys of its location.
func (pl *plan) assignNew(l layout.Location, depth int, a tree.Assignment) *home {
	h := pl.homes.add(l, depth, a.Path)
	h.edits = append(h.edits, a)
	return h
}

// longRow is from how many bytes on a chunk is not copied. Only that of a string is so
// long.
const longRow = 16 << 10

// assignChunk makes a chunk the home of an assignment, unless that brings nothing: it
// deletes something below a leaf. The chunk is taken over.
func (pl *plan) assignChunk(l layout.Location, c *seek.Chunk, a tree.Assignment) error {
	if err := layout.CheckChunk(c.Row); err != nil {
		defer c.Release()
		return damage.AtRow(l.At(c.Depth), err)
	}
	_, _, _, isLeaf := layout.CutLeaf(c.Row)
	if isLeaf && c.Depth < l.Depth() && pl.isVoid(a) {
		pl.rememberLeaf(l.At(c.Depth))
		c.Release()
		return nil
	}
	h := pl.assignNew(l, c.Depth, a)
	if h.isLeaf, h.chunk = isLeaf, c.Row; len(c.Row) >= longRow {
		pl.held = append(pl.held, c)
		return nil
	}
	h.chunk = pl.chunks.keep(c.Row)
	c.Release()
	return nil
}

// A block is memory for rows, one after the other. It does not grow: rows that are kept
// refer to it, so that a larger one in its place would be in memory beside it.
type block []byte

// keep returns a copy of a row in the block, or in a new one if it is full.
func (b *block) keep(row []byte) []byte {
	if cap(*b)-len(*b) < len(row) {
		*b = make([]byte, 0, max(min(2*cap(*b), maxKeptBytes), len(row)))
	}
	start := len(*b)
	*b = append(*b, row...)
	return (*b)[start:len(*b):len(*b)]
}

// rememberLeaf notes that a leaf is at a place, if that is likely to be asked again.
func (pl *plan) rememberLeaf(key []byte) {
	if !pl.isPatch {
		return
	}
	if pl.leafAt == nil {
		pl.leafAt = make(map[string]bool)
	}
	pl.leafAt[string(key)] = true
}

// isBelowLeaf reports whether a location is known to be below a leaf.
func (pl *plan) isBelowLeaf(l layout.Location) bool {
	for d := l.Depth() - 1; d >= 0 && len(pl.leafAt) > 0; d-- {
		if pl.leafAt[string(l.At(d))] {
			return true
		}
	}
	return false
}

// highestAbsent returns the depth of the highest place above l, or l itself, where
// nothing is.
func (pl *plan) highestAbsent(l layout.Location) (int, error) {
	for d := l.Depth() - 1; d >= 0; d-- {
		exists, known := pl.filledBefore[string(l.At(d))]
		if !known {
			var err error
			if exists, err = pl.data.has(l.At(d)); err != nil {
				return 0, err
			}
			pl.remember(l.At(d), exists)
		}
		if exists {
			return d + 1, nil
		}
	}
	return 0, nil
}

// remember notes whether something was at a place before the write, if that is
// likely to be asked again.
func (pl *plan) remember(key []byte, exists bool) {
	if !pl.isPatch {
		return
	}
	if pl.filledBefore == nil {
		pl.filledBefore = make(map[string]bool)
	}
	pl.filledBefore[string(key)] = exists
}
