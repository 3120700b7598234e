package tree

import "unsafe"

// SlabBytes returns the memory that n and all nodes decoded with it take.
func SlabBytes(n Node) int64 {
	if n.slab == nil {
		return 0
	}
	return int64(cap(n.slab.cells))*int64(unsafe.Sizeof(cell{})) + int64(cap(n.slab.text))
}
