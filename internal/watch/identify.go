package watch

import (
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/tree"
)

// Identify makes somebody else the one whom the watch is for. If they may not watch, it
// ends, and false is returned. Otherwise it goes on, and is told nothing, unless changes are being handed on
// just now: of those nobody knows whether both might see them, so what is there is told
// again.
//
// As Next, it belongs to the goroutine that takes events. The expiry of the identity is
// left to who calls it.
func (w *Watch) Identify(who auth.Identity) (goesOn bool) {
	before := w.who.Swap(&who)
	if w.finished || before.Admin && who.Admin || before.Admin == who.Admin && tree.Equal(before.Auth, who.Auth) {
		return !w.finished
	}
	err := w.persist(func(p pass) (settled bool, err error) {
		v := w.set.database.View()
		defer v.Close()
		v.Until(w.done)
		allowed, _, err := w.judge(v, true, p)
		if err != nil || w.set.passOn(w, allowed) {
			return err == nil, err
		}
		w.drop()
		return w.beginAgain(v, allowed, nil, p.gated)
	})
	if err != nil {
		w.drop()
		w.subscription.Cut(ending(err))
	}
	return err == nil
}

// passOn sets the permission of a watch that is for somebody else now. It reports false
// if changes were taken since, or wait to be handed on.
func (w *Set) passOn(watch *Watch, allowed permission) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watch.unjudged || allowed.position < w.taken || w.queue.isBusy() {
		return false
	}
	if _, ok := w.all[watch]; ok {
		w.allow(watch, allowed)
	}
	return true
}

// Position returns how far the watch was told when it began.
func (w *Watch) Position() uint64 { return w.since }
