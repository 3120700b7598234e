package sdkhash

import (
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// A Merge is what a client has to do to a run of its ranges: delete its leaves behind
// From up to and including To, and add those of Value.
type Merge struct {
	// From and To are posts as the client sent them; they can end in .priority. Without
	// From the run begins with the first leaf, without To it ends with the last.
	From, To       string
	HasFrom, HasTo bool
	// Value is the JSON text, in export form, of the leaves that belong there, null if
	// there are none. There may be a leaf beside the run in it, which a client ignores.
	Value []byte
}

// Merges returns what makes a client that sent c have n. It is meant for a client that
// also sent a hash that does not match n. If ok is false, the client must be sent all of
// n: because no range differs, so that what differs is in none; because n has something
// that is in no range; or because merges would be more than half of n.
//
// What a client that is to be merged has in no range stays as it is: a priority of an
// object whose keys all sort before .priority. It is then sent everything when it
// comes back the next time, because its hash does not match.
func (c Compound) Merges(n tree.Node) (merges []Merge, ok bool) {
	if len(c.hashes) == 0 || n.IsNull() {
		return nil, false
	}
	found := c.compare(n)
	if found.hidden || !slices.Contains(found.differs, true) || found.differing > found.total/2 {
		return nil, false
	}
	return c.merges(n, found.differs), true
}

// merges returns the merges for the ranges that differ.
func (c Compound) merges(n tree.Node, differs []bool) []Merge {
	runs := c.runs(differs)
	merges := make([]Merge, len(runs))
	m := merger{runs: runs, values: make([]fragment, len(runs))}
	w := walk{compound: c, visit: m.visit}
	w.run(n)
	for i, r := range runs {
		merges[i].Value = m.values[i].end()
		if merges[i].HasFrom = r.first > 0; merges[i].HasFrom {
			merges[i].From = c.posts[r.first-1]
		}
		if merges[i].HasTo = r.last < len(c.posts); merges[i].HasTo {
			merges[i].To = c.posts[r.last]
		}
	}
	return merges
}

// A run is a number of ranges that follow each other.
type run struct{ first, last int }

// runs joins the ranges that differ. Neighbours must be one run: where the client has an
// object with posts inside and the server a leaf with a priority, a second merge would
// take the priority away that the first one brought.
//
// A run that would begin behind the priority of an object begins one range earlier. A
// client that first deletes all children of that object forgets the priority.
func (c Compound) runs(differs []bool) []run {
	var runs []run
	free := 0 // the first range behind the runs
	for i, differs := range differs {
		if !differs {
			continue
		}
		first := i
		for first > free && c.isPriority(first-1) {
			first--
		}
		if first == free && len(runs) > 0 {
			runs[len(runs)-1].last = i
		} else {
			runs = append(runs, run{first, i})
		}
		free = i + 1
	}
	return runs
}

// A merger writes the values of merges while it visits all leaves in order.
type merger struct {
	runs   []run
	values []fragment // by run
	at     int        // the run that is written, or comes next
	// lone says that the last leaf of the run is the priority of an object of which
	// nothing else was written.
	lone bool
	// longer are runs that ended so. An object without children is no data, with whatever
	// priority, so that they need the next leaf that is no priority, too. It is in the
	// same object, and the client sees that it is not in the run. There are never
	// more than a tree has levels.
	longer []int
}

func (m *merger) visit(w *walk, l leafAt) {
	for m.at < len(m.runs) && w.index > m.runs[m.at].last {
		if m.lone {
			m.longer = append(m.longer, m.at)
		}
		m.at, m.lone = m.at+1, false
	}
	for _, i := range m.longer {
		m.values[i].add(w, l)
	}
	if !l.own {
		m.longer = m.longer[:0]
	}
	if m.at == len(m.runs) {
		return
	}
	first, value := m.runs[m.at].first, &m.values[m.at]
	switch {
	case w.index >= first:
		m.lone = l.own && (!value.begun || w.shared < len(w.path)-1)
		value.add(w, l)
	case w.index == first-1 && !l.priority.IsNull() && w.isAtPost():
		// The client takes the priority of the leaf at From for a child of it, which is
		// behind From, and would delete it.
		value.add(w, l)
	}
}

// A fragment is JSON text to which leaves are added that follow each other in a walk.
type fragment struct {
	text  []byte
	depth int // how many objects are open
	begun bool
}

func (f *fragment) add(w *walk, l leafAt) {
	shared := 0
	if f.begun {
		shared = w.shared
		for ; f.depth > shared+1; f.depth-- {
			f.text = append(f.text, '}')
		}
		f.text = append(f.text, ',')
	}
	for i, key := range w.path[shared:] {
		if i > 0 || !f.begun {
			f.text = append(f.text, '{')
		}
		f.text = append(tree.AppendString(f.text, key), ':')
	}
	f.depth, f.begun = len(w.path), true
	if l.priority.IsNull() {
		f.text = tree.AppendLeaf(f.text, l.leaf)
		return
	}
	f.text = tree.AppendLeaf(append(f.text, `{".value":`...), l.leaf)
	f.text = tree.AppendLeaf(append(f.text, `,".priority":`...), l.priority)
	f.text = append(f.text, '}')
}

// end returns the text of all that was added.
func (f *fragment) end() []byte {
	if !f.begun {
		return []byte("null")
	}
	for range f.depth {
		f.text = append(f.text, '}')
	}
	return f.text
}
