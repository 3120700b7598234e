package audience

import (
	"context"
	"errors"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
)

// A pipeline is the writes of a client on their way. The lock of the audience guards it.
type pipeline struct {
	audience *Audience
	chain    engine.Chain
	late     *time.Timer // nil until the first write
	writes   []*write    // not answered, in order
	flying   int         // how many of them are submitted
	redoing  bool        // some are to be made again, one after the other
	chasing  bool        // and are
	closeBy  time.Time   // when what was taken is given up; zero while the client is there
}

// maxFlying is how many writes of a client are submitted at a time, so that they do not
// fill the queue of the database.
const maxFlying = 256

// A write is one that was not answered.
type write struct {
	id        int64
	request   engine.Request
	bytes     int
	begun     time.Time
	submitted *engine.Submitted
	again     bool // it is to be made, or to be made again, when those before are answered
	answer    *Answer
}

// Write has something written. It does not wait for that, but for room. Writes take
// effect in the order in which they come here.
func (a *Audience) Write(id int64, req engine.Request) {
	const writeBytes = 512
	bytes := writeBytes + req.At.Bytes() + req.Bytes()
	if !a.admit(bytes) {
		return
	}
	a.verify()
	a.mu.Lock()
	for a.pipeline.flying >= maxFlying && !a.ended.Load() {
		a.room.Wait()
	}
	if a.ended.Load() {
		a.mu.Unlock()
		return // what the client has left may be written by now, and this would undo it
	}
	w := &write{id: id, request: req, bytes: bytes, begun: a.opts.Now()}
	w.request.Who, w.request.Here = a.who, true // after the tenure of this home, what the client has left may be written before this
	a.pipeline.add(w)
	a.mu.Unlock()
	if w.again {
		return
	}
	submitted := a.db.Submit(w.request, &a.pipeline.chain, func(c engine.Commit, err error) { a.pipeline.decided(w, c, err) })
	a.mu.Lock()
	w.submitted = submitted
	a.mu.Unlock()
}

// add takes a write. It is to be submitted, or is made with those that are made again. The
// lock is held.
func (p *pipeline) add(w *write) {
	p.writes = append(p.writes, w)
	if w.again = p.redoing; !w.again {
		p.flying++
	}
	deadline := p.audience.db.Deadline()
	if p.late == nil {
		p.late = time.AfterFunc(deadline, p.giveUp)
	} else if len(p.writes) == 1 {
		p.late.Reset(deadline)
	}
}

// decided is called with what became of a submitted write.
func (p *pipeline) decided(w *write, c engine.Commit, err error) {
	p.audience.mu.Lock()
	defer p.audience.mu.Unlock()
	p.flying--
	p.audience.room.Broadcast()
	if errors.Is(err, engine.ErrAgain) && w.answer == nil {
		w.again = true
		p.redoing = true
	} else {
		p.finish(w, c, err)
	}
	p.landed()
}

// landed begins to make writes again when no submitted one is under way. The lock is held.
func (p *pipeline) landed() {
	if p.redoing && p.flying == 0 && !p.chasing {
		p.chasing = true
		p.chain.Mend()
		go p.redo()
	}
}

// finish makes the answer to a write, unless it has one. Answers go out in the order of
// the writes. The lock is held.
func (p *pipeline) finish(w *write, c engine.Commit, err error) {
	if w.answer != nil {
		return // it was late
	}
	w.answer = &Answer{ID: w.id, Err: err, Commit: c, Trace: c.Trace, position: c.Position, bytes: w.bytes}
	if c.Position == 0 {
		w.answer.position = p.audience.db.Published().Position
	}
	first := 0
	for first < len(p.writes) && p.writes[first].answer != nil {
		if !p.audience.ended.Load() {
			p.audience.sequence.queue(p.writes[first].answer)
		}
		p.writes[first] = nil
		first++
	}
	p.writes = p.writes[first:]
	p.audience.room.Broadcast()
	if len(p.audience.sequence.answers) > 0 {
		p.audience.announce(p.audience.sequence.answers[0].position)
	}
}

// redo makes the writes that could not be decided at their turn, one after the other, and
// those that came meanwhile.
func (p *pipeline) redo() {
	for w := p.nextAgain(); w != nil; w = p.nextAgain() {
		ctx, cancel := p.context()
		c, err := p.audience.db.Write(ctx, w.request)
		cancel()
		p.audience.mu.Lock()
		p.finish(w, c, err)
		p.audience.mu.Unlock()
	}
}

// context returns that of a write that is made again. When the client has gone, all of
// them together have as long as one.
func (p *pipeline) context() (context.Context, context.CancelFunc) {
	p.audience.mu.Lock()
	defer p.audience.mu.Unlock()
	if p.closeBy.IsZero() {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), p.closeBy.Sub(p.audience.opts.Now()))
}

// nextAgain returns the first write to be made again. If there is none, writes are
// submitted again from then on.
func (p *pipeline) nextAgain() *write {
	p.audience.mu.Lock()
	defer p.audience.mu.Unlock()
	for _, w := range p.writes {
		if w.answer == nil {
			return w
		}
	}
	p.redoing, p.chasing = false, false
	p.audience.room.Broadcast()
	return nil
}

// Settle returns when every write so far is visible or refused.
func (a *Audience) Settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.ended.Load() && (len(a.pipeline.writes) > 0 || a.pipeline.redoing) {
		a.room.Wait()
	}
}

// giveUp answers the submitted writes that take too long.
func (p *pipeline) giveUp() {
	p.audience.mu.Lock()
	defer p.audience.mu.Unlock()
	limit := p.audience.db.Deadline()
	for _, w := range append([]*write(nil), p.writes...) {
		left := limit - p.audience.opts.Now().Sub(w.begun)
		switch {
		case w.answer != nil || w.again:
		case left > 0 || w.submitted == nil:
			p.late.Reset(max(left, time.Millisecond))
			return
		default:
			err := w.submitted.Late()
			if fault.KindOf(err) == fault.Unavailable {
				p.flying-- // it is not decided any more
			}
			p.finish(w, engine.Commit{}, err)
			p.landed()
		}
	}
}
