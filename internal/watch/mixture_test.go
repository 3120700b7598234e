package watch_test

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// TestMixture makes random histories one step at a time: within a delivery there are writes, other rules, secrets and indexes, and
// those that come to be built; watches of all kinds begin, end, take what there is, miss something, are for somebody else, and begin
// again with what their clients know or where they were. At rest every watch shows what a read gives, and none was told what
// it was denied.
func TestMixture(t *testing.T) {
	runs := 60
	if enginetest.Race || testing.Short() {
		runs = 10
	}
	seed := *watchSeed
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	for i := range uint64(runs) {
		m := newMixture(t, seed+i)
		m.run()
		m.CloseAll()
		if t.Failed() {
			t.Fatalf("-watch.seed=%d", seed+i)
		}
	}
}

// A mixture is one random history.
type mixture struct {
	*fixture
	rng     *mathrand.Rand
	history []string
	held    watch.HeldDispatcher
	handOn  func() // the delivery that was taken; nil if there is none
	all     []*mixed
	begun   int // watches so far
	moments []moment
	people  []auth.Identity
}

// mixtureBases are the secrets that the people of a mixture rest on.
var mixtureBases = []string{"", "", "s1", "s1", "s2", "s2"}

func newMixture(t *testing.T, seed uint64) *mixture {
	rng := mathrand.New(mathrand.NewPCG(seed, 0))
	m := &mixture{rng: rng, fixture: open(t, store.Options{
		ChunkBytes: []int{-1, 64, 300, 2048}[rng.IntN(4)], PriorityRows: []int{2, 0}[rng.IntN(2)], StepChildren: []int{1, 0}[rng.IntN(2)],
	})}
	if rng.IntN(3) == 0 {
		m.Reopen(engine.Options{Clock: m.Clock, Limits: enginetest.TinyLimits(), Scans: scan.NewPool(enginetest.TinyScans())})
	}
	if rng.IntN(2) > 0 {
		m.Watches().BoundWindows(1+rng.IntN(4), 1+rng.IntN(3))
	}
	if rng.IntN(3) == 0 {
		m.Watches().BoundMoving(1 + rng.IntN(20))
	}
	if rng.IntN(4) == 0 {
		m.Watches().BeginBetween()
	}
	if rng.IntN(3) == 0 {
		m.Watches().BoundRejudging(1+100*rng.IntN(3), 1, 1, 1000*rng.IntN(3))
	}
	m.Watches().Order()
	m.setSecrets("s1", "s2")
	m.people = []auth.Identity{{}, admin}
	for i, secret := range mixtureBases[2:] {
		who, err := m.Identify(context.Background(), secret)
		if err != nil {
			t.Fatal(err)
		}
		who.Admin, who.Auth = false, user(t, []string{`{"uid":"ann"}`, `{"uid":"ben"}`}[i%2]).Auth
		m.people = append(m.people, who)
	}
	return m
}

func (m *mixture) note(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf(format, args...))
}

func (m *mixture) run() {
	defer m.forgetMoments()
	for range 8 {
		m.history = nil
		m.forgetMoments()
		m.remember(0)
		for _, w := range m.all {
			w.since(0)
		}
		m.do(`PUT / ` + deliveryBody(m.rng))
		for range 4 {
			m.begin()
		}
		m.held = m.Watches().HoldDispatcher()
		for range 5 + m.rng.IntN(30) {
			m.step()
		}
		m.rest()
		if m.T.Failed() {
			return
		}
	}
	for _, w := range m.all {
		w.Close()
	}
}

// rest lets everything be handed on, looks at all watches, and ends some.
func (m *mixture) rest() {
	if m.handOn != nil {
		m.takeDelivery()
	}
	m.held.Release()
	m.WaitForWatches()
	m.waitForIndexes()
	m.WaitForWatches()
	kept := m.all[:0]
	for _, w := range m.all {
		m.check(w, m.settle(w))
		if m.rng.IntN(2) == 0 || w.ended != "" || len(kept) > 20 {
			w.Close()
			continue
		}
		kept = append(kept, w)
	}
	m.all = kept
}

// check reports what is wrong with a watch.
func (m *mixture) check(w *mixed, err error) {
	if err != nil {
		m.T.Errorf("watch of %s: %v\n%s", w.what, err, strings.Join(m.history, "\n"))
	}
}

// step does something.
func (m *mixture) step() {
	n := m.rng.IntN
	switch n(20) {
	case 0, 1, 2, 3:
		m.do(deliveryRequest(m.rng))
	case 4:
		m.setRules()
	case 5:
		m.waitForIndexes()
	case 6, 7:
		m.begin()
	case 8:
		m.do([]string{`PUT /gate 1`, `PUT /gate 0`, `PATCH / {"gate":1,"l/a/a":7}`, `PATCH / {"gate":0,"l/a/a":6}`, `PATCH / {"gate":0,"l/b/a":1}`}[n(5)])
	case 9:
		m.setSecrets([][]string{{"s1"}, {"s2"}, {"s1", "s2"}, {"s1", "s2"}, {"s1", "s2"}}[n(5)]...)
	case 10:
		m.takeDelivery()
	case 11:
		m.do(m.sweeping())
	case 12:
		for range 10 * (n(4) / 3) {
			m.do(deliveryRequest(m.rng))
		}
	default:
		if len(m.all) > 0 {
			m.stepOf(n(len(m.all)))
		}
	}
}

