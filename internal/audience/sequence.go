package audience

import (
	"container/heap"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/watch"
)

// A sequence is what a client is told next, as far as that is known. The lock of the
// audience guards it.
type sequence struct {
	woken []*Listen // that may have events
	heads heads     // those whose next event is known
	// renewals is how many of these tell a listen anew what is there. They may stand for
	// any commit, so no answer goes out before them.
	renewals int
	answers  []*Answer   // not taken, in order
	reads    []*Answer   // those of reads, which are in the order of events and so not in that of the others
	queued   uint64      // how many answers there were so far
	aging    *time.Timer // for those of them that hold a view; nil for none
	renewing *time.Timer // for listens whose next event holds one; nil for none
	// paused says that no events are told, because it is being worked out which listens
	// go on.
	paused bool
	// held says that nothing behind ceiling is told: a listen is being opened, whose first
	// event may be of any later commit.
	held    bool
	ceiling uint64
	// telling is the listen whose event was taken last, and tellingTo the state that the client has
	// when it was told that; nil if it was, or if that is not known.
	telling   *Listen
	tellingTo uint64
	bytes     int           // that heads count for
	claim     *budget.Claim // of them; nil while they are few
}

// wake has a listen looked at.
func (s *sequence) wake(l *Listen) {
	if !l.woken {
		l.woken = true
		s.woken = append(s.woken, l)
	}
}

// takeWoken returns a listen that may have an event and whose next event is not known; nil
// if there is none.
func (s *sequence) takeWoken() *Listen {
	if s.paused {
		return nil
	}
	for n := len(s.woken); n > 0; n = len(s.woken) {
		l := s.woken[n-1]
		s.woken[n-1] = nil
		s.woken = s.woken[:n-1]
		l.woken = false
		if l.head != nil {
			l.more = true // to be looked at when that was told
		} else if l.opened && !l.over {
			l.taking = true
			return l
		}
	}
	if cap(s.woken) > keptWoken {
		s.woken = nil
	}
	return nil
}

// keptWoken is how long a list is kept to be used again.
const keptWoken = 4

// nextAnswer returns the first answer, nil if there is none. The dispatcher tells several
// commits at a time, and some events are of all of them together. So an answer whose
// commit was told comes behind all that was told by then.
func (s *sequence) nextAnswer(told uint64) *Answer {
	if len(s.answers) == 0 {
		return nil
	}
	answer := s.answers[0]
	if !answer.placed && answer.position <= told {
		answer.position, answer.placed = told, true
	}
	return answer
}

// queue makes an answer the last one of its kind.
func (s *sequence) queue(answer *Answer) {
	s.queued++
	answer.number = s.queued
	if answer.read {
		s.reads = append(s.reads, answer)
	} else {
		s.answers = append(s.answers, answer)
	}
}

// nextRead returns the answer of the first read, nil if there is none, or if it comes after the next event
// of a listen, which may be nil.
func (s *sequence) nextRead(l *Listen) *Answer {
	if len(s.reads) == 0 || l != nil && l.head.Position <= s.reads[0].position {
		return nil
	}
	return s.reads[0]
}

// takeFirst takes an answer that is the first one of its kind.
func (s *sequence) takeFirst(answer *Answer) {
	list := &s.answers
	if answer.read {
		list = &s.reads
	}
	(*list)[0] = nil
	if *list = (*list)[1:]; len(*list) == 0 && answer.read {
		*list = nil
	}
}

// nextListen returns the listen whose event is next, nil if there is none.
func (s *sequence) nextListen() *Listen {
	if len(s.heads) == 0 || s.paused {
		return nil
	}
	return s.heads[0]
}

// isRenewal reports whether an event tells a listen, perhaps anew, what is there.
func isRenewal(e *watch.Event) bool { return e.Content != nil || e.Kind == watch.Ranges }

// put makes an event the next one of a listen. There may be more behind it.
func (s *sequence) put(l *Listen, e *watch.Event, more bool) {
	l.head, l.more, l.renewal = e, more, isRenewal(e)
	if l.renewal {
		s.renewals++
	}
	heap.Push(&s.heads, l)
}

// take takes it out again.
func (s *sequence) take(l *Listen) {
	heap.Remove(&s.heads, l.index)
	if l.renewal {
		s.renewals--
	}
	s.letGo(l)
	l.head, l.more, l.renewal, l.viewAt = nil, false, false, time.Time{}
}

// drop gives up the next event of a listen, if it is known.
func (s *sequence) drop(l *Listen) {
	if l.head == nil {
		return
	}
	if l.head.Content != nil {
		_ = l.head.Content.Close()
	}
	s.take(l)
}

// cut has a listen that does not go on looked at, and gives up its next event unless that says
// so.
func (s *sequence) cut(l *Listen) {
	if l.head != nil && l.head.Kind < watch.Cancel {
		s.drop(l)
	}
	s.wake(l)
}

// heads are listens by the position of their next event. Of a commit, the higher location
// is told first: a client applies an event to all listens that show its path, and one
// for a lower location would show the higher listen a part of the commit.
type heads []*Listen

func (h heads) Len() int { return len(h) }

// Less implements heap.Interface.
func (h heads) Less(i, j int) bool {
	if a, b := h[i].head.Position, h[j].head.Position; a != b {
		return a < b
	}
	return h[i].Path.Depth() < h[j].Path.Depth()
}

func (h heads) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *heads) Push(x any) {
	l := x.(*Listen)
	l.index = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *heads) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}
