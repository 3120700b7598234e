package exchange

import (
	"sync"
	"time"
)

// warnEvery is how often the log tells of what many clients can bring about.
const warnEvery = 10 * time.Second

// Seldom counts what the log shall tell of, but not each time. The zero value is
// ready for use.
type Seldom struct {
	mu   sync.Mutex
	told time.Time
	n    int // since then
}

// Count counts one, and returns how many there were since the log was told; false if
// that was a moment ago.
func (s *Seldom) Count(now time.Time) (n int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	n = s.n
	if now.Sub(s.told) < warnEvery {
		return n, false
	}
	s.told, s.n = now, 0
	return n, true
}
