package engine

import (
	"context"
	"errors"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/state"
)

// A Simulation is a request of which only the judgement is asked for.
type Simulation struct {
	// Rules is a document to judge by; nil for the one in force.
	Rules *string
	// Read says that At is read, by Query if it is not nil. Otherwise it is a write.
	Read  bool
	Query *query.Query
	Request
	// Observe is told of every rule that is asked.
	Observe func(rules.Asked)
}

// A Verdict is what would become of a simulated request.
type Verdict struct {
	Allowed bool
	// By is the rule that decided; its line is 0 if none did.
	By rules.DecidingRule
	// Index says which index the query lacks, empty if none.
	Index string
}

// Simulate judges a request on the newest view of a database, by the same steps as a real one, and
// changes nothing.
func Simulate(ctx context.Context, d *Database, s Simulation) (Verdict, error) {
	view, published := d.view()
	defer view.Release()
	if published.Dropped {
		return Verdict{}, state.NoDatabase(d.source.Name)
	}
	settings := published.Settings
	if s.Rules != nil {
		var err error
		if settings, err = settings.Drafted(*s.Rules); err != nil {
			return Verdict{}, err
		}
	}
	t := view.Tree(d.source.ID).Until(ctx.Done())
	effort := state.Effort{Done: ctx.Done(), Observe: s.Observe}
	var v Verdict
	var err error
	if s.Read {
		var decision rules.Decision
		decision, err = settings.ExplainRead(t, s.Who, s.At, s.Query, d.source.Clock.Millis(), effort)
		v.By = decision.Rule
	} else {
		if err := d.writer.admit(s.Request); err != nil {
			return Verdict{}, err
		}
		var j judgement
		j, err = d.writer.judge(t, settings, s.Request, effort)
		v.By = j.by
	}
	if err != nil && !errors.Is(err, state.ErrDenied) {
		return Verdict{}, state.Classify(err)
	}
	v.Allowed = err == nil
	if s.Query != nil && v.Allowed {
		if _, err := settings.IndexFor(*s.Query, s.At); err != nil {
			v.Index = err.Error()
		}
	}
	return v, nil
}
