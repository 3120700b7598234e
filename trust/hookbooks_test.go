//go:build unix

package trust_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A hookWrite is a write that was sent while hooks deliver. It sets what is at some keys to its own
// id, which no other write has, or deletes what is at one.
type hookWrite struct {
	id      string // none of a delete
	keys    []string
	deletes bool
	whole   bool // it deletes what is at other keys
	sent    int64
	acked   int64 // 0 if there was no answer
}

// hookBooks are what is known of a history of hooks, in which the receiver and the server were
// disturbed. They are judged when it is over.
type hookBooks struct {
	writes   []hookWrite
	attempts []attempt
	// final is what is at each key in the end: the id of a write, or nothing.
	final map[string]string
	// stopped has the lives of the server that were ended in order, and up to when it had dealt with
	// every answer for certain, if that is known. All others were killed.
	stopped map[int]int64

	hooks    map[string]bool
	byID     map[string]*hookWrite
	problems []string
}

// A made is a delivery with all attempts to make it.
type made struct {
	delivery
	before, after string // ids of writes
	attempts      []*attempt
}

// A located names a location of a hook by what the pattern's $id stands for.
type located struct{ hook, key string }

func (b *hookBooks) problem(format string, args ...any) {
	if len(b.problems) < 20 {
		b.problems = append(b.problems, fmt.Sprintf(format, args...))
	}
}

// judge returns what contradicts the promises of hooks.
func (b *hookBooks) judge() []string {
	b.problems = nil
	b.byID = map[string]*hookWrite{}
	for i := range b.writes {
		if w := &b.writes[i]; !w.deletes {
			b.byID[w.id] = w
		}
	}
	chains := b.chains()
	for hook := range b.hooks {
		b.judgeWrites(hook, chains)
		for key := range b.final {
			at := located{hook, key}
			b.judgeChain(at, chains[at])
			b.judgeOrder(at, chains[at])
		}
	}
	b.judgeUnderWay()
	return b.problems
}

// chains returns the deliveries of each location in the order of commits.
func (b *hookBooks) chains() map[located][]*made {
	byID := map[string]*made{}
	chains := map[located][]*made{}
	for i := range b.attempts {
		a := &b.attempts[i]
		if known := byID[a.ID]; known != nil {
			if known.attempts[0].body != a.body {
				b.problem("%s is delivered as %s, and again as %s", a.ID, known.attempts[0].body, a.body)
			}
			known.attempts = append(known.attempts, a)
			continue
		}
		m := &made{delivery: a.delivery, before: b.idOf(a, a.Before), after: b.idOf(a, a.After), attempts: []*attempt{a}}
		byID[a.ID] = m
		at := located{a.Hook, a.Params["id"]}
		if _, known := b.final[at.key]; !known || !b.hooks[a.Hook] || !strings.HasPrefix(a.Path, "/orders/"+at.key) {
			b.problem("%s is of no location that was written", a.body)
			continue
		}
		chains[at] = append(chains[at], m)
	}
	for _, chain := range chains {
		slices.SortStableFunc(chain, func(x, y *made) int { return cmp.Compare(x.Position, y.Position) })
	}
	return chains
}

// idOf returns the id of the write that a value is of: {"w": id}, or the id alone.
func (b *hookBooks) idOf(a *attempt, value json.RawMessage) string {
	var object struct{ W string }
	if err := json.Unmarshal(value, &object); err == nil {
		return object.W // none if the value is null
	}
	var id string
	if err := json.Unmarshal(value, &id); err != nil {
		b.problem("%s has a value that was never written", a.body)
	}
	return id
}

// judgeChain holds the deliveries of a location against its history: each begins where the one
// before has ended, the first with nothing, and the last has what is there. As no two writes have
// the same id, none is missing then, and none is invented.
func (b *hookBooks) judgeChain(at located, chain []*made) {
	last, deletes, position := "", 0, uint64(0)
	for _, m := range chain {
		if m.before != last {
			b.problem("%v: %s does not follow %q", at, m.attempts[0].body, last)
		}
		if m.Position == position {
			b.problem("%v: %s is the second of its commit", at, m.attempts[0].body)
		}
		if want := eventOf(m.before, m.after); m.Event != want || m.before == m.after {
			b.problem("%v: %s should be %q", at, m.attempts[0].body, want)
		}
		w := b.byID[m.after]
		switch {
		case m.after == "":
			deletes++
		case w == nil || !slices.Contains(w.keys, at.key):
			b.problem("%v: %s has what was never written there", at, m.attempts[0].body)
		}
		last, position = m.after, m.Position
	}
	if last != b.final[at.key] {
		b.problem("%v: the last delivery has %q, and there is %q", at, last, b.final[at.key])
	}
	allowed := 0
	for _, w := range b.writes {
		if w.deletes && slices.Contains(w.keys, at.key) || w.whole && !slices.Contains(w.keys, at.key) {
			allowed++
		}
	}
	if deletes > allowed {
		b.problem("%v: %d deletes were delivered, and only %d could be made", at, deletes, allowed)
	}
}

func eventOf(before, after string) string {
	switch {
	case before == "":
		return "create"
	case after == "":
		return "delete"
	}
	return "update"
}

