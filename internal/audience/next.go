package audience

import (
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// An Item is what the client is told next: an event of a listen, or an answer, or that
// its identity has ended.
type Item struct {
	Listen *Listen
	Event  *watch.Event
	Answer *Answer
	// Logout, if not nil, is why the identity is not good any more. The client is nobody
	// now.
	Logout error
}

// An Answer is that to a request.
type Answer struct {
	ID     int64
	Err    error
	Commit engine.Commit
	// Trace shows the rules that were tried, for an identity that debugs.
	Trace string
	// Unindexed says that a listen lacks its index.
	Unindexed bool
	// Content is what a Get has found. It must be closed.
	Content watch.Content
	// Note is what Reply was given.
	Note any

	position uint64    // of what it was judged on
	placed   bool      // position is that up to which all listens are told before it
	read     bool      // it is that of a read
	whole    bool      // and that of all that is at path
	path     tree.Path // of what was read
	number   uint64    // of all answers
	bytes    int       // of the request
	until    time.Time // when its content is given up if it was not taken
}

// drop lets go of an answer that nobody takes.
func (a *Answer) drop() {
	if a.Content != nil {
		_ = a.Content.Close()
	}
}

// Next returns what the client is told next; false if there is nothing now.
func (a *Audience) Next() (Item, bool) {
	for !a.ended.Load() {
		told := a.order.Told() // before the look: what was told so far was woken for before
		a.look()
		item, position, found := a.choose(told)
		switch {
		case found:
			return item, true
		case position == 0 || !a.order.ToldTo(position, a):
			return Item{}, false
		}
	}
	return Item{}, false
}

// look takes the next event of all listens that may have one. It returns with the lock held,
// for choose: it is taken for each event to each client. While an event is taken it is not, and
// a defect there must not leave it held.
func (a *Audience) look() {
	a.mu.Lock()
	for l := a.sequence.takeWoken(); l != nil; l = a.sequence.takeWoken() {
		a.mu.Unlock()
		e, who, more, ok := l.next()
		if ok && e.Kind == watch.Revoked {
			a.logOut(who, ErrRevoked) // which has all listens judged for nobody
			ok = false
		}
		a.mu.Lock()
		l.taking = false
		if ok {
			a.put(l, e, more)
		}
	}
}

// put makes an event the next one of a listen, unless that is over. If there is no memory for
// it, the listen is told later what is there. The lock is held, but not while that is arranged.
func (a *Audience) put(l *Listen, e *watch.Event, more bool) {
	over := l.over
	if !over && a.charge(l, e) {
		a.sequence.put(l, e, more)
		if e.Content != nil {
			limitViewAge(a, l)
		}
		return
	}
	if l.told = 0; a.sequence.telling == l { // the client lacks this, also when it has what it is being told
		a.sequence.telling = nil
	}
	a.mu.Unlock()
	if e.Content != nil { // the watch has forgotten it
		_ = e.Content.Close()
	}
	if !over {
		l.later()
	}
	a.mu.Lock()
}

// tell notes that the client is being told the next event of a listen, while the dispatcher is at a
// position. It has it when it is told what comes next: until then the event may be given up.
func (s *sequence) tell(l *Listen, told uint64) {
	s.telling, l.told = nil, 0
	switch e := l.head; {
	case !e.Last: // more of it comes
	case l.more:
		s.telling, s.tellingTo = l, e.Position
	default: // nothing else waits
		s.telling, s.tellingTo = l, max(e.Position, told)
	}
}

// wasTold notes that the client has what it was being told.
func (s *sequence) wasTold() {
	if s.telling != nil {
		s.telling.told, s.telling = s.tellingTo, nil
	}
}

// choose returns what is next in the order. If that has to wait for a position, it returns
// this; 0 if there is nothing. The lock is held, and given back.
func (a *Audience) choose(told uint64) (item Item, position uint64, found bool) {
	defer a.mu.Unlock()
	s := &a.sequence
	s.wasTold()
	if why := a.logout; why != nil {
		a.logout = nil
		return Item{Logout: why}, 0, true
	}
	if s.paused {
		return Item{}, 0, false // goOn wakes
	}
	if s.held && s.ceiling < told {
		// Who opens the listen wakes.
		defer func() { position = 0 }()
		told = s.ceiling
	}
	l := s.nextListen()
	answer := s.nextAnswer(told)
	if answer != nil && l != nil && (s.renewals > 0 || l.head.Position <= answer.position) {
		answer = nil // the event is before it
	}
	if read := s.nextRead(l); read != nil && (answer == nil || read.number < answer.number) {
		answer = read
	}
	switch {
	case l != nil && answer == nil:
		if l.head.Position > told {
			return Item{}, l.head.Position, false
		}
		item = Item{Listen: l, Event: l.head}
		more := l.more
		s.tell(l, told)
		l.toldAt = a.opts.Now()
		s.take(l)
		if more {
			s.wake(l)
		}
		return item, 0, true
	case answer != nil && answer.position > told:
		return Item{}, answer.position, false
	case answer != nil:
		s.takeFirst(answer)
		noteRead(a, answer)
		a.waiting--
		a.bytes -= answer.bytes
		a.room.Broadcast()
		return Item{Answer: answer}, 0, true
	}
	return Item{}, 0, false
}
