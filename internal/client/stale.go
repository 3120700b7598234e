package client

import (
	"strings"
	"sync"
	"time"
)

// A stale is the set of paths of a copy that must be read again, oldest first. A
// path in it stands for all that is below.
type stale struct {
	now   func() time.Time
	added chan struct{} // has room for one signal

	mu     sync.Mutex
	queue  []string
	since  map[string]time.Time
	events int64
	last   time.Time
}

// maxStale bounds the set: more paths than that are one, the root.
const maxStale = 100_000

func newStale(now func() time.Time) *stale {
	return &stale{now: now, added: make(chan struct{}, 1), since: make(map[string]time.Time)}
}

// add adds a path.
func (s *stale) add(path string) {
	path = "/" + strings.Trim(path, "/")
	s.mu.Lock()
	s.events++
	s.last = s.now()
	switch {
	case s.covers(path):
	case path == "/" || len(s.queue) >= maxStale:
		oldest := s.last
		if len(s.queue) > 0 {
			oldest = s.since[s.queue[0]]
		}
		s.queue, s.since = []string{"/"}, map[string]time.Time{"/": oldest}
	default:
		s.queue = append(s.queue, path)
		s.since[path] = s.last
	}
	s.mu.Unlock()
	select {
	case s.added <- struct{}{}:
	default:
	}
}

// covers reports whether a path or one above it is in the set.
func (s *stale) covers(path string) bool {
	for {
		if _, ok := s.since[path]; ok {
			return true
		}
		if path == "/" {
			return false
		}
		path = path[:strings.LastIndexByte(path, '/')]
		if path == "" {
			path = "/"
		}
	}
}

// next takes the oldest path. A change that comes from now on adds it again, so
// that what is read may be too new, but never too old.
func (s *stale) next() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return "", false
	}
	path := s.queue[0]
	s.queue = s.queue[1:]
	delete(s.since, path)
	return path, true
}

// rest returns how many changes there were, and how long ago the last one was.
func (s *stale) rest() (events int64, ago time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events, s.now().Sub(s.last)
}

func (s *stale) lag() Lag {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := Lag{Stale: len(s.queue), Events: s.events}
	if len(s.queue) > 0 {
		l.Age = s.now().Sub(s.since[s.queue[0]])
	}
	return l
}
