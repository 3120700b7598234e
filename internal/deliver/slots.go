package deliver

import (
	"slices"
	"sync"
)

// slots are what all queues share: how many deliveries are under way, and how large their notices are. The upper half of both is
// for queues that have next to nothing under way, so many that stall leave room for others. A queue with
// nothing under way that waits is not passed by any other, so none is left out for long.
//
// Small notices are the exception: a quarter of the bytes is theirs, as much as they need if they have all slots. So they need only a slot, and
// pass queues that wait for bytes as long as one slot is left for those.
type slots struct {
	count    int
	maxBytes int64

	mu      sync.Mutex
	used    int
	bytes   int64    // of notices that are not small
	starved []waiter // that have nothing under way, in the order in which they came
	waiting []waiter // that have something under way, likewise
}

// A waiter is a queue that waits for a slot.
type waiter struct {
	queue *queue
	small bool // for a small notice
}

func (s *slots) isSmall(bytes int64) bool { return bytes <= s.maxBytes/4/int64(s.count) }

// take takes a slot for a queue that has some already, or notes that the queue waits for one.
func (s *slots) take(q *queue, has int, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isNext(q, has, bytes) || !s.hasRoom(has, bytes) {
		s.wait(q, has, bytes)
		return false
	}
	if s.used++; !s.isSmall(bytes) {
		s.bytes += bytes
	}
	s.remove(q)
	return true
}

// isNext reports whether no other queue waits that must not be passed.
func (s *slots) isNext(q *queue, has int, bytes int64) bool {
	for _, w := range s.starved {
		if w.queue == q && has == 0 {
			return true
		}
		if w.small || !s.isSmall(bytes) || s.used+1 >= s.count {
			return false
		}
	}
	return true
}

func (s *slots) hasRoom(has int, bytes int64) bool {
	if s.used >= s.count || s.used >= s.count/2 && has >= 2 {
		return false
	}
	if s.isSmall(bytes) || s.bytes == 0 {
		return true
	}
	most := s.maxBytes - s.maxBytes/4
	if has > 0 {
		most /= 2
	}
	return s.bytes+bytes <= most
}

// wait notes that a queue waits. It keeps its place.
func (s *slots) wait(q *queue, has int, bytes int64) {
	list := &s.waiting
	if has == 0 {
		list = &s.starved
	}
	i := slices.IndexFunc(*list, func(w waiter) bool { return w.queue == q })
	if i < 0 {
		s.remove(q)
		*list = append(*list, waiter{queue: q})
		i = len(*list) - 1
	}
	(*list)[i].small = s.isSmall(bytes)
}

// give gives a slot back.
func (s *slots) give(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used--; !s.isSmall(bytes) {
		s.bytes -= bytes
	}
	s.wake()
}

// leave notes that a queue does not wait any more.
func (s *slots) leave(q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(q)
}

// remove takes a queue away from those that wait, and wakes the next, for which there may be room as well.
func (s *slots) remove(q *queue) {
	is := func(w waiter) bool { return w.queue == q }
	before := len(s.starved) + len(s.waiting)
	s.starved, s.waiting = slices.DeleteFunc(s.starved, is), slices.DeleteFunc(s.waiting, is)
	if len(s.starved)+len(s.waiting) < before {
		s.wake()
	}
}

// wake wakes the queue that is next, and the first that may pass it.
func (s *slots) wake() {
	for i, w := range s.starved {
		if i == 0 || w.small {
			w.queue.wake()
		}
		if w.small {
			return
		}
	}
	i := slices.IndexFunc(s.waiting, func(w waiter) bool { return w.small || len(s.starved) == 0 })
	if i >= 0 {
		w := s.waiting[i]
		w.queue.wake()
		// It still waits, perhaps, but others may need less than it.
		s.waiting = append(slices.Delete(s.waiting, i, i+1), w)
	}
}
