package tree

import "unsafe"

// A Tally adds up how much memory nodes keep alive, which is all that each was made
// with. What several of them share counts once. The zero Tally is empty.
type Tally struct {
	bytes int
	// few are the first arrays that were counted, many are the others.
	few  [8]unsafe.Pointer
	many map[unsafe.Pointer]struct{}
}

// slabBytes is what a slab takes beside its arrays, at most.
const slabBytes = int(unsafe.Sizeof(slab{})) + firstCells*int(unsafe.Sizeof(cell{}))

// Add counts a node.
func (t *Tally) Add(n Node) {
	if n.slab == nil {
		return
	}
	// An edited node has cells of its own, and may share the text.
	if t.isNew(unsafe.Pointer(unsafe.SliceData(n.slab.cells))) {
		t.bytes += slabBytes + cap(n.slab.cells)*int(unsafe.Sizeof(cell{}))
	}
	if t.isNew(unsafe.Pointer(unsafe.SliceData(n.slab.text))) {
		t.bytes += cap(n.slab.text)
	}
}

// Bytes returns how much all nodes keep.
func (t *Tally) Bytes() int { return t.bytes }

// isNew reports whether an array was not counted yet.
func (t *Tally) isNew(array unsafe.Pointer) bool {
	if array == nil {
		return false
	}
	for i, seen := range t.few {
		if seen == array {
			return false
		}
		if seen == nil {
			t.few[i] = array
			return true
		}
	}
	if _, ok := t.many[array]; ok {
		return false
	}
	if t.many == nil {
		t.many = make(map[unsafe.Pointer]struct{})
	}
	t.many[array] = struct{}{}
	return true
}
