package watch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// A mixed is a watch of a mixture.
type mixed struct {
	*deliveryWatch
	told      uint64 // the position of the state that the cache has; 0 if that is not known
	hash      string // of an earlier cache
	ended     string
	suspended bool
	begun     uint64
	people    []person
}

// A person is whom a watch is for, or was up to a position.
type person struct {
	who   auth.Identity
	until uint64
}

func (w *mixed) who() auth.Identity { return w.people[len(w.people)-1].who }

// since says that what was before a position does not matter any more.
func (w *mixed) since(position uint64) {
	w.people, w.begun = []person{{w.who(), math.MaxUint64}}, position
}

// open begins a watch, in place of an old one if that is not nil.
func (m *mixture) open(req watch.Request, what string, old *mixed) {
	m.note("begin %s", what)
	req.Wake = func() {}
	begun := m.newest().position
	w, _, err := m.Watches().Open(req)
	n := &mixed{begun: begun, people: []person{{req.Who, math.MaxUint64}}, deliveryWatch: &deliveryWatch{f: m.fixture, request: req, what: what}}
	if err != nil {
		kind := fault.KindOf(err)
		lacksIndex := req.Query != nil && !req.Scan && (kind == fault.Invalid || kind == fault.Unavailable)
		if !lacksIndex && m.allows(n, req.Who, m.newest()) {
			m.check(n, err)
		}
		return
	}
	n.Watcher = enginetest.NewWatcher(m.Fixture, w)
	if old != nil {
		n.cache = old.cache
	}
	if watch.IsKnown(w) {
		n.told = w.Position()
	}
	n.request.Known, n.request.Resume = nil, false
	m.all = append(m.all, n)
	if m.rng.IntN(2) == 0 {
		m.check(n, m.take(n))
	}
}

// again has a client listen again, with the hash of what it has, or of what it had before it was told the last.
func (m *mixture) again(i int) {
	w := m.all[i]
	if w.ended != "" || w.suspended || w.request.Priority || w.request.Form != tree.Export {
		return
	}
	m.all = append(m.all[:i], m.all[i+1:]...)
	req := w.request
	req.Who, req.Known = w.who(), &watch.Known{Hash: w.hash, Replaces: true, Told: w.told}
	if w.hash == "" || m.rng.IntN(2) == 0 {
		req.Known = &watch.Known{Hash: m.hashOf(w)}
		w.Close()
	}
	m.note("again, replaces %v, told %d", req.Known.Replaces, w.told)
	m.open(req, w.what, w)
	w.Close()
}

// resume has a watch go on where it was told to.
func (m *mixture) resume(i int) {
	w := m.all[i]
	if w.ended != "" || w.suspended || w.request.Query != nil || w.request.Priority || w.told == 0 || !m.allowed(w, w.told) {
		return
	}
	m.all = append(m.all[:i], m.all[i+1:]...)
	req := w.request
	req.Who, req.Resume, req.Behind = w.who(), true, w.told
	m.note("resume behind %d", w.told)
	w.Close()
	m.open(req, w.what, w)
}

// identify makes somebody else the one whom a watch is for.
func (m *mixture) identify(w *mixed) {
	if !w.request.Lasts || w.ended != "" {
		return
	}
	i := m.rng.IntN(len(m.people))
	v := m.View()
	w.people[len(w.people)-1].until = v.Position
	v.Close()
	w.people = append(w.people, person{m.people[i], math.MaxUint64})
	w.suspended = false
	m.note("identify %s as %d, goes on: %v", w.what, i, w.Identify(m.people[i]))
}

func (m *mixture) hashOf(w *mixed) string {
	text, err := json.Marshal(w.cache.value)
	if err != nil {
		m.T.Fatal(err)
	}
	n, err := tree.DecodeBytes(text, tree.DecodeOptions{})
	if err != nil {
		m.T.Fatal(err)
	}
	return sdkhash.Of(n)
}

