package tree

import "slices"

// A shape is the keys of an object in the order in which they came, and how that
// differs from the order of keys. Records of a collection mostly have one shape,
// so the next object need not be sorted if it has that of the last.
type shape struct {
	keys  []cell  // as they came; only key and keyLen count
	order []uint8 // the places in keys, in the order of keys
	moved []entry // where children change their places
}

// maxShape is how many children an object may have whose shape is remembered.
const maxShape = 32

// arrange sorts children that have the shape; it reports false if they have not.
func (s *shape) arrange(children []entry) bool {
	if len(children) != len(s.order) {
		return false
	}
	for i, c := range children {
		if k := s.keys[i]; c.key != k.key || c.keyLen != k.keyLen {
			return false
		}
	}
	s.moved = append(s.moved[:0], children...)
	for i, place := range s.order {
		children[i] = s.moved[place]
	}
	return true
}

// expect takes the keys of children that are to be sorted.
func (s *shape) expect(children []entry) {
	s.keys, s.order = s.keys[:0], s.order[:0]
	if len(children) > maxShape {
		return
	}
	for _, c := range children {
		s.keys = append(s.keys, c.cell)
	}
}

// learn takes the order of the same children, which have different keys.
func (s *shape) learn(children []entry) {
	if len(s.keys) != len(children) {
		return
	}
	for _, c := range children {
		for place, k := range s.keys {
			if k.key == c.key && k.keyLen == c.keyLen {
				s.order = append(s.order, uint8(place))
				break
			}
		}
	}
}

// forget keeps nothing but the memory.
func (s *shape) forget() { s.keys, s.order = s.keys[:0], s.order[:0] }

// sort puts the children of an object into the order of keys.
func (d *decoder) sort(children []entry) error {
	if d.shape.arrange(children) {
		return nil
	}
	another := len(d.slab.cells) > 0 // object came before: more of its kind may come
	if another {
		d.shape.expect(children)
	}
	slices.SortFunc(children, func(a, b entry) int {
		if order := d.slab.compareCells(a.cell, b.cell); order != 0 {
			return order
		}
		return a.at.compare(b.at)
	})
	for i := range len(children) - 1 {
		if d.slab.compareCells(children[i].cell, children[i+1].cell) == 0 {
			return d.repeated(children[i+1])
		}
	}
	if another {
		d.shape.learn(children)
	}
	return nil
}
