package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
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
	// Millis is the time that the rules were asked for, and Read what they read of the tree,
	// and nothing else. IsRead is false if that is too much.
	Millis int64
	Read   tree.Node
	IsRead bool
}

// maxReadBytes bounds what rules read at one location, for a Verdict to have it.
const maxReadBytes = 64 << 10

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
	var reads []tree.Path
	if s.Read {
		var decision rules.Decision
		v.Millis = d.source.Clock.Millis()
		decision, err = settings.ExplainRead(t, s.Who, s.At, s.Query, v.Millis, effort)
		v.By, reads = decision.Rule, decision.Reads
	} else {
		if err := d.writer.admit(s.Request); err != nil {
			return Verdict{}, err
		}
		var j judgement
		j, err = d.writer.judge(t, settings, s.Request, effort)
		v.By, v.Millis, reads = j.by, j.Millis, append(s.Increments(), j.reads...)
	}
	if err != nil && !errors.Is(err, state.ErrDenied) {
		return Verdict{}, state.Classify(err)
	}
	v.Allowed = err == nil
	if v.Read, v.IsRead, err = gather(t, reads); err != nil {
		return Verdict{}, state.Classify(err)
	}
	if s.Query != nil && v.Allowed {
		if _, err := settings.IndexFor(*s.Query, s.At); err != nil {
			v.Index = err.Error()
		}
	}
	return v, nil
}

// gather returns a tree that has what is at some paths, and nothing else; false if that is too
// much.
func gather(t store.Tree, paths []tree.Path) (tree.Node, bool, error) {
	found := tree.NewEditor(tree.Node{})
	for _, p := range paths {
		n, err := t.Node(p, maxReadBytes)
		if errors.Is(err, store.ErrTooLarge) {
			return tree.Node{}, false, nil
		}
		if err != nil {
			return tree.Node{}, false, err
		}
		if !n.IsNull() {
			found.Apply(tree.Path{}, slices.Values([]tree.Assignment{{Path: p, Node: n}}))
		}
	}
	return found.Node(), true, nil
}
