package batch

import (
	"bytes"
	"slices"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A home is the place in the tree that is rewritten for an assignment. That is
// the chunk that holds its path; or, where none does, the path itself when its
// parent is split, or else the highest place above it where nothing is yet.
// Assignments with one home are applied to it together. Homes never overlap, so
// each can be worked out against the tree before the write.
type home struct {
	layout.Location
	path  tree.Path
	chunk []byte // the row that is there now, if the home is a chunk
	split bool   // or a split node
	// isLeaf says that the chunk is that of a leaf, and keepsLeaf that the write changes
	// nothing of it but the priority: the leaf in node then stands for it.
	isLeaf, keepsLeaf bool
	// isLast says that nothing was at the home, and that it comes after all that its parent has.
	isLast bool
	edits  []tree.Assignment
	// node is what the write leaves there, unless spliced is: then that is its row.
	node    tree.Node
	spliced []byte
	empty   bool // nothing is left
}

// reset forgets everything but the memory.
func (h *home) reset() {
	clear(h.edits)
	*h = home{Location: layout.Location{Key: h.Key[:0], Ends: h.Ends[:0]}, edits: h.edits[:0]}
}

// before looks at what is at rel below the home without the write. The home must
// not be split. Without a value it need not look at the text of a leaf; nor does it if
// the write keeps the leaf, whose value is then left out before and after.
func (h *home) before(rel tree.Path, valued bool) (layout.Summary, error) {
	if h.chunk == nil {
		return layout.Summary{}, nil
	}
	look := layout.SummarizeIn
	if !valued || h.keepsLeaf {
		look = layout.PresenceIn
	}
	g, err := look(h.chunk, rel)
	if err != nil {
		return g, damage.AtRow(h.Key, err)
	}
	return g, nil
}

// old returns what is there without the write, where another leaf stands for one that
// is all of it. The home must not be split.
func (h *home) old() (tree.Node, error) {
	if h.chunk == nil {
		return tree.Node{}, nil
	}
	n, err := layout.DecodeWithoutLeaf(h.chunk)
	if err != nil {
		return n, damage.AtRow(h.Key, err)
	}
	return n, nil
}

// leavesLeaf reports whether no edit replaces the leaf that is there: they set its
// priority, or delete what is not there.
func (h *home) leavesLeaf() bool {
	return h.isLeaf && !slices.ContainsFunc(h.edits, func(a tree.Assignment) bool {
		return !a.Priority && (a.Path == h.path || !a.Node.IsNull())
	})
}

// A homeSet holds the homes of a write.
type homeSet struct {
	list  []*home
	byKey map[string]*home // once there are many
}

// fewHomes is how many homes are searched one by one, and kept for the next
// write.
const fewHomes = 8

// at returns the home with a key, if there is one.
func (s *homeSet) at(key []byte) *home {
	if s.byKey != nil {
		return s.byKey[string(key)]
	}
	for _, h := range s.list {
		if bytes.Equal(h.Key, key) {
			return h
		}
	}
	return nil
}

// above returns the home at or above a location, if there is one.
func (s *homeSet) above(l layout.Location) *home {
	for d := l.Depth(); d >= 0 && len(s.list) > 0; d-- {
		if h := s.at(l.At(d)); h != nil {
			return h
		}
	}
	return nil
}

// add adds a home at the first keys of a location, whose path is p.
func (s *homeSet) add(l layout.Location, depth int, p tree.Path) *home {
	var h *home
	if n := len(s.list); n < cap(s.list) && s.list[:n+1][n] != nil {
		s.list = s.list[:n+1]
		h = s.list[n]
	} else {
		h = &home{}
		s.list = append(s.list, h)
	}
	h.Key = append(h.Key, l.At(depth)...)
	h.Ends = append(h.Ends, l.Ends[:depth+1]...)
	h.path = layout.Ancestor(p, l.Depth()-depth)
	s.remember()
	return h
}

// remember enters the newest home into the map, once there is one.
func (s *homeSet) remember() {
	if s.byKey == nil && len(s.list) > fewHomes {
		s.byKey = make(map[string]*home)
		for _, h := range s.list {
			s.byKey[string(h.Key)] = h
		}
	}
	if s.byKey != nil {
		h := s.list[len(s.list)-1]
		s.byKey[string(h.Key)] = h
	}
}

// reset empties the set. A few homes are kept to be used again.
func (s *homeSet) reset() {
	list := s.list
	if len(list) > fewHomes {
		list = nil
	}
	for _, h := range list {
		h.reset()
	}
	*s = homeSet{list: list[:0]}
}
