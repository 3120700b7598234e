package watch_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/watch"
)

// A ledger holds which commits opened and shut the location that viewers may read
// only while it is open: by data that its rule reads, and by the rule itself. It says
// which cancels are due.
type ledger struct {
	mu      sync.Mutex
	entries []ledgerEntry
}

type ledgerEntry struct {
	position uint64
	rule     bool // it was the rule that changed
	shut     bool
}

func (l *ledger) note(position uint64, rule, shut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, ledgerEntry{position, rule, shut})
}

// denied reports whether a read was denied in the state after some commit from first
// to last. All writes up to last must be answered.
func (l *ledger) denied(first, last uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.entries, func(a, b ledgerEntry) int { return cmp.Compare(a.position, b.position) })
	var byRule, byData bool
	for i, e := range l.entries {
		if e.position > last {
			break
		}
		if e.rule {
			byRule = e.shut
		} else {
			byData = e.shut
		}
		until := last // this state lasts up to there
		if i+1 < len(l.entries) {
			until = min(last, l.entries[i+1].position-1)
		}
		if (byRule || byData) && until >= first {
			return true
		}
	}
	return false
}

// shuts reports whether a request shuts or opens the location; neither if it is not ok.
func shuts(request string) (shut, ok bool) {
	return strings.Contains(request, `"gate":"shut"`), strings.Contains(request, `"gate":`)
}

// A claim is what a viewer was told and must hold, which is known when all writes are
// answered: that the read was denied after one of the commits, or after none of them.
type claim struct {
	first, last uint64 // the commits
	denied      bool
	what        string
}

// guarded reports whether the viewer may read only while the location is open.
func (v *viewer) guarded() bool { return strings.HasPrefix(v.req.Path.String(), "/guarded") }

// claim notes what an event says about the permission of its watch.
func (v *viewer) claim(e *watch.Event) {
	if !v.guarded() {
		if e.Kind == watch.Cancel {
			v.failf("cancelled")
		}
		return
	}
	switch {
	case e.Kind == watch.Cancel:
		v.claims = append(v.claims, claim{v.begun + 1, v.position(), true, "cancelled"})
	case e.Kind > watch.Patch:
	case e.Content != nil:
		if !v.saw {
			v.begun = e.Position
		}
		v.allowed = e.Position
		v.claims = append(v.claims, claim{e.Position, e.Position, false, "told what is there"})
	default:
		v.claims = append(v.claims, claim{v.allowed + 1, e.Position, false, "told a change"})
	}
	v.saw = true
}

// account holds the claims against the ledger, when all writes are answered and all
// that was told was taken.
func (v *viewer) account() {
	for _, c := range v.claims {
		if v.ledger.denied(c.first, c.last) != c.denied {
			v.failf("%s, but from commit %d to %d it was denied: %v", c.what, c.first, c.last, !c.denied)
		}
	}
	v.claims = nil
	if !v.guarded() {
		return
	}
	now := v.position()
	if denied := v.ledger.denied(now, now); denied == (v.watch != nil) {
		v.failf("at rest at %d it is watched: %v, and denied: %v", now, v.watch != nil, denied)
	}
}

// position returns that of the newest commit that can be seen.
func (c *checker) position() uint64 {
	s := c.View()
	defer s.Close()
	return s.Position
}

// slam shuts and opens the location while nobody else writes, in the order in which
// a cancel is due and in the one in which none is.
func (c *checker) slam(n int) {
	set := c.setGate
	if n%2 == 1 {
		set = c.setRule
	}
	c.setRule(false)
	c.setGate(false)
	c.calmDown()
	var list []*viewer
	for _, v := range c.viewers {
		if v.guarded() {
			list = append(list, v)
			v.settle()
		}
	}
	// Each delivery is handed on before the next commit, so each cancel must come.
	set(true)
	c.calmDown()
	set(false)
	c.calmDown()
	for _, v := range list {
		for v.watch != nil && v.step() {
		}
		if v.watch != nil && !c.Watches().LeavesUnjudged() {
			v.failf("it goes on after it was denied")
		}
		v.close()
	}
	// Watches begin while the dispatcher is at an older state, which shut them out.
	dispatcher := c.Watches().HoldDispatcher()
	set(true)
	handOn := dispatcher.Take()
	set(false)
	for _, v := range list {
		v.open()
	}
	handOn()
	dispatcher.Release()
	c.calmDown()
	for _, v := range list {
		v.settle()
	}
}

// setGate shuts or opens the location by data.
func (c *checker) setGate(shut bool) {
	text := `PATCH / {"gate":"open","guarded/secret":"no"}`
	if shut {
		text = `PATCH / {"gate":"shut","guarded/secret":"yes"}`
	}
	if err := c.send(text); err != nil {
		c.fail(err)
	}
}

// setRule shuts or opens the location by its rule.
func (c *checker) setRule(shut bool) {
	position, err := c.SetRules(context.Background(), checkerRules(int(c.revision.Add(1)), shut))
	if err != nil {
		c.fail(err)
		return
	}
	c.ledger.note(position, true, shut)
}

// send makes a request as the administrator.
func (c *checker) send(text string) error {
	req, err := enginetest.ParseRequest(text)
	if err != nil {
		return fmt.Errorf("%.200s: %w", text, err)
	}
	req.Who = admin
	commit, err := c.insist(req)
	if err != nil {
		return fmt.Errorf("%.200s: %w", text, err)
	}
	if shut, ok := shuts(text); ok {
		c.ledger.note(commit.Position, false, shut)
	}
	c.wrote()
	return nil
}

// insist makes a request again that lost the race against other writers too often:
// nothing was written then.
func (c *checker) insist(req engine.Request) (engine.Commit, error) {
	for {
		commit, err := c.Write(context.Background(), req)
		if fault.KindOf(err) != fault.Unavailable {
			return commit, err
		}
	}
}
