package hub

import (
	"slices"
	"sync"
)

// A Topic is a list of messages for its subscriptions, in one order. A message
// is kept until every subscription that was there when it was published has
// taken it, or until there are too many.
type Topic[M any] struct {
	budget *Budget

	mu            sync.Mutex
	slots         []slot[M] // what is kept
	first         uint64    // the number of the first slot
	bytes         int       // of all slots
	subscriptions []*Subscription[M]
}

// A slot is a message with what it takes, and how many have yet to take it.
type slot[M any] struct {
	message M
	bytes   int
	unread  int
}

// NewTopic returns a topic that draws on a budget.
func NewTopic[M any](budget *Budget) *Topic[M] { return &Topic[M]{budget: budget} }

// Subscribe returns a subscription to what is published from now on. Its wake is
// called by Topic.Wake and by the subscription's own methods, never with a lock
// held that Next needs; it must not block.
func (t *Topic[M]) Subscribe(wake func()) *Subscription[M] {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &Subscription[M]{topic: t, wake: wake, next: t.end(), index: len(t.subscriptions)}
	t.subscriptions = append(t.subscriptions, s)
	return s
}

// Subscriptions returns how many there are.
func (t *Topic[M]) Subscriptions() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.subscriptions)
}

// A Message is what Publish takes: with about how many bytes it holds.
type Message[M any] struct {
	Message M
	Bytes   int
}

// Publish appends messages, all before anybody can take the first. It wakes
// nobody.
func (t *Topic[M]) Publish(messages ...Message[M]) {
	t.mu.Lock()
	if len(t.subscriptions) > 0 {
		for _, m := range messages {
			t.slots = append(t.slots, slot[M]{m.Message, m.Bytes, len(t.subscriptions)})
			t.grow(m.Bytes)
		}
		for len(t.slots) > 1 && (t.bytes > t.budget.topicBytes || len(t.slots) > maxSlots) {
			t.drop()
		}
	}
	t.mu.Unlock()
	t.budget.relieve()
}

// maxSlots bounds the messages of a topic, however small they are.
const maxSlots = 16 << 10

// Wake calls the wake of every subscription. The scratch slice is used for the
// list, and returned to be used again.
func (t *Topic[M]) Wake(scratch []*Subscription[M]) []*Subscription[M] {
	t.mu.Lock()
	scratch = append(scratch[:0], t.subscriptions...)
	t.mu.Unlock()
	for _, s := range scratch {
		s.wake()
	}
	return scratch
}

// Skip is Subscription.Skip for all of them.
func (t *Topic[M]) Skip() {
	t.mu.Lock()
	all := slices.Clone(t.subscriptions)
	t.mu.Unlock()
	for _, s := range all {
		s.Skip()
	}
}

// end returns the number of the next message. The lock is held, as it is for the
// other methods below.
func (t *Topic[M]) end() uint64 { return t.first + uint64(len(t.slots)) }

// drop forgets the first message.
func (t *Topic[M]) drop() {
	t.grow(-t.slots[0].bytes)
	t.slots[0] = slot[M]{} // the array lives on
	t.slots = t.slots[1:]
	t.first++
	if len(t.slots) == 0 {
		t.slots = nil
	}
}

// release says that a subscription will not take the messages from one number to
// another.
func (t *Topic[M]) release(from, to uint64) {
	for n := max(from, t.first); n < to; n++ {
		t.slots[n-t.first].unread--
	}
	for len(t.slots) > 0 && t.slots[0].unread == 0 {
		t.drop()
	}
}

// grow counts bytes, and tells the budget.
func (t *Topic[M]) grow(bytes int) {
	t.budget.add(t, t.bytes, t.bytes+bytes)
	t.bytes += bytes
}

func (t *Topic[M]) kept() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}

// shed forgets the older half. What was published last goes last: those who keep
// up need nothing else.
func (t *Topic[M]) shed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range (len(t.slots) + 1) / 2 {
		t.drop()
	}
}

// A State is what Next found.
type State uint8

const (
	// Empty: there is nothing to take now.
	Empty State = iota
	// Taken: there was a message.
	Taken
	// Missed: some messages were dropped because there were too many. What is
	// published from now on comes next.
	Missed
	// Skipped is Missed after Skip.
	Skipped
	// Finished: the message is the last one there will be.
	Finished
)

// A Subscription is a place in a topic. Its methods are safe for concurrent use,
// but for Next, which one goroutine may call at a time.
type Subscription[M any] struct {
	topic   *Topic[M]
	wake    func()
	drained bool // of who calls Next

	// The rest is guarded by the topic's lock.

	index   int    // among the topic's subscriptions; -1 when closed
	next    uint64 // the number of the message to take
	skipped bool
	last    *M     // set by Finish
	lastAt  uint64 // the number that last stands in front of
}

// Next takes a message.
func (s *Subscription[M]) Next() (M, State) {
	t := s.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	missed := s.next < t.first && t.first != 0
	switch {
	case s.last != nil && (missed || s.skipped || s.next >= s.lastAt):
		s.leave()
		return *s.last, Finished
	case s.index < 0:
		var none M
		return none, Empty
	case s.skipped, missed:
		state := Missed
		if s.skipped {
			state = Skipped
		}
		t.release(s.next, t.end())
		s.next, s.skipped = t.end(), false
		var none M
		return none, state
	case s.next == t.end():
		var none M
		return none, Empty
	}
	m := t.slots[s.next-t.first].message
	t.release(s.next, s.next+1)
	s.next++
	s.drained = s.next == t.end() && s.last == nil
	return m, Taken
}

// Drained reports whether the message that Next has just taken was the last for now: wake
// is called when there may be another state. It is for the goroutine that calls Next.
func (s *Subscription[M]) Drained() bool { return s.drained }

// Skip gives up all that was published so far: the next state is Skipped.
func (s *Subscription[M]) Skip() {
	t := s.topic
	t.mu.Lock()
	if s.index >= 0 {
		t.release(s.next, t.end())
		s.next, s.skipped = t.end(), true
	}
	t.mu.Unlock()
	s.wake()
}

// Finish ends the subscription with a message of its own, behind what was
// published so far. What is published later it does not get. Only the first
// call counts.
func (s *Subscription[M]) Finish(last M) {
	t := s.topic
	t.mu.Lock()
	if s.last == nil && s.index >= 0 {
		s.last, s.lastAt = &last, t.end()
	}
	t.mu.Unlock()
	s.wake()
}

// IsEnding reports whether Finish or Cut was called.
func (s *Subscription[M]) IsEnding() bool {
	s.topic.mu.Lock()
	defer s.topic.mu.Unlock()
	return s.last != nil
}

// Cut is Finish without what was published and not taken yet.
func (s *Subscription[M]) Cut(last M) {
	t := s.topic
	t.mu.Lock()
	if s.index >= 0 {
		s.last, s.lastAt = &last, 0
	}
	t.mu.Unlock()
	s.wake()
}

// Close gives the subscription up.
func (s *Subscription[M]) Close() {
	t := s.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	s.leave()
}

// leave takes the subscription out of its topic. The lock is held.
func (s *Subscription[M]) leave() {
	if s.index < 0 {
		return
	}
	t := s.topic
	t.release(s.next, t.end())
	last := len(t.subscriptions) - 1
	t.subscriptions[s.index] = t.subscriptions[last]
	t.subscriptions[s.index].index = s.index
	t.subscriptions[last] = nil
	t.subscriptions = t.subscriptions[:last]
	s.index = -1
}
