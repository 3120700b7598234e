package poll

import (
	"context"
	"io"
	"time"
)

// A waiting is a poll that is held.
type waiting struct {
	look  chan struct{} // with room for one signal: something has changed
	freed bool          // a newer poll has come; the line's lock guards it
	// brokenOff says that the client has gone from it; of the goroutine that answers.
	brokenOff bool
}

// A verdict is what is to be done with a poll.
type verdict uint8

const (
	wait    verdict = iota
	fill            // with what there is
	nothing         // an empty answer
	over            // the line has ended
)

// answer holds a poll until there is something to tell, and answers it.
func (l *Line) answer(ctx context.Context, a *answer) {
	p := l.arrive()
	defer l.depart(p)
	expired := time.NewTimer(held)
	defer expired.Stop()
	isExpired := false
	for {
		todo, number := l.decide(p, isExpired)
		switch todo {
		case fill:
			l.fill(ctx, a, number)
			return
		case nothing:
			a.open(number)
			a.close()
			a.flush()
			l.wrote(a.err)
			return
		case over:
			a.script(closeCommand(number))
			return
		}
		select {
		case <-p.look:
		case <-expired.C:
			isExpired = true
		case <-ctx.Done():
			p.brokenOff = true // it has no number yet
			return
		}
	}
}

// arrive makes a poll the one that is held.
func (l *Line) arrive() *waiting {
	p := &waiting{look: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polls++
	l.timer.Stop()
	if l.waiting != nil {
		l.waiting.freed = true
		signal(l.waiting.look)
	}
	l.waiting = p
	return p
}

// depart is called when a poll is answered, or broken off. From then on the client has some time
// for the next one. It has less after one that was broken off: an SDK gives the connection up
// when a poll fails, so that comes from a page that was left, and may not have been able to
// say so.
func (l *Line) depart(p *waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unhold(p)
	l.polls--
	if l.polls > 0 {
		return
	}
	wait := l.lasts()
	if p.brokenOff && l.err == nil && l.takeOver.to == nil && l.takeOver.moved == nil {
		wait = brokenOffAfter
	}
	l.timer.Reset(wait)
}

// decide returns what is to be done with a poll, and the number that it takes.
func (l *Line) decide(p *waiting, isExpired bool) (verdict, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.broken:
		return over, 0
	case l.said && len(l.down.parts) == 0 && !l.down.inside:
		// The answer before may still be on its way.
		return over, max(l.down.number-1, 0)
	case p.freed:
		return nothing, l.down.takeNumber()
	case !l.filling && !l.down.isEmpty():
		l.filling = true
		l.unhold(p)
		return fill, l.down.takeNumber()
	case isExpired:
		l.unhold(p)
		return nothing, l.down.takeNumber()
	}
	return wait, 0
}

// unhold is called with the lock held when a poll is about to be answered.
func (l *Line) unhold(p *waiting) {
	if l.waiting == p {
		l.waiting = nil
	}
}

// fill answers a poll with the messages that there are. A message may still be on its way:
// the answer is sent as it comes, so that a large one is never in memory as a whole.
func (l *Line) fill(ctx context.Context, a *answer, number int) {
	a.open(number)
	sent := 0
	for a.err == nil {
		text, isEnd := l.takeText(sent)
		if len(text) > 0 {
			a.write(text)
			sent += len(text)
		}
		if isEnd {
			break
		}
		if len(text) > 0 {
			continue
		}
		select {
		case <-l.more:
		case <-l.done:
		case <-ctx.Done():
			a.err = ctx.Err()
		}
	}
	if a.err == nil {
		a.close()
		a.flush()
	}
	l.mu.Lock()
	l.filling = false
	if l.down.inside && a.err == nil {
		a.err = io.ErrUnexpectedEOF
	}
	l.mu.Unlock()
	l.wrote(a.err)
}

// takeText returns what there is for an answer of which so much was sent, and whether the
// answer ends with it.
func (l *Line) takeText(sent int) (text []byte, isEnd bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text = l.down.take(nil, sent == 0)
	signal(l.roomAgain)
	return text, !l.down.inside || l.said && len(text) == 0
}

// wrote is called when an answer has been written, or could not be. The client waits for its
// number for ever, so then there is nothing to go on with.
func (l *Line) wrote(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.broken = true
		l.finish(io.EOF)
	}
	l.nudge()
}

// nudge has the polls look again, with the lock held.
func (l *Line) nudge() {
	signal(l.more)
	if l.waiting != nil {
		signal(l.waiting.look)
	}
}

// silent is called when there was no poll for long.
func (l *Line) silent() {
	l.mu.Lock()
	if l.polls > 0 {
		l.mu.Unlock()
		return
	}
	if l.takeOver.moved == nil {
		l.finish(io.EOF)
	}
	l.mu.Unlock()
	l.lines.remove(l)
}
