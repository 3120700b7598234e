package deliver

import (
	"slices"
	"sync"
)

// slots are what all queues share: how many deliveries are under way, and how large their notices are. The upper half of both is
// for queues that have next to nothing under way, so many that stall leave room for others. A queue with
// nothing under way that waits is not passed by any other, so none is left out for long.
type slots struct {
	count    int
	maxBytes int64

	mu      sync.Mutex
	used    int
	bytes   int64
	starved []*queue // that wait and have nothing under way, in the order in which they came
	waiting []*queue // that wait and have something under way, likewise
}

// take takes a slot for a queue that has some already, or notes that the queue waits for one.
func (s *slots) take(q *queue, has int, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isNext := len(s.starved) == 0 || has == 0 && s.starved[0] == q
	if isNext && s.hasRoom(has, bytes) {
		s.used++
		s.bytes += bytes
		s.remove(q)
		return true
	}
	list := &s.waiting
	if has == 0 {
		list = &s.starved
	}
	if !slices.Contains(*list, q) {
		s.remove(q)
		*list = append(*list, q)
	}
	return false
}

func (s *slots) hasRoom(has int, bytes int64) bool {
	if s.used == 0 {
		return true
	}
	if s.used >= s.count || s.used >= s.count/2 && has >= 2 {
		return false
	}
	if has > 0 {
		return s.bytes+bytes <= s.maxBytes/2
	}
	return s.bytes+bytes <= s.maxBytes
}

// give gives a slot back.
func (s *slots) give(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.bytes -= bytes
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
	is := func(other *queue) bool { return other == q }
	before := len(s.starved) + len(s.waiting)
	s.starved, s.waiting = slices.DeleteFunc(s.starved, is), slices.DeleteFunc(s.waiting, is)
	if len(s.starved)+len(s.waiting) < before {
		s.wake()
	}
}

// wake wakes the queue that is next.
func (s *slots) wake() {
	if len(s.starved) > 0 {
		s.starved[0].wake()
	} else if len(s.waiting) > 0 {
		s.waiting[0].wake()
		// It is the first to wake next time if it still waits, but others may need less than it.
		s.waiting = append(s.waiting[1:], s.waiting[0])
	}
}
