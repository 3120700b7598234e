package watch

import (
	"errors"
	"hash/maphash"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file bounds what the rules of watches cost others. The dispatcher judges a watch
// again only if that takes few steps; all events of the database wait meanwhile. A watch
// that needs more is left unjudged. It judges itself, aside, on its own goroutine.

// rejudgeSteps is what is counted for each watch of a delivery beside its rules.
const rejudgeSteps = 20

// steps returns how many steps a judgement may take after others have taken so many;
// 0 if none.
func (b *RejudgeBound) steps(taken int) int {
	switch {
	case taken >= b.All:
		return 0
	case taken >= b.Expensive:
		return b.Cheap
	}
	return b.Watch
}

// A verdict is what a judgement of a delivery came to. It is that of all watches of one
// identity at one place.
type verdict struct {
	decision rules.Decision
	err      error
}

type verdictKey struct {
	at   *place
	auth tree.Node
}

// judgeShared judges a watch of somebody on the view of a delivery, or says what was found for another
// one like it. It fails with state.ErrHeavy if the dispatcher has not enough steps.
func (d *dispatcher) judgeShared(watch *Watch, who *auth.Identity, v *state.View) (rules.Decision, error) {
	if who.Admin {
		return rules.Decision{}, v.Exists()
	}
	d.judging += rejudgeSteps
	key := verdictKey{watch.place, who.Auth}
	if found, ok := d.verdicts[key]; ok {
		return found.decision, found.err
	}
	steps := d.set.limits.Rejudge.steps(d.judging)
	if steps == 0 {
		return rules.Decision{}, state.ErrHeavy
	}
	var found verdict
	found.decision, found.err = v.JudgeRead(*who, watch.key.path, watch.key.filter(), steps)
	d.judging += found.decision.Steps
	if d.verdicts == nil {
		d.verdicts = make(map[verdictKey]verdict)
	}
	d.verdicts[key] = found
	return found.decision, found.err
}

// keptVerdicts is for how many verdicts the memory is kept for the next delivery.
const keptVerdicts = 64

// forgetVerdicts forgets the verdicts of a delivery: the data is another in the next.
func (d *dispatcher) forgetVerdicts() {
	if len(d.verdicts) > keptVerdicts {
		d.verdicts = nil
	}
	clear(d.verdicts)
}

// leaveUnjudged leaves it to a watch that a delivery concerns to be judged. It gives up
// what was published so far, so that it catches up before it is told anything else.
func (w *Set) leaveUnjudged(watch *Watch, del *delivery) {
	w.mu.Lock()
	_, ok := w.all[watch]
	ok = ok && del.concerns(watch.permission)
	watch.unjudged = watch.unjudged || ok
	w.mu.Unlock()
	if ok {
		watch.subscription.Skip() // not before the mark: it may catch up at once
	}
}

// isUnjudged reports whether a watch must be judged, and begin again, before it is told
// anything more.
func (w *Set) isUnjudged(watch *Watch) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return watch.unjudged
}

// between calls f while no delivery can be taken. The dispatcher waits for few watches
// that do this, however many want to: only one of them asks for the gate at a time.
func (w *Set) between(f func()) {
	w.line.Lock()
	defer w.line.Unlock()
	w.gate.Lock()
	defer w.gate.Unlock()
	f()
}

// asideWait is how long a watch waits to be judged aside. Then it ends.
const asideWait = 5 * time.Second

// aside has one watch of each user judged at length at a time, and one of each address for
// those who are no users. If all watches of a user were, one small write would keep all
// processors busy for long.
type aside struct {
	mu    sync.Mutex
	users map[string]*asideUser // by name, while a watch of theirs is judged or waits
	ended chan struct{}         // closed when no watch waits any more; made for the first
	shut  bool
}

type asideUser struct {
	name    string
	slot    chan struct{} // full while a watch is judged
	watches int           // that are judged or wait; guarded by the lock of aside

	// What was found for the last watch in a state. It belongs to who has the slot.
	key   verdictKey
	state *state.Published
	last  verdict
}

