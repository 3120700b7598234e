package rules

import (
	"cmp"
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
	// Drawn is the push key in the path of a write, empty if it has none.
	Drawn string
	// MaxSteps, if not 0, ends the judgement with ErrHeavy when it takes more steps.
	// In any case a request has a number of steps for all its rules: see
	// requestSteps. When they are used up, all rules are false.
	MaxSteps int
	// Done, if not nil, is closed when nobody waits for the decision any more. Then
	// the judgement ends with ErrUnwanted.
	Done <-chan struct{}
	// Trace asks for an explanation.
	Trace bool
	// Sent, if not nil, is a write as its client sent it. The trace shows that: what
	// increments come to tells what is there.
	Sent *tree.Write
	// Once says that the decision is used at once and never looked at again: then
	// it does not say what it depended on.
	Once bool

	// steps, if not 0, is used in place of requestSteps. It is for tests.
	steps int
	// Observe, if set, is told of every rule that is asked. A request that does not
	// ask for a trace may be decided without asking any.
	Observe func(Asked)
}

// Asked is a rule that was asked, and what it came to.
type Asked struct {
	Path         tree.Path
	Kind         expr.Kind
	Line, Column int    // in the document, both from 1
	Text         string // of the rule
	Result       bool
	// Failure says why the rule could not be evaluated; it is then false. It is empty
	// if it could.
	Failure string

	rule *rule
}

// ErrHeavy says that a judgement takes more steps than Request.MaxSteps, ErrUnwanted
// that nobody waits for it any more. There is no decision then.
var (
	ErrHeavy    = errors.New("the judgement takes too many steps")
	ErrUnwanted = errors.New("nobody waits for the judgement any more")
)

// requestSteps is what the rules of one request may take together, a second or so,
// and stepsPerByte what they may take beside that for each byte of a write: rules
// look at all that it brings.
const (
	requestSteps = 20_000_000
	stepsPerByte = 8
)

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
	// UsedDrawn says that some rule looked at the push key itself.
	UsedDrawn bool
	// OverBudget says that some rule was given up because it did too much, or all of
	// them together.
	OverBudget bool
	// Steps is how much work the judgement was. It is there beside an error as well.
	Steps int
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
	j := newJudge(r, req, data, 0)
	defer j.release()
	j.env.Query = q
	j.trace.attempt("read", "", p, req.Auth)
	granted, err := j.grant(expr.Read, p)
	if err != nil {
		return Decision{Steps: j.env.Spent}, err
	}
	if !granted {
		j.trace.say("No .read rule allowed the operation.")
	}
	return j.decide("Read", granted), nil
}

// ReadAll decides whether the nodes at all of some paths may be read, without a query. They
// are judged as one request: what a rule said is remembered, and all together have the steps
// of a write of so many bytes as the paths have.
func (r *Ruleset) ReadAll(req Request, data Data, paths []tree.Path) (Decision, error) {
	bytes := 0
	for _, p := range paths {
		bytes += p.Bytes()
	}
	j := newJudge(r, req, data, bytes)
	defer j.release()
	j.remember()
	for _, p := range paths {
		if _, ok := r.opens(expr.Read, p); ok {
			continue
		}
		over, err := j.charge(assignmentSteps)
		granted := false
		if err == nil && !over {
			granted, err = j.grant(expr.Read, p)
		}
		if err != nil {
			return Decision{Steps: j.env.Spent}, err
		}
		if !granted {
			j.decision.Rule = DecidingRule{}
			return j.decide("Read", false), nil
		}
	}
	j.decision.Rule = DecidingRule{}
	return j.decide("Read", true), nil
}

// A judge decides about one request, and then about another: what it keeps of one
// is memory and nothing else.
type judge struct {
	ruleset  *Ruleset
	env      expr.Env
	data     memory
	done     <-chan struct{}
	asked    int // how often a rule was asked
	decision Decision
	trace    tracer
	observe  func(Asked)
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

// newJudge returns a judge that is to be released, for a request of so many bytes.
func newJudge(r *Ruleset, req Request, data Data, bytes int) *judge {
	j := judges.Get().(*judge)
	j.ruleset, j.observe, j.done = r, req.Observe, req.Done
	j.env = expr.Env{Auth: req.Auth, NowMillis: req.NowMillis, Drawn: req.Drawn, Before: &j.data}
	j.env.Limit = cmp.Or(req.steps, requestSteps) + stepsPerByte*bytes
	if req.MaxSteps > 0 && req.MaxSteps < j.env.Limit {
		j.env.Limit, j.env.Over = req.MaxSteps, ErrHeavy
	}
	j.data.begin(data, &j.env)
	j.data.where.off = req.Once
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
	j.data.forget()
	*j = judge{
		walk: walk{paths: paths[:0], wildcards: wildcards[:0]}, after: j.after, data: j.data,
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
	d.Allowed, d.Reads, d.UsedNow, d.UsedDrawn, d.Steps = allowed, j.data.where.paths, j.env.UsedNow, j.env.UsedDrawn, j.env.Spent
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

// rulesBetween is after how many rules a judge looks whether the request is still
// wanted. With a trace, which is for cases and simulations, it looks at each: there can be very many cases with few rules,
// and a rule can take long.
const rulesBetween = 64

// left returns ErrUnwanted if nobody waits for the decision any more.
func (j *judge) left() error {
	if j.asked++; j.asked%rulesBetween != 0 && !j.trace.on {
		return nil
	}
	select {
	case <-j.done:
		return ErrUnwanted
	default:
		return nil
	}
}

// eval evaluates a rule at a location. A rule that fails is false.
func (j *judge) eval(rule *rule, p tree.Path, wildcards []string) (bool, error) {
	if err := j.left(); err != nil {
		return false, err
	}
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
		asked := Asked{p, rule.kind, rule.line, rule.column, rule.text, result, "", rule}
		if failed {
			asked.Failure = failure.Message
		}
		j.observe(asked)
	}
	return result, nil
}
