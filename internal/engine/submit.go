package engine

import (
	"errors"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
)

// This file makes writes that nobody waits for on a goroutine of their own. A client
// that sends one write after the other, without waiting, has them made in that order.

// A Chain is the writes of one client that take effect in the order in which they were
// submitted. If one of them cannot be decided at its turn, because that takes long, those
// behind it are not either: all of them come back with ErrAgain.
type Chain struct {
	broken bool // belongs to the writer goroutine while writes of the chain are under way
}

// Mend lets the chain be used again after ErrAgain. No write of it may be under way.
func (c *Chain) Mend() { c.broken = false }

// ErrAgain says that nothing was decided about a submitted write. It is to be made by
// Write, before any other of its chain.
var ErrAgain = errors.New("the write is to be made again")

// A Submitted is a write that was submitted.
type Submitted struct {
	task   *task
	chain  *Chain
	began  time.Time
	answer func(Commit, error)
}

// Submit has a request committed, or refused, as Write does, and returns before that is
// known. The answer is called once, on a goroutine that must not be held up; before
// Submit returns if it is refused at once, which it tells by returning nil. What takes
// long is answered with ErrAgain.
func (d *Database) Submit(req Request, c *Chain, answer func(Commit, error)) *Submitted {
	w := &d.writer
	if err := w.admit(req); err != nil {
		d.source.Metrics.CountWrite(0, err)
		answer(Commit{}, err)
		return nil
	}
	t := &task{database: d, request: req, shared: true}
	if !w.group.isHome() || w.isHeavy(t) || w.marks.Load().has(&t.request) {
		answer(Commit{}, ErrAgain)
		return nil
	}
	s := &Submitted{task: t, chain: c, began: d.source.Clock.Now(), answer: answer}
	t.submitted = s
	if err := w.enqueue(t); err != nil {
		d.source.Metrics.CountWrite(0, err)
		answer(Commit{}, err)
		return nil
	}
	return s
}

// Late gives up waiting. It returns a fault.Unavailable error if the write will never be
// made, and a fault.Unknown one if it may be. The answer may still be called.
func (s *Submitted) Late() error {
	if s.task.state.CompareAndSwap(taskQueued, taskCancelled) {
		return fault.Wrap(fault.Unavailable, errDeadline, "nothing was written: the write had to wait too long")
	}
	return fault.Wrap(fault.Unknown, errDeadline, "the write is not confirmed")
}

// Deadline returns how long a write may take.
func (d *Database) Deadline() time.Duration { return d.deadline }

// decideInChain decides about a task, unless one before it in its chain was not decided.
func (w *writer) decideInChain(task *task) (Commit, error) {
	s := task.submitted
	if s == nil {
		return w.decide(task)
	}
	if s.chain.broken {
		return Commit{}, ErrAgain
	}
	commit, err := w.decide(task)
	task.err = err
	s.chain.broken = task.unsettled()
	return commit, err
}

// end answers.
func (s *Submitted) end() {
	t := s.task
	source := &t.database.source
	err := t.err
	switch {
	case errors.Is(err, ErrAgain):
	case t.unsettled():
		if errors.Is(err, state.ErrHeavy) {
			t.database.writer.markHeavy(&t.request)
		}
		err = ErrAgain
	default:
		err = state.Classify(err)
		source.Metrics.CountWrite(t.commit.Position, err)
		if t.commit.Position > 0 {
			source.Metrics.Commits.Observe(source.Clock.Now().Sub(s.began))
		}
	}
	s.answer(t.commit, err)
}
