package deliver

import "sync"

// slots are what all queues share: how many deliveries are under way, and how large their notices are.
type slots struct {
	count    int
	maxBytes int64

	mu      sync.Mutex
	used    int
	bytes   int64
	waiting []*queue // in the order in which they came; each once
}

// take takes a slot for a queue that has some already, or notes that the queue waits for one. The last half of
// them is for queues with less than two: so many that stall leave room for others.
func (s *slots) take(q *queue, has int, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == 0 || s.used < s.count && (s.used < s.count/2 || has < 2) && s.bytes+bytes <= s.maxBytes {
		s.used++
		s.bytes += bytes
		return true
	}
	if !q.waits {
		q.waits = true
		s.waiting = append(s.waiting, q)
	}
	return false
}

// give gives a slot back, and wakes the queue that has waited longest.
func (s *slots) give(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.bytes -= bytes
	if len(s.waiting) > 0 {
		q := s.waiting[0]
		s.waiting = s.waiting[1:]
		q.waits = false
		q.wake()
	}
}
