package rules

import (
	"errors"
	"slices"
	"sync"

	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// A Request is who asks, and when.
type Request struct {
	// Auth is the variable auth; null if nobody is signed in. Its keys need not be
	// valid as child names.
	Auth tree.Node
	// NowMillis is the variable now: the time that server values get, too.
	NowMillis int64
	// Trace asks for an explanation.
	Trace bool
	// Once says that the decision is used at once and never looked at again: then
	// it does not say what it depended on.
	Once bool

	// observe, if set, is told of every rule that is asked and what it came to. A
	// request that does not ask for a trace may be decided without asking any.
	observe func(r *rule, p tree.Path, result bool, failure *expr.Failure)
}

// A Decision is what a ruleset says to a request.
type Decision struct {
	Allowed bool
	// Rule is the one that decided: the .read or .write that granted, the .validate
	// that refused. It is zero if a request was denied because no rule granted it,
	// and for a write of several assignments that was allowed.
	Rule DecidingRule
	// Reads are where the state before the request had a part in the decision, at
	// most maxReads. It stands until something at, above or below one changes. For
	// a request that asks once there are none.
	Reads []tree.Path
	// UsedNow says that the time had a part in it.
	UsedNow bool
	// OverBudget says that some rule was given up because it did too much.
	OverBudget bool
	// Trace explains the decision, if that was asked for, in one line of at most
	// maxTrace bytes.
	Trace string
}

// A DecidingRule is a rule of the document at a location.
type DecidingRule struct {
	Path         tree.Path
	Kind         expr.Kind
	Line, Column int // in the document, both from 1
}

// Read decides whether the node at p may be read, by the query q if it is not
// zero. An error is one of data; then there is no decision.
func (r *Ruleset) Read(req Request, data Data, p tree.Path, q Query) (Decision, error) {
	if rule, ok := r.opens(expr.Read, p); ok && !req.Trace {
		return Decision{Allowed: true, Rule: rule}, nil
	}
	j := newJudge(r, req, data)
	defer j.release()
	j.env.Query = q
	j.trace.attempt("read", "", p, req.Auth)
	granted, err := j.grant(expr.Read, p)
	if err != nil {
		return Decision{}, err
	}
	if !granted {
		j.trace.say("No .read rule allowed the operation.")
	}
	return j.decide("Read", granted), nil
}

// A judge decides about one request, and then about another: what it keeps of one
// is memory and nothing else.
type judge struct {
	ruleset  *Ruleset
	env      expr.Env
	data     footprint
	decision Decision
	trace    tracer
	observe  func(r *rule, p tree.Path, result bool, failure *expr.Failure)
	// several says that a write has several assignments, which may ask for the
	// same. Then granted remembers the outcome of .write rules, by location, and
	// validated the locations whose .validate was true.
	several   bool
	granted   map[tree.Path]bool
	validated map[tree.Path]bool

	walk  walk
	after overlay
}

var judges = sync.Pool{New: func() any { return new(judge) }}

// newJudge returns a judge that is to be released.
func newJudge(r *Ruleset, req Request, data Data) *judge {
	j := judges.Get().(*judge)
	j.ruleset, j.observe = r, req.observe
	j.data = footprint{Data: data, off: req.Once}
	j.env = expr.Env{Auth: req.Auth, NowMillis: req.NowMillis, Before: &j.data}
	j.trace.on = req.Trace
	return j
}

// release lets the next request have the judge. Nothing that a request could
// know stays in it, and nothing that was handed out is used again.
func (j *judge) release() {
	paths, wildcards := j.walk.paths[:cap(j.walk.paths)], j.walk.wildcards[:cap(j.walk.wildcards)]
	clear(paths)
	clear(wildcards)
	j.after.clear()
	*j = judge{
		walk: walk{paths: paths[:0], wildcards: wildcards[:0]}, after: j.after,
		granted: cleared(j.granted), validated: cleared(j.validated),
	}
	judges.Put(j)
}

// maxKept is up to how many assignments, or locations, of a write a judge keeps
// the memory for.
const maxKept = 64

// cleared returns the map without what it holds, or none if it is large.
func cleared(m map[tree.Path]bool) map[tree.Path]bool {
	if len(m) > maxKept {
		return nil
	}
	clear(m)
	return m
}

func (j *judge) decide(what string, allowed bool) Decision {
	d := j.decision
	d.Allowed, d.Reads, d.UsedNow = allowed, j.data.paths, j.env.UsedNow
	if allowed {
		j.trace.say(what + " was allowed.")
	} else {
		j.trace.say(what + " was denied.")
	}
	d.Trace = j.trace.text()
	return d
}

// opens looks for a rule on the way to p that is literally true. What the other
// rules say does not matter then, and the decision depends on nothing.
func (r *Ruleset) opens(kind expr.Kind, p tree.Path) (DecidingRule, bool) {
	n, rest := &r.root, p
	for n != nil {
		rule, below := n.read, n.opensRead
		if kind == expr.Write {
			rule, below = n.write, n.opensWrite
		}
		switch {
		case !below:
			return DecidingRule{}, false
		case rule.isTrue():
			for !rest.IsRoot() {
				p, rest = p.Parent(), rest.Parent()
			}
			return DecidingRule{p, kind, rule.line, rule.column}, true
		case rest.IsRoot():
			return DecidingRule{}, false
		}
		var key string
		key, rest = rest.Cut()
		n, _ = n.child(key)
	}
	return DecidingRule{}, false
}

// A walk is a way down the rules, from the root along the keys of a path.
type walk struct {
	node      *node       // nil where the rules end
	paths     []tree.Path // paths[i] is the location of the first i keys
	depth     int
	wildcards []string // the keys that wildcards matched so far
}

// start begins a walk along p, at the root. It ends the one before.
func (j *judge) start(p tree.Path) *walk {
	w := &j.walk
	w.node, w.depth, w.wildcards = &j.ruleset.root, 0, w.wildcards[:0]
	w.paths = slices.Grow(w.paths[:0], p.Depth()+1)[:p.Depth()+1]
	for i := range slices.Backward(w.paths) {
		w.paths[i] = p
		p = p.Parent()
	}
	return w
}

// path returns the location of the walk.
func (w *walk) path() tree.Path { return w.paths[w.depth] }

// down follows the next key.
func (w *walk) down() {
	w.depth++
	key := w.path().Last()
	next, wild := w.node.child(key)
	if wild {
		w.wildcards = append(w.wildcards, key)
	}
	w.node = next
}

// grant asks the .read or .write rules from the root down to p.
func (j *judge) grant(kind expr.Kind, p tree.Path) (bool, error) {
	w := j.start(p)
	for {
		rule := w.node.read
		if kind == expr.Write {
			rule = w.node.write
		}
		j.trace.visit(w.path())
		ok, err := j.grants(rule, w)
		if err != nil || ok {
			return ok, err
		}
		if w.path() == p {
			return false, nil
		}
		if w.down(); w.node == nil {
			return false, nil
		}
	}
}

// grants asks one rule, or remembers its answer.
func (j *judge) grants(rule *rule, w *walk) (bool, error) {
	if rule == nil {
		return false, nil
	}
	if ok, known := j.granted[w.path()]; known {
		return ok, nil
	}
	ok, err := j.eval(rule, w.path(), w.wildcards)
	if j.several {
		j.granted[w.path()] = ok
	}
	if ok {
		j.decision.Rule = DecidingRule{w.path(), rule.kind, rule.line, rule.column}
	}
	return ok, err
}

// eval evaluates a rule at a location. A rule that fails is false.
func (j *judge) eval(rule *rule, p tree.Path, wildcards []string) (bool, error) {
	j.env.Path, j.env.Wildcards = p, wildcards
	result, err := rule.expr.Eval(&j.env)
	failure, failed := errors.AsType[*expr.Failure](err)
	if err != nil && !failed {
		return false, err
	}
	if failed && failure.OverBudget {
		j.decision.OverBudget = true
	}
	j.trace.rule(rule, p, result, failure)
	if j.observe != nil {
		j.observe(rule, p, result, failure)
	}
	return result, nil
}