// take applies what there is.
func (m *mixture) take(w *mixed) error {
	for w.ended == "" {
		told := m.Watches().Order().Told()
		if m.rng.IntN(3) == 0 && w.request.Form == tree.Export {
			w.hash = m.hashOf(w)
		}
		e, ok := w.Next()
		if !ok {
			return nil
		}
		w.told = 0
		switch {
		case e.Kind == watch.Revoked && w.request.Lasts:
			w.suspended = true
			continue
		case e.Kind > watch.Patch:
			w.ended = describe(m.T, e)
			return m.judgeEnd(w)
		case w.suspended || !m.allowed(w, e.Position):
			return fmt.Errorf("it is told of %d, suspended %v: %s", e.Position, w.suspended, describe(m.T, e))
		}
		if err := w.apply(e); err != nil {
			return err
		}
		if e.Last && (w.request.Whole || w.request.Query == nil) {
			w.told = e.Position
			if w.Drained() {
				w.told = max(told, e.Position)
			}
		}
	}
	return nil
}

// judgeEnd fails if a watch has ended for no reason.
func (m *mixture) judgeEnd(w *mixed) error {
	m.note("%s ends: %s", w.what, w.ended)
	if w.request.Query != nil && !w.request.Scan || m.denied(w) {
		return nil // its index is gone, or being built again
	}
	return fmt.Errorf("it has ended: %s", w.ended)
}

// settle takes the rest, and compares with a read.
func (m *mixture) settle(w *mixed) error {
	switch err := m.take(w); {
	case err != nil || w.ended != "" || w.suspended:
		return err
	case !m.allows(w, w.who(), m.newest()):
		return fmt.Errorf("it goes on, and is denied")
	}
	return w.settle()
}

// allows reports whether somebody may watch in a state.
func (m *mixture) allows(w *mixed, who auth.Identity, at moment) bool {
	if !m.holds(who, at.view) {
		return false
	}
	_, err := at.view.AllowRead(who, w.request.Path, w.request.Query)
	return err == nil
}

func (m *mixture) holds(who auth.Identity, v *state.View) bool {
	i := slices.IndexFunc(m.people, func(p auth.Identity) bool { return p.Basis == who.Basis })
	return who.Basis == "" || slices.Contains(v.Settings.Secrets, mixtureBases[i])
}

// allowed reports whether a watch may be told of a position.
func (m *mixture) allowed(w *mixed, position uint64) bool {
	found := m.moments[0]
	for _, at := range m.moments {
		if at.position <= position {
			found = at
		}
	}
	return slices.ContainsFunc(w.people, func(p person) bool { return position <= p.until && m.allows(w, p.who, found) })
}

// denied reports whether a watch was denied in some state since it began.
func (m *mixture) denied(w *mixed) bool {
	for i, at := range m.moments {
		over := i+1 < len(m.moments) && m.moments[i+1].position <= w.begun
		if !over && slices.ContainsFunc(w.people, func(p person) bool { return !m.allows(w, p.who, at) }) {
			return true
		}
	}
	return false
}

// apply applies an event to the cache.
func (w *mixed) apply(e *watch.Event) error {
	switch {
	case e.Content != nil:
		var text bytes.Buffer
		err := e.Content.PrintTo(&text)
		_ = e.Content.Close()
		if err != nil {
			return err
		}
		value, err := parseJSON(text.Bytes())
		w.cache.put("/", value)
		return err
	case e.Kind == watch.Put || !w.request.Whole:
		return w.cache.apply(e.Kind == watch.Patch, enginetest.Text(e))
	}
	value, err := parseMembers(e.Value)
	if err != nil {
		return err
	}
	at := splitPath(e.Path.String())
	for _, deletes := range []bool{false, true} { // it is one step: nothing is empty in between
		for key, child := range value {
			if child = prune(child); (child == nil) == deletes {
				w.cache.value = assign(w.cache.value, slices.Concat(at, strings.Split(key, "/")), child)
			}
		}
	}
	return nil
}

// parseMembers returns the members of a patch.
func parseMembers(text []byte) (members map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&members)
	return members, err
}
