package state

import (
	"errors"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// An Effort bounds a judgement.
type Effort struct {
	Steps int             // of rules; 0 for as many as a request may take
	Bytes int             // of old data that are read for a precondition
	Done  <-chan struct{} // if not nil, closed when the client has gone
	// Observe, if set, is told of every rule that is asked: it is only simulated.
	Observe func(rules.Asked)
}

// A metered is a tree that rules are charged for reading.
type metered struct {
	store.Tree
	cost store.Cost
}

func meter(t store.Tree) *metered {
	m := &metered{}
	m.Tree = t.Counting(&m.cost)
	return m
}

// BytesRead implements rules.Meter.
func (m *metered) BytesRead() int { return m.cost.Bytes }

// AllowWrite judges a change whose server values are resolved, and for which a key
// may have been drawn.
func (s *Settings) AllowWrite(t store.Tree, who auth.Identity, c tree.Change, drawn string, e Effort) (rules.Decision, error) {
	if who.Admin {
		return rules.Decision{}, nil
	}
	request := rules.Request{Auth: who.Auth, NowMillis: c.Millis, Drawn: drawn, Trace: who.Debug || e.Observe != nil, MaxSteps: e.Steps, Done: e.Done, Observe: e.Observe}
	d, err := s.Ruleset().Write(request, meter(t), c.Write)
	return d, refusal(d, err)
}

// AllowRead judges a read that a write needs.
func (s *Settings) AllowRead(t store.Tree, who auth.Identity, p tree.Path, nowMillis int64, e Effort) (rules.Decision, error) {
	if who.Admin {
		return rules.Decision{}, nil
	}
	request := rules.Request{Auth: who.Auth, NowMillis: nowMillis, MaxSteps: e.Steps, Done: e.Done}
	d, err := s.Ruleset().Read(request, meter(t), p, rules.Query{})
	return d, refusal(d, err)
}

// refusal returns the error of a judgement, or of a decision that denies.
func refusal(d rules.Decision, err error) error {
	switch {
	case errors.Is(err, rules.ErrHeavy):
		return ErrHeavy
	case err == nil && !d.Allowed:
		return ErrDenied
	}
	return err
}

// AllowRead judges whether somebody may read the node at p, by a query if it is
// not nil: nil, or a fault.Denied error. For an identity that debugs it returns
// the trace of the rules that were tried.
func (v *View) AllowRead(who auth.Identity, p tree.Path, q *query.Query) (trace string, err error) {
	d, err := v.judge(who, p, q, true, 0)
	return d.Trace, err
}

// JudgeRead judges a read that is to be judged again when something changes that
// the decision depended on. It may take a number of steps where others wait for it, 0
// for as many as a request may.
func (v *View) JudgeRead(who auth.Identity, p tree.Path, q *query.Query, steps int) (rules.Decision, error) {
	return v.judge(who, p, q, false, steps)
}

func (v *View) judge(who auth.Identity, p tree.Path, q *query.Query, once bool, steps int) (rules.Decision, error) {
	if err := v.Exists(); err != nil {
		return rules.Decision{}, err
	}
	if who.Admin {
		return rules.Decision{}, nil
	}
	request := rules.Request{
		Auth: who.Auth, NowMillis: v.source.Clock.Millis(), Trace: who.Debug, Once: once, MaxSteps: steps, Done: v.done,
	}
	var seen rules.Query
	if q != nil {
		seen = rules.QueryOf(*q)
	}
	clock, metrics := v.source.Clock, v.source.Metrics
	began := clock.Now()
	d, err := v.Settings.Ruleset().Read(request, meter(v.Tree()), p, seen)
	err = refusal(d, err)
	metrics.Judgements.Observe(clock.Now().Sub(began))
	metrics.CountJudgement(d, err, &metrics.DeniedReads)
	return d, Classify(err)
}

// MayWrite judges what can be judged of a write before its body is known: nil if the
// rules may allow some write at p or, with below, of what is below it; else a
// fault.Denied error.
func (v *View) MayWrite(who auth.Identity, p tree.Path, below bool) error {
	if who.Admin {
		return nil
	}
	clock, metrics := v.source.Clock, v.source.Metrics
	began := clock.Now()
	request := rules.Request{Auth: who.Auth, NowMillis: clock.Millis(), Once: true}
	may, err := v.Settings.Ruleset().MayWrite(request, v.Tree(), p, below)
	if err == nil && !may {
		err = ErrDenied
	}
	metrics.Judgements.Observe(clock.Now().Sub(began))
	metrics.CountJudgement(rules.Decision{}, err, &metrics.DeniedWrites)
	return Classify(err)
}
