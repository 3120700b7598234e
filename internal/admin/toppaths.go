package admin

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// A usedPath is what operations are counted by: a path, and how it was used.
type usedPath struct {
	Database, Path, Verb string
	Index                string // that a query lacked
}

// A PathReport is how often something happened at a path.
type PathReport struct {
	Database string `json:"database"`
	Verb     string `json:"verb"`
	Path     string `json:"path"`
	Index    string `json:"index,omitempty"`
	Count    int    `json:"count"`
	// MaxError is by how much Count may be too great: not 0 if there were more
	// paths than are counted.
	MaxError int     `json:"max_error,omitempty"`
	Millis   float64 `json:"ms_average"`
	BytesOut int64   `json:"bytes_out"`
}

// topPaths finds the most frequent paths among any number of them, in bounded
// memory (space-saving: Metwally, Agrawal, El Abbadi 2005). When it is full, a new
// path takes over the counter of the rarest, with its count as the possible
// error. A path with more than one in len of all operations is always found.
type topPaths struct {
	limit    int
	counters map[usedPath]*counter
	order    counterHeap
}

type counter struct {
	usedPath
	count, err int
	at         int // in the heap
	measured   int // operations since it took over; what the sums are of
	took       time.Duration
	bytesOut   int64
}

func newTopPaths(limit int) topPaths {
	return topPaths{limit: limit, counters: make(map[usedPath]*counter)}
}

func (t *topPaths) add(p usedPath, o Operation) {
	c := t.counters[p]
	switch {
	case c != nil:
	case len(t.order) < t.limit:
		c = &counter{usedPath: p}
		t.counters[p] = c
		heap.Push(&t.order, c)
	default:
		c = t.order[0]
		delete(t.counters, c.usedPath)
		*c = counter{usedPath: p, count: c.count, err: c.count}
		t.counters[p] = c
	}
	c.count++
	c.measured++
	c.took += o.Took
	c.bytesOut += o.BytesOut
	heap.Fix(&t.order, c.at)
}

// list returns the n most frequent paths.
func (t *topPaths) list(n int) []PathReport {
	all := slices.Clone(t.order)
	slices.SortFunc(all, func(a, b *counter) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Database, b.Database))
	})
	list := []PathReport{}
	for _, c := range all[:min(n, len(all))] {
		list = append(list, PathReport{
			Database: c.Database,
			Verb:     c.Verb,
			Path:     c.Path,
			Index:    c.Index,
			Count:    c.count,
			MaxError: c.err,
			Millis:   millis(c.took / time.Duration(c.measured)),
			BytesOut: c.bytesOut,
		})
	}
	return list
}

// A counterHeap has the rarest path on top.
type counterHeap []*counter

func (h counterHeap) Len() int           { return len(h) }
func (h counterHeap) Less(i, j int) bool { return h[i].count < h[j].count }

func (h counterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *counterHeap) Push(c any) {
	c.(*counter).at = len(*h)
	*h = append(*h, c.(*counter))
}

// Pop implements heap.Interface.
func (h *counterHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
