package audience

import (
	"time"

	"github.com/livetree/livetree/internal/fault"
)

// This file bounds how long answers, and first events of listens, hold the view that they are read from. A view keeps all on
// disk that was there when it was made, and a client that asks for much and takes little has
// thousands of answers waiting.

// answerAge is how long an answer may wait to be taken. Then it is a failure, and its view is
// given back.
const answerAge = 2 * time.Minute

// A first event that waits as long is given up. When it is taken, it is read from a newer view. Those of a client are looked at no more
// often than each renewStep: it may have many.
const renewStep = 5 * time.Second

var errNotTaken = fault.New(fault.Unavailable, "the answer was not taken within %v, ask for less at a time", answerAge)

// limitAge bounds the age of an answer that is queued. The lock of the audience is held.
func limitAge(a *Audience, answer *Answer) {
	if answer.Content == nil {
		return
	}
	answer.until = a.opts.Now().Add(answerAge)
	if a.sequence.aging == nil {
		a.sequence.aging = time.AfterFunc(answerAge, func() { giveUpOld(a) })
	}
}

// giveUpOld gives up the answers that were not taken in time, and looks again when the next one
// may be too old.
func giveUpOld(a *Audience) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sequence.aging = nil
	if a.ended.Load() {
		return
	}
	now := a.opts.Now()
	for _, answer := range a.sequence.reads {
		if answer.Content == nil {
			continue
		}
		if left := answer.until.Sub(now); left > 0 {
			a.sequence.aging = time.AfterFunc(min(left, answerAge), func() { giveUpOld(a) })
			return
		}
		answer.drop()
		answer.Content, answer.Err = nil, errNotTaken
	}
}

// limitViewAge bounds the age of a view that a listen holds until its next event is taken. The lock of the audience
// is held.
func limitViewAge(a *Audience, l *Listen) {
	if l.viewAt.IsZero() {
		l.viewAt = a.opts.Now()
	}
	if a.sequence.renewing == nil {
		a.sequence.renewing = time.AfterFunc(answerAge, func() { renewOld(a) })
	}
}

// renewOld has the listens whose views are too old tell what is there when that is taken, and looks again when the
// next one may be too old.
func renewOld(a *Audience) {
	if a.ended.Load() {
		return
	}
	a.mu.Lock()
	a.sequence.renewing = nil // before the look, which may miss a view that is held from now on
	a.mu.Unlock()
	now, next := a.opts.Now(), time.Duration(0)
	for _, l := range a.all() {
		if left := l.renewIfOld(a, now); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if next > 0 && !a.ended.Load() {
		if a.sequence.renewing != nil {
			a.sequence.renewing.Stop()
		}
		a.sequence.renewing = time.AfterFunc(min(max(next, renewStep), answerAge), func() { renewOld(a) })
	}
}

// renewIfOld gives up the view that a listen has held for too long. It returns how long the listen may hold one that
// is not too old; 0 if it holds none.
func (l *Listen) renewIfOld(a *Audience, now time.Time) (left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch == nil || l.ended {
		return 0
	}
	a.mu.Lock()
	held, read := !l.viewAt.IsZero(), l.head != nil && l.head.Content != nil
	left = answerAge - now.Sub(l.viewAt)
	old := held && left <= 0
	if old && read {
		a.sequence.drop(l)
		a.sequence.wake(l) // and whoever looks waits for the lock of the listen
	}
	if old {
		l.viewAt = time.Time{}
	}
	a.mu.Unlock()
	if old {
		l.watch.Refresh(read)
	}
	if !held || old {
		return 0
	}
	return left
}
