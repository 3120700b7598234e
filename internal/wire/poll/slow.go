package poll

import (
	"time"

	"github.com/livetree/livetree/internal/wire/frame"
)

// The rest of a message that has begun to come may take partTime, as on a websocket, and a
// second for each partRate bytes of base64. That is less than a websocket must bring: a
// browser sends 1,840 characters, waits for an answer, and sends the next.
const (
	partTime = 10 * time.Second
	partRate = 1 << 10
)

// await starts the time for the rest of a message, or stops it. It is called with the lock
// held when a segment has come; hasEnded says that a message has come to its end with it.
func (l *Line) await(hasEnded bool) {
	u := &l.up
	switch {
	case !u.isOwed():
		l.slow.Stop()
		u.waited = 0
	case hasEnded || u.waited == 0:
		u.waited = partTime
		l.slow.Reset(u.waited)
	}
}

// tooSlow is called when the time is over. What has come meanwhile has made it longer.
func (l *Line) tooSlow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := &l.up
	if l.err != nil || !u.isOwed() {
		return
	}
	all := partTime + time.Duration(u.owed())*time.Second/partRate
	if all <= u.waited {
		l.finish(frame.ErrSlow)
		return
	}
	l.slow.Reset(all - u.waited)
	u.waited = all
}
