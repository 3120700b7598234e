// Package shares lets few of a costly thing run at a time, and fewer of them for one client.
//
// A client is known by a session, of which it can begin as many as it likes, and by its
// group: what all sessions that rest on the same credential have in common. So a group has a
// share, too. The operator is the group without a name. The others cannot take the operator's
// share.
//
// Nothing here waits: what there is no place for is refused.
package shares

import "sync"

// A Who is a client.
type Who struct {
	Session string
	// Group is empty for the operator.
	Group string
}

// A Bound is how many run at a time: of a session, of a group, and of all groups but that of
// the operator.
type Bound struct{ Session, Group, All int }

// Shares are the places for one kind of thing. They are safe for concurrent use.
type Shares struct {
	bound Bound

	mu       sync.Mutex
	sessions map[Who]int
	groups   map[string]int
	others   int // that run for others than the operator
}

// New returns shares of which none is taken.
func New(b Bound) *Shares {
	return &Shares{bound: b, sessions: map[Who]int{}, groups: map[string]int{}}
}

// Enter takes a place for a client, and returns what gives it back; false if there is none.
func (s *Shares) Enter(w Who) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isOther := w.Group != ""
	if s.sessions[w] >= s.bound.Session || s.groups[w.Group] >= s.bound.Group || isOther && s.others >= s.bound.All {
		return nil, false
	}
	s.count(w, 1)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count(w, -1)
	}), true
}

// count counts a place that was taken, or given back. The lock is held.
func (s *Shares) count(w Who, by int) {
	if s.sessions[w] += by; s.sessions[w] == 0 {
		delete(s.sessions, w)
	}
	if s.groups[w.Group] += by; s.groups[w.Group] == 0 {
		delete(s.groups, w.Group)
	}
	if w.Group != "" {
		s.others += by
	}
}