// stepOf does something to a watch.
func (m *mixture) stepOf(i int) {
	w := m.all[i]
	switch m.rng.IntN(8) {
	case 0:
		m.note("close %s", w.what)
		w.Close()
		m.all = append(m.all[:i], m.all[i+1:]...)
	case 1, 2:
		m.note("take %s", w.what)
		m.check(w, m.take(w))
	case 3:
		m.note("skip %s", w.what)
		w.Skip()
	case 4:
		m.again(i)
	case 5:
		m.identify(w)
	case 6:
		m.note("recheck %s", w.what)
		w.Recheck()
	case 7:
		m.resume(i)
	}
}

// takeDelivery takes a delivery, if there is one, or hands on the one that was taken.
func (m *mixture) takeDelivery() {
	switch {
	case m.handOn != nil:
		m.note("hand on")
		m.handOn()
		m.handOn = nil
	case m.held.Ready():
		m.note("take a delivery")
		m.handOn = m.held.Take()
	}
}

func (m *mixture) do(request string) {
	m.note("%s", request)
	m.remember(m.Do(request).Position)
}

func (m *mixture) waitForIndexes() {
	m.note("wait for indexes")
	if err := enginetest.WaitForIndexes(context.Background(), m.Database); err != nil {
		m.T.Fatal(err)
	}
}

func (m *mixture) setSecrets(secrets ...string) {
	m.note("secrets %v", secrets)
	if err := m.SetSecrets(context.Background(), secrets...); err != nil {
		m.T.Fatal(err)
	}
	m.remember(0)
}

func (m *mixture) setRules() {
	var indexes []string
	for _, index := range []string{`"a"`, `".value"`, `"b"`} {
		if m.rng.IntN(2) == 0 {
			indexes = append(indexes, index)
		}
	}
	read := []string{`true`, `true`, `auth.uid === 'ann'`, `root.child('gate').val() === 1 || auth.uid === 'ben'`,
		`auth !== null && root.child('l/a').exists()`, `data.child('b').exists() || auth.uid === 'ann'`}[m.rng.IntN(6)]
	document := fmt.Sprintf(`{"rules": {"l": {".read": %q, ".indexOn": [%s]}}}`, read, strings.Join(indexes, ","))
	m.note("rules %s", document)
	position, err := m.SetRules(context.Background(), document)
	if err != nil {
		m.T.Fatal(err)
	}
	m.remember(position)
}

// sweeping returns a request that concerns much.
func (m *mixture) sweeping() string {
	n := m.rng.IntN
	var parts []string
	for i := range 5 + n(20) {
		parts = append(parts, fmt.Sprintf(`"%d":{"a":%s,"b":%d}`, i, deliveryValue(m.rng), n(3)))
	}
	object := "{" + strings.Join(parts, ",") + "}"
	switch n(4) {
	case 0:
		return `PUT /l ` + object
	case 1:
		return `PATCH /l ` + object
	case 2:
		return fmt.Sprintf(`PATCH / {"l":%s,"m":%d}`, object, n(3))
	default:
		return fmt.Sprintf(`PATCH / {"l/a":%s,"l/b/a":%d,"l/c/.priority":2,"l/c/a":%d}`, object, n(4), n(4))
	}
}

// begin begins a random watch.
func (m *mixture) begin() {
	rng := m.rng
	req := whole(m.T, []string{"/", "/l", "/l/a", "/l/a/a"}[rng.IntN(4)])
	query := ""
	if rng.IntN(4) > 0 {
		query = deliveryQueries[rng.IntN(len(deliveryQueries))]
		if rng.IntN(3) == 0 {
			query = strings.ReplaceAll(query, `"a"`, `"b"`)
		}
		req = filtered(m.T, "/l", query)
		req.Scan = rng.IntN(3) > 0
	} else if rng.IntN(5) == 0 {
		req.Priority = true
	}
	if rng.IntN(2) == 0 {
		req.Form = tree.Export // as the SDKs, which alone are told of a change at once
		req.Whole = rng.IntN(2) == 0 && !req.Priority
	}
	req.Who, req.Lasts = m.people[rng.IntN(len(m.people))], rng.IntN(2) == 0
	m.begun++
	m.open(req, fmt.Sprintf("#%d %s?%s form=%d priority=%v whole=%v scan=%v lasts=%v", m.begun, req.Path, query, req.Form, req.Priority, req.Whole, req.Scan, req.Lasts), nil)
}

// A moment is the state after a step, which says who may read.
type moment struct {
	position uint64
	view     *state.View
}

// remember notes the state after a step; a position of 0 is that of the newest view.
func (m *mixture) remember(position uint64) {
	v := m.View()
	if position == 0 {
		position = v.Position
	}
	m.moments = append(m.moments, moment{position, v})
}

func (m *mixture) forgetMoments() {
	for _, at := range m.moments {
		at.view.Close()
	}
	m.moments = nil
}

// newest returns the state after the last step.
func (m *mixture) newest() moment { return m.moments[len(m.moments)-1] }
