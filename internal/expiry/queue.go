package expiry

import "container/heap"

// A queue holds entries in the order of their next steps.
type queue struct{ list entryHeap }

func (q *queue) first() *entry {
	if len(q.list) == 0 {
		return nil
	}
	return q.list[0]
}

func (q *queue) push(e *entry)   { heap.Push(&q.list, e) }
func (q *queue) remove(e *entry) { heap.Remove(&q.list, e.place) }

// move changes when the next step of an entry is made.
func (q *queue) move(e *entry, at int64) {
	e.at = at
	heap.Fix(&q.list, e.place)
}

// An entryHeap implements heap.Interface.
type entryHeap []*entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return h[i].at < h[j].at }

func (h entryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *entryHeap) Push(x any) {
	e := x.(*entry)
	e.place = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *entryHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
