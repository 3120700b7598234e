package tree

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// A shape is the keys of an object in the order in which they came, and how that
// differs from the order of keys. Records of a collection mostly have one shape.
// So where an object has the keys of the last one as deep, each is only compared
// with the one that is expected, and they need not be sorted.
type shape struct {
	keys    []cell  // as they came; only key and keyLen count
	ordered int     // how many of the first came in the order of keys
	order   []uint8 // the places in keys, in the order of keys; empty if all came so
}

const (
	// maxShape is how many children an object may have whose shape is remembered.
	maxShape = 32
	// shapeLevels is how many levels of a text have shapes, below its first, which
	// is one object.
	shapeLevels = 4
	// maxRootText is how long the keys of an object may be together whose shape is kept for
	// the next text.
	maxRootText = 512
	// lookAhead is how many keys of a shape are tried for the next key of an object:
	// children may be missing.
	lookAhead = 4
)

// shapeAt returns the shape of the last object that was as deep, of the text that was read
// before if the object is all of the text; nil if there are none.
func (d *decoder) shapeAt(depth int) *shape {
	level := depth - d.opts.Depth - 1
	switch {
	case level == -1 && !d.claims:
		return d.rootShape()
	case level < 0 || level >= shapeLevels:
		return nil
	}
	return &d.shapes[level]
}

// rootShape returns the shape of the object that is the text, whose first member is next. The
// keys of what was read before become a part of this text if the first of them is the same.
// Those of claims may be anything: they are neither kept nor compared.
func (d *decoder) rootShape() *shape {
	s := &d.root
	if len(s.keys) == 0 {
		return s
	}
	first, n := s.keys[0], int(s.keys[0].keyLen)
	rest := d.buf[d.pos:]
	if len(d.slab.text) > 0 || first.keyLen == indexKey || len(rest) < n+len(`""`) || rest[0] != '"' || rest[n+1] != '"' ||
		string(rest[1:n+1]) != string(d.rootText[:n]) {
		s.forget()
		return s
	}
	d.slab.text = append(d.slab.text, d.rootText...)
	return s
}

// keepRoot keeps the shape of the object that is the text for the next one.
func (d *decoder) keepRoot() {
	d.rootText = d.rootText[:0]
	for i := range d.root.keys {
		k := &d.root.keys[i]
		if k.keyLen == indexKey {
			continue
		}
		at := len(d.rootText)
		d.rootText = append(d.rootText, d.slab.slice(k.key, int(k.keyLen))...)
		k.key = uint32(at)
	}
	if len(d.rootText) > maxRootText {
		d.root.forget()
		d.rootText = nil
	}
}

// expected reads the next key of an object if it is one that the shape has there.
// Then it needs no check.
func (d *decoder) expected(o *openObject) (key cell, ok bool) {
	if o.shape == nil {
		return cell{}, false
	}
	keys := o.shape.keys
	text := d.buf[d.pos+1:]
	for place := o.place; place < min(o.place+lookAhead, len(keys)); place++ {
		k := keys[place]
		n := int(k.keyLen)
		if k.keyLen == indexKey || n >= len(text) || text[n] != '"' || string(text[:n]) != d.slab.slice(k.key, n) {
			continue
		}
		if place > o.place {
			o.stray()
		}
		o.place = place + 1
		d.pos += n + len(`""`)
		return k, true
	}
	return cell{}, false
}

// follow reads members of an object, of which one must be next, while each of them is the one
// that the shape has next, is a leaf in its plainest spelling, and needs no memory. It reports
// whether it has come to the brace that ends the object; if not, a member must be next.
//
// Most of a large text is read here, in less than half of the time that member takes for it.
func (d *decoder) follow(o *openObject) (ended bool) {
	if o.depth+1 > MaxDepth {
		return false
	}
	for buf := d.buf; o.place < len(o.shape.keys) && len(d.stack) < cap(d.stack); o.place++ {
		key := o.shape.keys[o.place]
		n := int(key.keyLen)
		colon := d.pos + n + len(`""`)
		if key.keyLen == indexKey || colon >= len(buf) || buf[d.pos] != '"' || buf[colon-1] != '"' || buf[colon] != ':' ||
			string(buf[d.pos+1:colon-1]) != d.slab.slice(key.key, n) {
			return false
		}
		leaf, end := d.plainLeaf(buf, colon+1)
		if end == 0 || end >= len(buf) || buf[end] != ',' && buf[end] != '}' {
			return false
		}
		if leaf.kind == String {
			d.slab.text = append(d.slab.text, buf[colon+2:end-1]...)
		}
		leaf.key, leaf.keyLen = key.key, key.keyLen
		d.stack = append(d.stack, entry{leaf, d.position()})
		o.members++
		if d.pos = end; buf[end] == '}' {
			o.place++
			return true
		}
		d.pos++
	}
	return false
}

