package layout

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Of a packed number the lower bits say where its component is. Up to packedFew of them need no memory of their own.
const (
	packedBits  = 16
	packedWhere = 1<<packedBits - 1
	packedFew   = 256
)

// SortComponents sorts components of children of one node. They often begin alike, so that is looked at once. After it six bytes
// tell most of them apart: packed with where each was, they are sorted as numbers, and only those whose six bytes are the same are
// compared as a whole.
func SortComponents(list [][]byte) {
	if len(list) > packedWhere {
		slices.SortFunc(list, bytes.Compare)
		return
	}
	alike := alikeBytes(list)
	var memory [packedFew]uint64
	packed := slices.Grow(memory[:0], len(list))[:len(list)]
	for i, component := range list {
		packed[i] = firstBytes(component[alike:])<<packedBits | uint64(i)
	}
	slices.Sort(packed)
	arrange(list, packed)
	for i := 0; i < len(list); {
		end := i + 1
		for end < len(list) && packed[end]>>packedBits == packed[i]>>packedBits {
			end++
		}
		if end > i+1 {
			slices.SortFunc(list[i:end], bytes.Compare)
		}
		i = end
	}
}

// firstBytes returns the first six bytes, zeros behind those of a shorter text: it comes before those that it begins, or is
// the same.
func firstBytes(text []byte) uint64 {
	if len(text) >= 8 {
		return binary.BigEndian.Uint64(text) >> packedBits
	}
	var first [8]byte
	copy(first[:], text)
	return binary.BigEndian.Uint64(first[:]) >> packedBits
}

// arrange puts each component in its place, for which packed says where it is. Those that change places in a ring are moved
// along it.
func arrange(list [][]byte, packed []uint64) {
	for start := range list {
		first := list[start]
		for to := start; int(packed[to]&packedWhere) != to; {
			from := int(packed[to] & packedWhere)
			packed[to] = packed[to]&^packedWhere | uint64(to) // it is there
			if from == start {
				list[to] = first
				break
			}
			list[to] = list[from]
			to = from
		}
	}
}

// alikeBytes returns how many bytes all of a list begin with.
func alikeBytes(list [][]byte) int {
	if len(list) == 0 {
		return 0
	}
	alike := len(list[0])
	for _, b := range list {
		alike = min(alike, len(b))
		for i := range alike {
			if b[i] != list[0][i] {
				alike = i
				break
			}
		}
	}
	return alike
}