// enter waits until a watch may be judged at length. Whom it is judged for is to be left.
func (a *aside) enter(who auth.Identity, from netip.Addr, done <-chan struct{}) (*asideUser, error) {
	user, ended := a.wait(asideName(who, from))
	late := time.NewTimer(asideWait)
	defer late.Stop()
	var err error
	select {
	case user.slot <- struct{}{}:
		return user, nil
	case <-done:
		err = rules.ErrUnwanted
	case <-ended:
		err = store.ErrClosed
	case <-late.C:
		err = fault.New(fault.Unavailable, "too many streams with expensive rules, try again")
	}
	a.forget(user)
	return nil, state.Classify(err)
}

// nobodies is how many watches of those without a uid are judged at length at a time.
const nobodies = 16

var nobodySeed = maphash.MakeSeed()

// asideName returns what those have in common of whom one is judged at a time: the uid or,
// without one, the address, of which some share a slot.
func asideName(who auth.Identity, from netip.Addr) string {
	if uid := who.Auth.Child("uid").Leaf().Text(); uid != "" {
		return "u" + uid
	}
	return "a" + strconv.FormatUint(maphash.Comparable(nobodySeed, from)%nobodies, 10)
}

// leave lets the next watch of a user be judged.
func (a *aside) leave(user *asideUser) {
	<-user.slot
	a.forget(user)
}

// wait counts a watch of a user, forget does no longer.
func (a *aside) wait(name string) (user *asideUser, ended <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.users == nil {
		a.users, a.ended = make(map[string]*asideUser), make(chan struct{})
		if a.shut {
			close(a.ended)
		}
	}
	if user = a.users[name]; user == nil {
		user = &asideUser{name: name, slot: make(chan struct{}, 1)}
		a.users[name] = user
	}
	user.watches++
	return user, a.ended
}

func (a *aside) forget(user *asideUser) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if user.watches--; user.watches == 0 {
		delete(a.users, user.name)
	}
}

// close has no watch wait any longer.
func (a *aside) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.users != nil && !a.shut {
		close(a.ended)
	}
	a.shut = true
}

// A pass is how a watch may be judged: in so many steps, or in all that a request may
// take if they are 0, for a user who was entered, if not nil.
type pass struct {
	steps int
	user  *asideUser
	gated bool // no delivery can be taken meanwhile
}

// atGate is how a watch may be judged while no delivery can be taken.
func (b *RejudgeBound) atGate() pass { return pass{steps: b.Gate, gated: true} }

// judge judges the read of a watch, or says what was found for another one like it in the
// same state.
func (p pass) judge(w *Watch, v *state.View) (rules.Decision, error) {
	who := *w.who.Load()
	if p.user == nil {
		return v.JudgeRead(who, w.key.path, w.key.filter(), p.steps)
	}
	key, u := verdictKey{w.place, who.Auth}, p.user
	if u.key != key || u.state != v.Published || !u.last.stands() {
		u.key, u.state = key, v.Published
		u.last.decision, u.last.err = v.JudgeRead(who, w.key.path, w.key.filter(), p.steps)
	}
	return u.last.decision, u.last.err
}

// stands reports whether a verdict is that of the state: the time had no part in it, and
// it was not given up.
func (v *verdict) stands() bool {
	return !v.decision.UsedNow && (v.err == nil || errors.Is(v.err, state.ErrDenied))
}

// persist has a watch judged on the newest view, and what follows done, until try
// reports that the view was not too old for it. If few steps are not enough it is
// done aside, and if it is always too late, while no delivery can be taken, but never the
// first time.
func (w *Watch) persist(try func(pass) (done bool, err error)) error {
	bound := &w.set.limits.Rejudge
	p := pass{steps: bound.Watch}
	for tries := 0; tries < max(1, w.set.limits.Tries); {
		done, err := try(p)
		switch {
		case p.user == nil && errors.Is(err, state.ErrHeavy):
			if p.user, err = lazily(&w.set.aside).enter(*w.who.Load(), w.client.Network, w.done); err != nil {
				return err
			}
			defer w.set.aside.Load().leave(p.user)
			p.steps = 0
		case err != nil || done:
			return err
		default:
			tries++
		}
	}
	var err error
	w.set.between(func() { _, err = try(bound.atGate()) })
	return err
}
