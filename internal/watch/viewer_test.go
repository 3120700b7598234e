package watch_test

import (
	"bytes"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"reflect"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// A viewer keeps a cache of what it watches.
type viewer struct {
	*checker
	rng   *mathrand.Rand
	req   watch.Request
	woken chan struct{}

	watch  *watch.Watch
	cache  cache
	told   uint64 // the position of the newest commit that was told to its end
	within uint64 // that of the commit of which more is to come
	// half is the commit of which the cache has only a part, because the watch was
	// closed in the middle of it. Until it was told again nothing can be said.
	half   uint64
	fresh  bool // the cache may jump
	behind int  // events since the first
	held   *watch.Event

	// begun is where the watch began, or earlier if it did not say so; allowed is
	// where it was last told everything, or resumed; saw says that it was told anything.
	begun, allowed uint64
	saw            bool
	claims         []claim

	counters map[string]int

	events, opened, resumed, ended int
}

func (v *viewer) wake() {
	select {
	case v.woken <- struct{}{}:
	default:
	}
}

func (v *viewer) failf(format string, args ...any) {
	what := v.req.Path.String()
	if v.req.Query != nil {
		what += fmt.Sprintf("?%s %+v", v.req.Query.Order, *v.req.Query)
	}
	if v.req.Priority {
		what += "/.priority"
	}
	v.fail(fmt.Errorf("watch of %s, form %d: %s", what, v.req.Form, fmt.Sprintf(format, args...)))
}

// run watches until the writers are done.
func (v *viewer) run() {
	if v.opened == 0 && v.rng.IntN(3) > 0 {
		v.pause(v.rng.IntN(checkerWriters * checkerWrites)) // many join later
	}
	for v.writing.Load() {
		if v.watch == nil && !v.open() {
			v.pause(5)
			continue
		}
		if !v.step() {
			<-v.woken
		}
		switch v.rng.IntN(60) {
		case 0:
			v.pause(v.rng.IntN(checkerWriters * checkerWrites))
		case 1:
			v.close()
		case 2:
			if v.watch != nil {
				v.watch.Recheck()
			}
		}
	}
}

// pause waits until so many more writes are answered.
func (v *viewer) pause(writes int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	until := v.writes.Load() + int64(writes)
	for v.writes.Load() < until && v.writing.Load() {
		v.progress.Wait()
	}
}

// open begins to watch, or goes on; false if that is not allowed now.
func (v *viewer) open() bool {
	req := v.req
	req.Wake = v.wake
	if v.opened > 0 && v.rng.IntN(2) == 0 {
		req.Resume, req.Behind = true, v.told
	}
	v.begun, v.allowed, v.saw = v.position(), v.told, false
	watch, _, err := v.Watches().Open(req)
	if fault.KindOf(err) == fault.Denied {
		return false
	}
	if err != nil {
		v.failf("open: %v", err)
		return false
	}
	v.watch, v.half, v.within = watch, max(v.half, v.within), 0
	v.plant()
	v.opened++
	if req.Resume {
		v.resumed++
	}
	return true
}

// plant puts a bug of the engine into the watch.
func (v *viewer) plant() {
	switch v.bug {
	case judgeOlder:
		v.watch.ForgetPosition()
	case keepByData:
		v.watch.ForgetReads()
	case neverJudge:
		v.watch.NeverJudge()
	}
}

func (v *viewer) close() {
	if v.watch != nil {
		v.watch.Close()
		v.watch, v.held = nil, nil
	}
}

// step takes an event; false if there is none.
func (v *viewer) step() bool {
	if v.watch == nil {
		return true
	}
	e, ok := v.watch.Next()
	if !ok {
		return false
	}
	v.events++
	v.claim(e)
	switch e.Kind {
	case watch.Put, watch.Patch:
		v.misuse(e)
	default:
		v.ended++
		v.close()
	}
	return true
}

// misuse hands an event on, perhaps wrongly.
func (v *viewer) misuse(e *watch.Event) {
	v.behind++
	if e.Content != nil {
		v.behind = 0
	}
	now := v.rng.IntN(20) == 0 && e.Content == nil && !v.req.Priority
	switch {
	case v.bug == dropOne && now:
		return
	case v.bug == doubleOne && now:
		v.take(e)
	case v.bug == swapTwo && now && v.held == nil:
		v.held = e
		return
	case v.bug == lateFirst && v.behind > 0 && v.behind < 4:
		return
	}
	v.take(e)
	if v.held != nil {
		v.take(v.held)
		v.held = nil
	}
}

// take applies an event and looks at the cache.
func (v *viewer) take(e *watch.Event) {
	v.order(e)
	if err := v.apply(e); err != nil {
		v.failf("%v", err)
	}
	if v.req.Query == nil && e.Last && e.Position >= v.half {
		v.half = 0
		v.look()
	}
}

// order checks that commits are told in order, each once.
func (v *viewer) order(e *watch.Event) {
	if v.req.Query != nil { // what moved comes first, whatever moved it
		return
	}
	switch {
	case e.Content != nil:
		if e.Position < v.told {
			v.failf("told anew as of %d behind %d", e.Position, v.told)
		}
	case v.opened == 0:
		v.failf("the first event is not what is there")
	case e.Position <= v.told:
		v.failf("told of %d behind %d", e.Position, v.told)
	case v.within != 0 && e.Position != v.within:
		v.failf("told of %d in the middle of %d", e.Position, v.within)
	}
	v.within = e.Position
	if e.Last {
		v.told, v.within = e.Position, 0
	}
	v.fresh = v.fresh || e.Content != nil
}

func (v *viewer) apply(e *watch.Event) error {
	if e.Content != nil {
		var text bytes.Buffer
		if err := errors.Join(e.Content.PrintTo(&text), e.Content.Close()); err != nil {
			return err
		}
		value, err := parseJSON(text.Bytes())
		v.cache.put("/", value)
		return err
	}
	text := enginetest.Text(e)
	if v.bug == keepLeft {
		text = bytes.ReplaceAll(text, []byte(`":null`), []byte(`":"still here"`))
	}
	if v.bug == patchAsPut {
		return v.cache.apply(false, text)
	}
	return v.cache.apply(e.Kind == watch.Patch, text)
}

// look checks what holds between any two commits.
func (v *viewer) look() {
	if v.req.Priority {
		return
	}
	if v.cache.at("/secret") == "yes" && v.req.Path.String() == "/guarded" {
		v.failf("told a secret")
	}
	counters := map[string]int{}
	for i := range checkerWriters {
		at := path(v.T, fmt.Sprintf("/count/w%d/n", i))
		if v.req.Path.Contains(at) {
			n := 0
			if found := v.cache.at(v.req.Path.Below(at).String()); found != nil {
				_, _ = fmt.Sscan(fmt.Sprint(found), &n)
			}
			counters[at.String()] = n
		}
	}
	for at, n := range counters {
		if was := v.counters[at]; n < was || n > was+1 && !v.fresh {
			v.failf("%s went from %d to %d", at, was, n)
		}
	}
	v.counters = counters
	v.fresh = false
	if pair := path(v.T, "/pair"); v.req.Path.Contains(pair) {
		below := func(at string) any { return v.cache.at(v.req.Path.Below(path(v.T, "/pair"+at)).String()) }
		if a := below("/a/v"); a != below("/b") || a != below("/c/d/v") {
			v.failf("half a write: %v", below(""))
		}
	}
}

// settle takes the rest, and compares with what a read gives.
func (v *viewer) settle() {
	for v.watch == nil && v.open() || v.watch != nil && v.step() {
	}
	v.account()
	if v.watch == nil {
		return
	}
	s := v.View()
	defer s.Close()
	var text bytes.Buffer
	if err := printWatched(&text, s, v.req); err != nil {
		v.failf("read: %v", err)
		return
	}
	want, err := parseJSON(text.Bytes())
	if err != nil || !reflect.DeepEqual(v.cache.value, want) {
		v.failf("at rest, told up to %d of %d, told %d times:\n got %.600s\nwant %.600s %v%s", v.told, s.Position, v.events, v.cache.String(), (&cache{want}).String(), err, v.scanned(s))
	}
}

// scanned says what a query selects that uses no index and no memo, to tell which of two answers is wrong.
func (v *viewer) scanned(s *state.View) string {
	if v.req.Query == nil {
		return ""
	}
	var text bytes.Buffer
	err := printSelected(&text, s, v.req)
	return fmt.Sprintf("\nscan %.600s %v", text.String(), err)
}

// printSelected prints what a query selects, from the whole node.
func printSelected(out *bytes.Buffer, s *state.View, req watch.Request) error {
	n, err := s.Tree().Node(req.Path, 1<<28)
	if err != nil {
		return err
	}
	comma := ""
	out.WriteByte('{')
	for _, key := range query.Select(n, *req.Query) {
		out.WriteString(comma)
		out.Write(append(tree.AppendString(nil, key), ':'))
		out.Write(tree.AppendJSON(nil, n.Child(key), req.Form))
		comma = ","
	}
	out.WriteByte('}')
	return nil
}

// printWatched prints what a watch shows.
func printWatched(out *bytes.Buffer, s *state.View, req watch.Request) error {
	var content watch.Content
	var err error
	switch {
	case req.Priority:
		priority, err := s.Priority(req.Path)
		out.Write(tree.AppendLeaf(nil, priority))
		return err
	case req.Scan:
		return printSelected(out, s, req)
	case req.Query != nil:
		content, err = s.Select(req.Path, *req.Query, req.Form)
	default:
		content, err = s.Printer(req.Path, req.Form)
	}
	if err != nil {
		return err
	}
	return errors.Join(content.PrintTo(out), content.Close())
}
