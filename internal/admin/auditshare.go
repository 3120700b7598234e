package admin

import "slices"

// shareOut returns the entries that stay where there is room for some only, the oldest first.
// Every database has the same share, of which it keeps its newest entries; what one does not need
// is there for the others. So a database that does much pushes out its own entries alone.
func shareOut(list []Audited, room int64, size func(Audited) int64) []Audited {
	sums := map[string]int64{}
	for _, e := range list {
		sums[e.Database] += size(e)
	}
	share, used, kept := fairShare(sums, room), map[string]int64{}, []Audited{}
	for _, e := range slices.Backward(list) {
		n := size(e)
		if used[e.Database] += n; n <= room && used[e.Database] <= max(share, n) {
			kept, room = append(kept, e), room-n
		}
	}
	slices.Reverse(kept)
	return kept
}

// fairShare returns the largest share with which all have room.
func fairShare(sums map[string]int64, room int64) int64 {
	list := make([]int64, 0, len(sums))
	for _, n := range sums {
		list = append(list, n)
	}
	slices.Sort(list)
	for i, n := range list {
		if share := room / int64(len(list)-i); n > share {
			return share
		}
		room -= n
	}
	return max(room, 0) + slices.Max(append(list, 0)) // all have all that they need
}

// linesOf returns the entries as they were read.
func linesOf(list []Audited) [][]byte {
	lines := make([][]byte, len(list))
	for i, e := range list {
		lines[i] = e.line
	}
	return lines
}
