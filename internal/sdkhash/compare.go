package sdkhash

import "github.com/livetree/livetree/internal/tree"

// A comparison says which ranges of a Compound differ from those of a node.
type comparison struct {
	differs []bool // by range
	// differing is about how many bytes the node has in ranges that differ, total in all.
	// A range in which only the client has something takes none.
	differing, total int
	// hidden says that the node has something that is in no range.
	hidden bool
}

// compare compares c with n.
func (c Compound) compare(n tree.Node) comparison {
	r := ranger{hashes: c.hashes}
	r.found.differs = make([]bool, len(c.hashes))
	w := walk{compound: c, visit: r.visit}
	w.run(n)
	for r.at < len(c.hashes) {
		r.next()
	}
	r.found.hidden = w.hidden
	return r.found
}

// A ranger writes the texts of ranges while it visits all leaves in order. In
//
//	("foo":("!a":(string:"before"),".priority":(string:"prio")),"qux":(number:4010000000000000))
//
// there are the leaves of the range and the keys above them, so that the first leaf of
// a range opens all of its keys again.
type ranger struct {
	hashes []string
	found  comparison
	at     int // the range that is written
	sum    sum
	begun  bool // it has a leaf
	depth  int  // how many keys are open in it
	bytes  int  // of its text that were hashed
}

func (r *ranger) visit(w *walk, l leafAt) {
	for r.at < w.index {
		r.next()
	}
	shared, before, text := 0, len(r.sum.buf), r.sum.buf
	if r.begun {
		shared = w.shared
		for range r.depth - shared {
			text = append(text, ')')
		}
		text = append(text, ',')
	} else {
		text = append(text, '(')
	}
	for _, key := range w.path[shared:] {
		text = append(appendQuoted(text, key), ":("...)
	}
	r.begun, r.depth = true, len(w.path)
	text = appendPriority(text, clientLeafOf(l.priority), quotedForm)
	r.sum.buf = appendLeaf(text, clientLeafOf(l.leaf), quotedForm)
	r.bytes += len(r.sum.buf) - before
	r.sum.flush()
}

// next ends the text of a range and compares its hash.
func (r *ranger) next() {
	hash := ""
	if r.begun {
		for range r.depth + 1 {
			r.sum.buf = append(r.sum.buf, ')')
		}
		d := r.sum.raw()
		hash = d.String()
	}
	r.found.total += r.bytes
	if hash != r.hashes[r.at] {
		r.found.differs[r.at] = true
		r.found.differing += r.bytes
	}
	r.sum.reset()
	r.at++
	r.begun, r.depth, r.bytes = false, 0, 0
}
