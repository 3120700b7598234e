package engine

import (
	"context"
	"errors"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// OpenRules is the rules document that lets everybody read and write,
// ClosedRules the one that a database without rules behaves by.
const (
	OpenRules = `{
  "rules": {
    ".read": true,
    ".write": true
  }
}
`
	ClosedRules = `{
  "rules": {
    ".read": false,
    ".write": false
  }
}
`
)

var errDenied = fault.New(fault.Denied, "Permission denied")

// noRules denies everything.
var noRules = func() *rules.Ruleset {
	r, err := rules.Compile(ClosedRules)
	if err != nil {
		panic(err)
	}
	return r
}()

// ruleset returns the rules in force.
func (s *settings) ruleset() *rules.Ruleset {
	if s.rules == nil {
		return noRules
	}
	return s.rules
}

// allowWrite judges a write whose server values are resolved.
func (s *settings) allowWrite(t store.Tree, who auth.Identity, w tree.Write, nowMillis int64) (rules.Decision, error) {
	if who.Admin {
		return rules.Decision{}, nil
	}
	d, err := s.ruleset().Write(rules.Request{Auth: who.Auth, NowMillis: nowMillis, Trace: who.Debug}, t, w)
	if err == nil && !d.Allowed {
		err = errDenied
	}
	return d, err
}

// allowRead judges a read that a write needs.
func (s *settings) allowRead(t store.Tree, who auth.Identity, p tree.Path, nowMillis int64) (rules.Decision, error) {
	if who.Admin {
		return rules.Decision{}, nil
	}
	d, err := s.ruleset().Read(rules.Request{Auth: who.Auth, NowMillis: nowMillis}, t, p, rules.Query{})
	if err == nil && !d.Allowed {
		err = errDenied
	}
	return d, err
}

// AllowRead judges whether somebody may read the node at p, by a query if it is
// not nil: nil, or a fault.Denied error. For an identity that debugs it returns
// the trace of the rules that were tried.
func (s *Snapshot) AllowRead(who auth.Identity, p tree.Path, q *query.Query) (trace string, err error) {
	d, err := s.judge(who, p, q, true)
	return d.Trace, err
}

// judgeRead judges a read that is to be judged again when something changes that
// the decision depended on.
func (s *Snapshot) judgeRead(who auth.Identity, p tree.Path, q *query.Query) (rules.Decision, error) {
	return s.judge(who, p, q, false)
}

func (s *Snapshot) judge(who auth.Identity, p tree.Path, q *query.Query, once bool) (rules.Decision, error) {
	if who.Admin {
		return rules.Decision{}, nil
	}
	request := rules.Request{Auth: who.Auth, NowMillis: s.database.opts.Clock.Millis(), Trace: who.Debug, Once: once}
	var seen rules.Query
	if q != nil {
		seen = rules.QueryOf(*q)
	}
	clock, metrics := s.database.opts.Clock, s.database.opts.Metrics
	began := clock.Now()
	d, err := s.settings.ruleset().Read(request, s.tree(), p, seen)
	if err == nil && !d.Allowed {
		err = errDenied
	}
	metrics.Judgements.Observe(clock.Now().Sub(began))
	metrics.countJudgement(d, err, &metrics.DeniedReads)
	return d, classify(err)
}

// Rules returns the rules document as it was written.
func (d *Database) Rules() string {
	if r := d.published.Load().settings.rules; r != nil {
		return r.Source()
	}
	return ClosedRules
}

// StrictRules returns the rules document as JSON without comments.
func (d *Database) StrictRules() []byte {
	return d.published.Load().settings.ruleset().Strict()
}

// CheckRules reports what is wrong with a rules document: nil, or a
// fault.Invalid error that lists it.
func CheckRules(document string) error {
	_, err := compileRules(document)
	return err
}

func compileRules(document string) (*rules.Ruleset, error) {
	ruleset, err := rules.Compile(document)
	if problems, ok := errors.AsType[rules.Problems](err); ok {
		return nil, fault.Wrap(fault.Invalid, err, "%s\n", problems.Error())
	}
	return ruleset, err
}

// SetRules replaces the rules document, which is in force for every write behind
// it. Indexes that it asks for are built in the background.
func (d *Database) SetRules(ctx context.Context, document string) error {
	ruleset, err := compileRules(document)
	if err != nil {
		return err
	}
	wanted, err := indexRules(ruleset)
	if err != nil {
		return err
	}
	err = d.revise(ctx, func(s *settings) (revision, error) {
		return revision{rows: store.Settings{
			settingRules:   []byte(document),
			settingIndexes: s.list.with(wanted).encode(),
		}}, nil
	})
	d.startMaintenance()
	return err
}

// indexRules returns the indexes that a document asks for.
func indexRules(ruleset *rules.Ruleset) ([]IndexRule, error) {
	var list []IndexRule
	for _, p := range ruleset.IndexPatterns() {
		index, err := query.ParseIndex(p.Index)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "%v", err)
		}
		list = append(list, IndexRule{Pattern: p.Keys, Except: p.Except, Index: index})
	}
	return list, nil
}
