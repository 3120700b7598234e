package batch

import (
	"bytes"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// This file finds out which nodes a write leaves without data: they lose their
// priorities and index rows.

// eachEmptied calls yield with the keys of the nodes that lose their last child, each
// once: a patch may delete every child of a node by an assignment of its own. Of those that
// are below each other the highest comes last, and is said to be it.
func (pl *plan) eachEmptied(yield func(key []byte, highest bool) error) error {
	seen := make(map[string]bool)
	for _, h := range pl.homes.list {
		if !h.empty {
			continue
		}
		for d := h.Depth() - 1; d >= 0; d-- {
			empty, err := pl.isEmptied(h, d)
			if err != nil {
				return err
			}
			if !empty || seen[string(h.At(d))] { // with a node that was seen, all above it were
				break
			}
			seen[string(h.At(d))] = true
			above, err := pl.isEmptied(h, d-1)
			if err == nil {
				err = yield(h.At(d), !above)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// isEmptied reports whether a node above a home loses its last child. There is none above the root.
func (pl *plan) isEmptied(h *home, depth int) (bool, error) {
	if depth < 0 {
		return false, nil
	}
	stays, err := pl.leavesData(h.At(depth))
	return !stays, err
}

// hasEmptied reports whether eachEmptied has found a node: its index rows go with those of the highest.
func (pl *plan) hasEmptied(key []byte) bool {
	stays, known := pl.leaves[string(key)]
	return known && !stays
}

// keepsPriority reports whether a split node whose priority is changed is still there
// after the write, and marks the assignment.
func (pl *plan) keepsPriority(p tree.Path, key []byte) (bool, error) {
	stays, err := pl.leavesData(key)
	pl.mark(p, mark{void: !stays, object: stays})
	return stays && err == nil, err
}

// leavesData reports whether the write leaves data at or below the node with a key,
// which was split before it. If it does, it also leaves data at the nodes above.
func (pl *plan) leavesData(key []byte) (bool, error) {
	if answer, known := pl.leaves[string(key)]; known {
		return answer, nil
	}
	answer, err := pl.findRest(key)
	if pl.leaves == nil {
		pl.leaves = make(map[string]bool)
	}
	pl.leaves[string(key)] = answer
	for end := layout.RootBytes; answer && end < len(key); end += layout.ComponentLen(key[end:]) {
		pl.leaves[string(key[:end])] = true
	}
	return answer, err
}

// findRest looks for a row that the write leaves below a node, from the places
// that it empties: first after the last of them, then before it. From the beginning
// of the node it would pass what is left of all that was ever deleted there, which
// made a queue, whose oldest child is deleted each time, slower with every job.
func (pl *plan) findRest(key []byte) (bool, error) {
	filled, last := pl.left(key)
	if filled || last == nil {
		return true, nil
	}
	found, err := pl.restAfter(key, last)
	if found || err != nil {
		return found, err
	}
	return pl.restBefore(key, last)
}

// restAfter looks after the last home below a node that is emptied.
func (pl *plan) restAfter(key, last []byte) (bool, error) {
	end := pl.data.end(key)
	for from := layout.SubtreeEnd(nil, last); ; {
		row, err := pl.data.seek(from, end)
		if err != nil || row == nil || !layout.Belongs(row, key) {
			return false, err
		}
		if _, isPriority := pl.emptiedHome(row); !isPriority {
			return true, nil
		}
		from = append(bytes.Clone(row), 0)
	}
}

// restBefore looks before it.
func (pl *plan) restBefore(key, last []byte) (bool, error) {
	for to := last; ; {
		row, err := pl.data.seekBack(key, to)
		if err != nil || row == nil || !layout.Belongs(row, key) {
			return false, err
		}
		end, isPriority := pl.emptiedHome(row)
		switch {
		case end > 0:
			to = bytes.Clone(pl.outermostEmptied(row[:end], len(key)))
		case isPriority:
			to = bytes.Clone(row)
		default:
			return true, nil
		}
	}
}

// outermostEmptied returns the key of a home that is emptied, or that of the highest node above it, and below one whose key has
// so many bytes, of which it is known that the write leaves nothing there. Nodes are looked at from the lowest on. Without this each
// node above many homes would have all of them passed again.
func (pl *plan) outermostEmptied(home []byte, above int) []byte {
	for end := above; end < len(home); {
		end += layout.ComponentLen(home[end:])
		if stays, known := pl.leaves[string(home[:end])]; known && !stays {
			return home[:end]
		}
	}
	return home
}

// left reports whether the write puts data below the node with a key; and the key of
// the last home there that it empties, nil if there is none.
func (pl *plan) left(key []byte) (filled bool, last []byte) {
	if len(pl.homes.list) > fewHomes {
		pl.fill()
		return pl.filled[string(key)], pl.lastEmptied[string(key)]
	}
	for _, h := range pl.homes.list {
		switch {
		case !layout.Belongs(h.Key, key):
		case !h.empty:
			filled = true
		case bytes.Compare(h.Key, last) > 0:
			last = h.Key
		}
	}
	return filled, last
}

// fill works out pl.filled and pl.lastEmptied. Looking through the homes for each
// answer instead took seconds for a PATCH of ten thousand paths.
func (pl *plan) fill() {
	if pl.filled != nil {
		return
	}
	pl.filled, pl.lastEmptied = make(map[string]bool), make(map[string][]byte)
	for _, h := range pl.homes.list {
		whole := string(h.Key) // of which the others are parts
		for d := h.Depth(); d >= 0; d-- {
			switch key := whole[:h.Ends[d]]; {
			case !h.empty:
				pl.filled[key] = true
			case bytes.Compare(h.Key, pl.lastEmptied[key]) > 0:
				pl.lastEmptied[key] = h.Key
			}
		}
	}
}

// emptiedHome returns the length of the key of the home that held a row and holds
// nothing any more, 0 if there is none; and whether the row is a priority.
func (pl *plan) emptiedHome(row []byte) (end int, isPriority bool) {
	for end = layout.RootBytes; ; {
		if h := pl.homes.at(row[:end]); h != nil && h.empty {
			return end, false
		}
		n := layout.ComponentLen(row[end:])
		if n < 0 {
			return 0, len(row) == end+1 && row[end] == layout.PriorityMark
		}
		end += n
	}
}
