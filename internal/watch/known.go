package watch

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// Known is what a client says that it has already of a place.
type Known struct {
	// Hash is that of package sdkhash, empty for nothing.
	Hash string
	// Compound, if not nil, tells more. Only the ranges that differ are then told.
	Compound *sdkhash.Compound
	// Replaces says that the client was told of the place until a moment ago: it may have said this
	// before it was told the last of it. So this counts only if nothing has changed since Told, the position of
	// a state that the client was told all of; 0 for none.
	Replaces bool
	Told     uint64
}

// counts reports whether what a client says that it has is still what it has, when it is told what comes next.
func (k *Known) counts(w *Watch, v *state.View) bool {
	if !k.Replaces {
		return true
	}
	at, behind := w.place, k.Told
	if k.Told >= at.since { // a younger place does not know of all changes since
		handedOn := w.set.order.Load().Told()
		if at.touched.Load() > k.Told {
			return false
		}
		behind = max(k.Told, handedOn)
	}
	return w.stood(v, permission{reads: []tree.Path{at.path}}, behind)
}

// IsKnown reports whether a watch that has just begun has no first event: its client has what is there.
func IsKnown(w *Watch) bool { return w.opening == nil }

// hashes are what a place had as its hash in a state. They are the same for all who come
// back, so they are worked out once.
type hashes struct {
	// turn is full while a watch works them out, to which they belong.
	turn      chan struct{}
	position  uint64 // of the state; 0 if there is none
	right, js string
	long      atomic.Bool // the place is too large to be hashed
}

// maxHashed is how much of a place is hashed. More is sent.
const maxHashed = 16 << 20

// knows reports whether a client has what a view shows already. While the hashes are worked out
// for another one it waits, unless its client goes.
func (w *Watch) knows(v *state.View, known *Known) (bool, error) {
	h := w.place.known()
	select {
	case h.turn <- struct{}{}:
	case <-w.done:
		return false, state.Classify(store.ErrUnwanted)
	}
	defer func() { <-h.turn }()
	if !w.place.stands(h.position, v.Position, w.set.order.Load()) {
		if err := h.work(w, v); errors.Is(err, sdkhash.ErrNoRoom) {
			return false, nil // it is sent
		} else if err != nil {
			return false, err
		}
	}
	return !h.long.Load() && (known.Hash == h.right || known.Hash == h.js), nil
}

// differs makes the ranges that a client lacks the first event. It reports false if it is to
// be told everything.
func (w *Watch) differs(v *state.View, known *Known) (bool, error) {
	if known.Compound == nil || w.place.known().long.Load() {
		return false, nil
	}
	content, err := w.content(v)
	if err != nil {
		return false, err
	}
	w.held = w.memory.Claim(w.client, true)
	n, err := decoded(content, w.held)
	if err == nil {
		if merges, ok := known.Compound.Merges(n); ok {
			w.opening = &Event{Kind: Ranges, Merges: merges, Position: v.Position, Last: true}
			return true, nil
		}
	}
	w.letGo()
	if errors.Is(err, errLarge) {
		err = nil
	}
	return false, state.Classify(err)
}

// decoded returns the node that a content prints. It takes memory of a claim,
// and fails with errLarge if there is not enough. It closes the content.
func decoded(content Content, held *budget.Claim) (tree.Node, error) {
	text := &limitedBuffer{left: maxHashed, claim: held}
	err := errors.Join(content.PrintTo(text), content.Close())
	if err != nil {
		return tree.Node{}, err
	}
	return tree.DecodeBytes(text.Bytes(), tree.DecodeOptions{Charge: func(bytes int64) error {
		if !held.Grow(held.Size() + bytes) {
			return errLarge
		}
		return nil
	}})
}

// work works the hashes out.
func (h *hashes) work(w *Watch, v *state.View) error {
	content, err := w.content(v)
	if err != nil {
		return err
	}
	text := sdkhash.NewWriter(maxHashed)
	claim := w.memory.Claim(w.client, true)
	defer claim.Release()
	text.Charge = func(kept int64) bool {
		const portion = 64 << 10 // it is not asked for each child
		return kept <= claim.Size() || claim.Grow(kept+portion)
	}
	h.position = 0
	h.long.Store(false)
	err = errors.Join(content.PrintTo(onlyWriter{text}), content.Close())
	if errors.Is(err, sdkhash.ErrTooLarge) {
		h.position = v.Position
		h.long.Store(true)
		return nil
	}
	if err == nil {
		h.right, h.js, err = text.Sums()
	}
	if err == nil {
		h.position = v.Position
	}
	return state.Classify(err)
}

// onlyWriter hides everything but Write.
type onlyWriter struct{ io.Writer }

// known returns what is known of the hashes of a place.
func (at *place) known() *hashes {
	if at.hashes.Load() == nil {
		at.hashes.CompareAndSwap(nil, &hashes{turn: make(chan struct{}, 1)})
	}
	return at.hashes.Load()
}

// stands reports whether what was found out about a place at a position holds at another
// one, because nothing changed in between.
func (at *place) stands(found, position uint64, o *Order) bool {
	switch {
	case found == 0 || found > position:
		return false
	case found == position:
		return true
	}
	return o != nil && position <= o.Told() && at.touched.Load() <= found
}

// letGo gives back the memory of a first event that was worked out, or of a backlog.
func (w *Watch) letGo() {
	if w.held != nil {
		w.held.Release()
		w.held = nil
	}
}
