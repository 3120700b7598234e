package state

import (
	"errors"
	"sync"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/denials"
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
	// Once says that nobody asks later what the decision depended on.
	Once bool
	// Observe, if set, is told of every rule that is asked: it is only simulated.
	Observe func(rules.Asked)
	// Witness, if not nil, is told of the rules, too, and that a write is denied.
	Witness *denials.Witness

	sent *tree.Write // what the trace shows, if not nil
}

// Showing returns the effort for a write that was sent so, before its server values were resolved: the
// trace shows no sums.
func (e Effort) Showing(sent tree.Write) Effort {
	if len(sent.Increments()) > 0 {
		kept := sent // other writes need not be on the heap
		e.sent = &kept
	}
	return e
}

// observer returns what is told of the rules that are asked.
func (e *Effort) observer() func(rules.Asked) {
	if e.Observe != nil {
		return e.Observe
	}
	return e.Witness.Observe()
}

// A metered is a tree that rules are charged for reading, for one judgement.
type metered struct {
	store.Tree
	cost store.Cost
	last store.Last
}

var meters = sync.Pool{New: func() any { return &metered{} }}

// meter returns one that is to be released: its memory is used again.
func meter(t store.Tree) *metered {
	m := meters.Get().(*metered)
	m.Tree = store.Remembering(t.Counting(&m.cost), &m.last)
	return m
}

// release lets the next judgement have the memory.
func (m *metered) release() {
	m.Tree, m.cost = store.Tree{}, store.Cost{}
	m.last.Forget()
	meters.Put(m)
}

// BytesRead implements rules.Meter.
func (m *metered) BytesRead() int { return m.cost.Bytes }

// AllowWrite judges a change whose server values are resolved, and for which a key
// may have been drawn.
func (s *Settings) AllowWrite(t store.Tree, who auth.Identity, c tree.Change, drawn string, e Effort) (rules.Decision, error) {
	if who.Admin {
		return rules.Decision{}, nil
	}
	request := rules.Request{Auth: who.Auth, NowMillis: c.Millis, Drawn: drawn, Trace: who.Debug || e.Observe != nil, Sent: e.sent, MaxSteps: e.Steps, Done: e.Done, Once: e.Once, Observe: e.observer()}
	data := meter(t)
	defer data.release()
	d, err := s.Ruleset().Write(request, data, c.Write)
	if err = refusal(d, err); errors.Is(err, ErrDenied) {
		e.Witness.Denied(who.Auth, c.Millis, d.Rule)
	}
	return d, err
}

// AllowRead judges a read that a write needs.
func (s *Settings) AllowRead(t store.Tree, who auth.Identity, p tree.Path, nowMillis int64, e Effort) (rules.Decision, error) {
	if who.Admin {
		return rules.Decision{}, nil
	}
	request := rules.Request{Auth: who.Auth, NowMillis: nowMillis, MaxSteps: e.Steps, Done: e.Done, Once: e.Once}
	data := meter(t)
	defer data.release()
	d, err := s.Ruleset().Read(request, data, p, rules.Query{})
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
	d, err := v.judge(who, p, q, reading{once: true, witness: v.source.witnessRead(p, q)})
	return d.Trace, err
}

// MayRead is AllowRead where nobody asks to read: for what an answer would tell beside. That
// it is denied is no denial of a request.
func (v *View) MayRead(who auth.Identity, p tree.Path) error {
	_, err := v.judge(who, p, nil, reading{once: true})
	return err
}

// MayReadAll is MayRead of all nodes at some paths, judged as one request.
func (v *View) MayReadAll(who auth.Identity, paths []tree.Path) error {
	_, err := v.judge(who, tree.Path{}, nil, reading{once: true, all: paths})
	return err
}

// JudgeRead judges a read that is to be judged again when something changes that
// the decision depended on. It may take a number of steps where others wait for it, 0
// for as many as a request may.
func (v *View) JudgeRead(who auth.Identity, p tree.Path, q *query.Query, steps int) (rules.Decision, error) {
	return v.judge(who, p, q, reading{steps: steps, witness: v.source.witnessRead(p, q)})
}

// A reading is how a read is judged.
type reading struct {
	once    bool // the decision is used at once
	steps   int
	all     []tree.Path // if there are some, they are read, and not the path
	witness *denials.Witness
}

func (v *View) judge(who auth.Identity, p tree.Path, q *query.Query, how reading) (rules.Decision, error) {
	if err := v.Exists(); err != nil {
		return rules.Decision{}, err
	}
	if who.Admin {
		return rules.Decision{}, nil
	}
	request := rules.Request{
		Auth: who.Auth, NowMillis: v.source.Clock.Millis(), Trace: who.Debug, Once: how.once, MaxSteps: how.steps, Done: v.done,
		Observe: how.witness.Observe(),
	}
	var seen rules.Query
	if q != nil {
		seen = rules.QueryOf(*q)
	}
	clock, metrics := v.source.Clock, v.source.Metrics
	began := clock.Now()
	var d rules.Decision
	var err error
	data := meter(v.Tree())
	defer data.release()
	if len(how.all) > 0 {
		d, err = v.Settings.Ruleset().ReadAll(request, data, how.all)
	} else {
		d, err = v.Settings.Ruleset().Read(request, data, p, seen)
	}
	err = refusal(d, err)
	metrics.Judgements.Observe(clock.Now().Sub(began))
	metrics.CountJudgement(d, err, &metrics.DeniedReads)
	if errors.Is(err, ErrDenied) {
		how.witness.Denied(who.Auth, request.NowMillis, d.Rule)
	}
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
	witness := v.source.witnessEarly(p)
	request := rules.Request{Auth: who.Auth, NowMillis: clock.Millis(), Once: true, Observe: witness.Observe()}
	may, err := v.Settings.Ruleset().MayWrite(request, v.Tree(), p, below)
	if err == nil && !may {
		err = ErrDenied
		witness.Denied(who.Auth, request.NowMillis, rules.DecidingRule{})
	}
	metrics.Judgements.Observe(clock.Now().Sub(began))
	metrics.CountJudgement(rules.Decision{}, err, &metrics.DeniedWrites)
	return Classify(err)
}