// plainLeaf returns the leaf that begins at a place in the buffer, and where it ends; 0 if it is
// not all there, or none in its plainest spelling: a string of ASCII without escapes, which
// finds room, an integer that is not negative, true or false. The text of a string is not added yet.
func (d *decoder) plainLeaf(buf []byte, at int) (leaf cell, end int) {
	if at >= len(buf) {
		return cell{}, 0
	}
	switch c := buf[at]; {
	case c == '"':
		end = at + 1
		for end < len(buf) && stringBytes[buf[end]] == 0 {
			end++
		}
		n, start := end-at-1, len(d.slab.text)
		if end == len(buf) || buf[end] != '"' || n > min(cap(d.slab.text)-start, MaxStringBytes) || uint64(start+n) > math.MaxUint32 {
			return cell{}, 0
		}
		return cell{kind: String, bits: pair(start, n)}, end + 1
	case '0' <= c && c <= '9':
		const safe = 18 // digits fit an int64
		var v int64
		for end = at; end < len(buf) && end-at <= safe && '0' <= buf[end] && buf[end] <= '9'; end++ {
			v = v*10 + int64(buf[end]-'0')
		}
		if end-at > safe || c == '0' && end-at > 1 {
			return cell{}, 0
		}
		return cell{kind: Integer, bits: uint64(v)}, end
	case bytes.HasPrefix(buf[at:], []byte("true")):
		return cell{kind: Boolean, bits: 1}, at + len("true")
	case bytes.HasPrefix(buf[at:], []byte("false")):
		return cell{kind: Boolean}, at + len("false")
	}
	return cell{}, 0
}

// stray notes that the object has not all keys of the shape, one after the other.
func (o *openObject) stray() {
	if o.follows {
		o.follows, o.ordered = false, min(o.place, o.shape.ordered)
	}
}

// arrange returns the places of the children of an object in the order of keys,
// nil if they are in that order, and remembers the shape.
func (d *decoder) arrange(o *openObject) ([]uint8, error) {
	if o.follows && o.place == len(o.shape.keys) {
		return o.shape.order, nil
	}
	o.stray()
	children := d.stack[o.base:]
	if len(children) > maxShape {
		if o.ordered < len(children) {
			return nil, d.sort(children)
		}
		return nil, nil
	}
	var order []uint8
	var err error
	if o.ordered < len(children) {
		order, err = d.places(children)
	}
	if o.shape != nil && !o.escaped && len(children) > 0 && err == nil {
		o.shape.learn(children, o.ordered, order)
		if o.shape == &d.root {
			d.keepRoot()
		}
	}
	return order, err
}

// learn takes the shape of an object.
func (s *shape) learn(children []entry, ordered int, order []uint8) {
	s.keys, s.ordered, s.order = s.keys[:0], ordered, append(s.order[:0], order...)
	for _, c := range children {
		s.keys = append(s.keys, c.cell)
	}
}

// forget keeps nothing but the memory.
func (s *shape) forget() { s.keys = s.keys[:0] }

// places returns the places of a few children in the order of keys. They are valid
// until the next call.
func (d *decoder) places(children []entry) ([]uint8, error) {
	order := d.order[:0]
	for place := range children {
		order = append(order, uint8(place))
	}
	slices.SortFunc(order, func(a, b uint8) int {
		if order := d.slab.compareCells(children[a].cell, children[b].cell); order != 0 {
			return order
		}
		return cmp.Compare(a, b)
	})
	d.order = order
	for i := range len(order) - 1 {
		if d.slab.compareCells(children[order[i]].cell, children[order[i+1]].cell) == 0 {
			return nil, d.repeated(children[order[i+1]])
		}
	}
	return order, nil
}

// sort puts the children of an object into the order of keys.
func (d *decoder) sort(children []entry) error {
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
	return nil
}