// judgeWrites holds what was delivered to a hook against the writes: one that was acknowledged is
// there, at all of its locations, in one commit; one that began when another was acknowledged comes
// after it.
func (b *hookBooks) judgeWrites(hook string, chains map[located][]*made) {
	positions := map[string]map[string]uint64{} // of a write, at its keys
	of := map[uint64]string{}
	for at, chain := range chains {
		for _, m := range chain {
			if at.hook != hook || m.after == "" {
				continue
			}
			if positions[m.after] == nil {
				positions[m.after] = map[string]uint64{}
			}
			positions[m.after][at.key] = m.Position
			if other, known := of[m.Position]; known && other != m.after {
				b.problem("%s: the commit %d is of two writes, %s and %s", hook, m.Position, other, m.after)
			}
			of[m.Position] = m.after
		}
	}
	type placed struct {
		*hookWrite
		position uint64
	}
	var all []placed
	for id, w := range b.byID {
		at := positions[id]
		if len(at) == 0 {
			if w.acked > 0 {
				b.problem("%s: %s was acknowledged and not delivered", hook, id)
			}
			continue
		}
		for _, key := range w.keys {
			if at[key] == 0 || at[key] != at[w.keys[0]] {
				b.problem("%s: %s of %v was delivered at %v", hook, id, w.keys, at)
			}
		}
		all = append(all, placed{w, at[w.keys[0]]})
	}
	slices.SortFunc(all, func(x, y placed) int { return cmp.Compare(x.position, y.position) })
	lastSent := int64(0) // the latest beginning so far
	for _, p := range all {
		if p.acked > 0 && p.acked < lastSent {
			b.problem("%s: %s has the position %d, and a write that began after its answer has an earlier one", hook, p.id, p.position)
		}
		lastSent = max(lastSent, p.sent)
	}
}

// judgeOrder holds the order in which deliveries of a location came against what is promised:
//
//   - One comes when all earlier ones were answered by 2xx, in whatever life of the server.
//   - In one life of the server none comes while another is under way, nor after a later one. Only what
//     was done before the server was killed may be repeated, from some point on, in order.
//   - One whose 2xx has reached the server is not made again, unless the server is killed.
func (b *hookBooks) judgeOrder(at located, chain []*made) {
	var attempts []*attempt
	done := map[uint64]int64{} // when a delivery was first answered by 2xx
	for _, m := range chain {
		attempts = append(attempts, m.attempts...)
		for _, a := range m.attempts {
			if a.decided > 0 && (done[m.Position] == 0 || a.decided < done[m.Position]) {
				done[m.Position] = a.decided
			}
		}
	}
	slices.SortFunc(attempts, func(x, y *attempt) int { return cmp.Compare(x.arrived, y.arrived) })
	lastOf := map[int]*attempt{} // by life
	for i, a := range attempts {
		for _, m := range chain {
			if m.Position < a.Position && (done[m.Position] == 0 || done[m.Position] > a.arrived) {
				b.problem("%v: %d came before %d was done", at, a.Position, m.Position)
			}
		}
		if last := lastOf[a.life]; last != nil && last.Position > a.Position {
			b.problem("%v: %d came after %d from the same server", at, a.Position, last.Position)
		} else if last != nil && last.isUnderWay(a) {
			b.problem("%v: %d came while %d was under way", at, a.Position, last.Position)
		}
		lastOf[a.life] = a
		for _, earlier := range attempts[:i] {
			if earlier.Position == a.Position && b.isKnown(earlier, a.life, attempts[:i]) {
				b.problem("%v: %d was made again by server %d, though its answer had come to server %d", at, a.Position, a.life, earlier.life)
			}
		}
	}
}

// isKnown reports whether the server knows in a life of it that an attempt was answered by 2xx. One that
// is ended in order need not have looked at an answer that came last; but if it has made a later
// delivery of the location, it has.
func (b *hookBooks) isKnown(a *attempt, life int, all []*attempt) bool {
	if a.flushed == 0 {
		return false
	}
	for n := a.life; n < life; n++ {
		if _, inOrder := b.stopped[n]; !inOrder {
			return false // it was killed
		}
	}
	return life == a.life || a.flushed < b.stopped[a.life] ||
		slices.ContainsFunc(all, func(later *attempt) bool { return later.life == a.life && later.Position > a.Position })
}

// maxUnderWay is how many deliveries of a hook are made at a time.
const maxUnderWay = 32

// judgeUnderWay counts the deliveries of each hook that were under way when another came.
func (b *hookBooks) judgeUnderWay() {
	type sender struct {
		hook string
		life int
	}
	type step struct {
		at int64
		by int
	}
	steps := map[sender][]step{}
	for _, a := range b.attempts {
		s := sender{a.Hook, a.life}
		steps[s] = append(steps[s], step{a.arrived, 1})
		if end := a.end(); end > 0 {
			steps[s] = append(steps[s], step{end, -1})
		}
	}
	for s, list := range steps {
		slices.SortFunc(list, func(x, y step) int { return cmp.Compare(x.at, y.at) })
		n := 0
		for _, st := range list {
			if n += st.by; n > maxUnderWay {
				b.problem("%v: %d deliveries were under way", s, n)
				break
			}
		}
	}
}
