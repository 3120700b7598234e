package audience

import (
	"time"

	"github.com/livetree/livetree/internal/fault"
)

// This file bounds how long answers hold the view that they are read from. A view keeps all on
// disk that was there when it was made, and a client that asks for much and takes little has
// thousands of answers waiting.

// answerAge is how long an answer may wait to be taken. Then it is a failure, and its view is
// given back.
const answerAge = 2 * time.Minute

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
