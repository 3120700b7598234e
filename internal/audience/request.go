package audience

import (
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// request does what is not a write: when all writes before it are visible or refused.
// It counts for so many bytes until it is answered.
func (a *Audience) request(id int64, bytes int, do func() *Answer) {
	if !a.admit(bytes) {
		return
	}
	a.Settle()
	a.verify()
	a.requests.Lock()
	var answer *Answer
	if a.ended.Load() {
		answer = &Answer{}
	} else {
		answer = do()
	}
	a.requests.Unlock()
	answer.ID, answer.bytes = id, bytes
	answer.placed = answer.position == 0 // no data has a part in it
	a.reply(answer)
	if answer.read {
		a.letGo()
	}
}

// requestBytes is what a request that is not a write counts for, beside the texts in it.
const requestBytes = 256

// readBytes is what a read counts for: what it asks for is kept with its content.
func readBytes(p tree.Path, q *query.Query) int {
	bytes := requestBytes + p.Bytes()
	if q != nil {
		bytes += len(q.Lower.Value.Text()) + len(q.Lower.Key) + len(q.Upper.Value.Text()) + len(q.Upper.Key)
	}
	return bytes
}

// failed returns the answer to what was refused, behind all that it may have been judged
// on.
func (a *Audience) failed(err error, trace string) *Answer {
	return &Answer{Err: err, Trace: trace, position: a.db.Published().Position}
}

// Reply queues an answer that the front has made itself.
func (a *Audience) Reply(id int64, note any, err error) {
	a.request(id, requestBytes, func() *Answer { return &Answer{Note: note, Err: err} })
}

// Get reads what is at a location. Without its index, a query is refused. A client applies what it is
// answered to what it listens to there. So the answer has its place in the order: nothing that is newer is
// told before it.
func (a *Audience) Get(id int64, p tree.Path, q *query.Query) {
	a.request(id, readBytes(p, q), func() *Answer {
		a.hold() // until it is answered
		v := a.db.View()
		defer v.Close()
		v.Until(a.opts.Done)
		answer := &Answer{position: v.Position, read: true, whole: q == nil, path: p.Clone()}
		if answer.Trace, answer.Err = v.AllowRead(a.Who(), p, q); answer.Err == nil {
			found, err := v.Read(p, q, tree.Export)
			if answer.Err = err; err == nil {
				answer.Content = found
			}
		}
		return answer
	})
}

// Identify makes somebody else the client: from the next request on, and for all
// listens. Those that they may not have are cancelled.
func (a *Audience) Identify(who auth.Identity) {
	a.Settle()
	a.requests.Lock()
	defer a.requests.Unlock()
	a.mu.Lock()
	a.logout = nil // it was that of somebody else
	a.mu.Unlock()
	a.become(who)
}

// become is Identify when nothing is under way.
func (a *Audience) become(who auth.Identity) {
	a.mu.Lock()
	a.who, a.verified = who, nil
	if a.expiry != nil {
		a.expiry.Stop()
		a.expiry = nil
	}
	if !who.Expires.IsZero() && !a.ended.Load() {
		a.expiry = time.AfterFunc(who.Expires.Sub(a.opts.Now()), func() { a.logOut(who, auth.ErrExpired) })
	}
	a.mu.Unlock()
	for _, l := range a.all() {
		a.identify(l, who)
	}
	a.goOn()
}

// identify makes somebody else the one whom a listen is for.
func (a *Audience) identify(l *Listen, who auth.Identity) {
	l.mu.Lock()
	goesOn := !l.ended && l.watch.Identify(lasting(who))
	l.who = who
	l.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !goesOn && l.head != nil && l.head.Kind < watch.Cancel {
		a.sequence.drop(l)
	}
	a.sequence.wake(l)
}

// logOut has the client be nobody because its identity is not good any more, unless it
// is somebody else by now. The client is told why. What its listens may still see is worked out
// by a goroutine, since who calls may be a request itself, or take the events; Close waits for it.
func (a *Audience) logOut(who auth.Identity, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended.Load() || !same(a.who, who) {
		return
	}
	a.who, a.verified = auth.Identity{}, nil // from the next request on
	a.sequence.paused, a.logout = true, why
	a.loggingOut.Go(func() {
		a.Wake() // to tell why
		a.requests.Lock()
		defer a.requests.Unlock()
		if !a.ended.Load() && same(a.Who(), auth.Identity{}) {
			a.become(auth.Identity{})
		} else {
			a.goOn()
		}
	})
}

// verify logs the client out if its credential was taken away, or if its time is over: the
// timer for that stands still while the machine sleeps. It is asked before each request.
func (a *Audience) verify() {
	settings := a.db.Published().Settings
	a.mu.Lock()
	who, known := a.who, a.verified == settings
	a.mu.Unlock()
	switch {
	case !who.Expires.IsZero() && !a.opts.Now().Before(who.Expires):
		a.logOut(who, auth.ErrExpired)
	case known:
	case a.db.Holds(lasting(who)):
		noteVerified(a, who, settings)
	case a.db.Standing() == nil:
		a.logOut(who, ErrRevoked)
	}
}

// noteVerified notes that the client was found to be good, unless it is somebody else by now.
func noteVerified(a *Audience, who auth.Identity, settings *state.Settings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if same(a.who, who) {
		a.verified = settings
	}
}

// goOn has events told again.
func (a *Audience) goOn() {
	a.mu.Lock()
	a.sequence.paused = false
	a.mu.Unlock()
	a.Wake()
}

// ErrRevoked is why a client is logged out whose credential was taken away. One whose time
// is over is logged out by auth.ErrExpired.
var ErrRevoked = fault.New(fault.Unauthenticated, "credential is no longer valid")

// same reports whether two identities come from one credential.
func same(a, b auth.Identity) bool {
	return a.Admin == b.Admin && a.Basis == b.Basis && a.Expires.Equal(b.Expires) && tree.Equal(a.Auth, b.Auth)
}

// Check looks whether permissions that rest on the time still hold, and whether the
// identity does, and forgets what is over. It is called now and then by who takes the events.
func (a *Audience) Check() {
	a.verify()
	a.mu.Lock()
	forgetLeft(a) // most clients end nothing more, and stay
	a.mu.Unlock()
	for _, l := range a.all() {
		if a.ended.Load() || a.opts.Ending != nil && a.opts.Ending() {
			return // nothing more is told
		}
		l.mu.Lock()
		goesOn := l.watch == nil || l.ended || l.watch.Recheck()
		l.mu.Unlock()
		if !goesOn {
			a.mu.Lock()
			a.sequence.cut(l)
			a.mu.Unlock()
		}
	}
}
