package state

import (
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// Drafted returns the settings as they would be with another rules document. What is
// wrong with it is a fault.Invalid error.
func (s *Settings) Drafted(document string) (*Settings, error) {
	ruleset, err := CompileRules(document)
	if err != nil {
		return nil, err
	}
	wanted, err := IndexRules(ruleset)
	if err != nil {
		return nil, err
	}
	return s.With(store.Settings{
		SettingRules:   []byte(document),
		SettingIndexes: s.List.With(wanted).Encode(),
	})
}

// ExplainRead judges a read by a query, if it is not nil, and tells Effort.Observe of the
// rules that it asks. It is judged like any other.
func (s *Settings) ExplainRead(t store.Tree, who auth.Identity, p tree.Path, q *query.Query, nowMillis int64, e Effort) (rules.Decision, error) {
	request := rules.Request{Auth: who.Auth, NowMillis: nowMillis, Trace: true, MaxSteps: e.Steps, Done: e.Done, Observe: e.Observe}
	var seen rules.Query
	if q != nil {
		seen = rules.QueryOf(*q)
	}
	data := meter(t)
	defer data.release()
	d, err := s.Ruleset().Read(request, data, p, seen)
	return d, refusal(d, err)
}
