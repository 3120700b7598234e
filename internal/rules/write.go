package rules

import (
	"errors"
	"slices"

	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// Write decides about a write whose server values are resolved: every assignment
// must be granted, and everything that the write brings or leaves around it must
// be valid. An error is one of data; then there is no decision.
func (r *Ruleset) Write(req Request, data Data, w tree.Write) (Decision, error) {
	j := newJudge(r, req, data, w.Bytes())
	defer j.release()
	j.after.set(&j.data, w)
	j.env.After = &j.after
	if len(w.Assignments) > 1 {
		j.remember()
	}
	if j.trace.on {
		shown := w
		if req.Sent != nil {
			shown = *req.Sent
		}
		j.trace.attempt("write", payload(shown), w.At, req.Auth)
	}
	granted, err := j.grantAll(w)
	if err != nil {
		return Decision{Steps: j.env.Spent}, err
	}
	if !granted {
		j.decision.Rule = DecidingRule{}
		j.trace.say("No .write rule allowed the operation.")
		return j.decide("Write", false), nil
	}
	if len(w.Assignments) > 1 {
		j.decision.Rule = DecidingRule{}
	}
	v := validator{judge: j}
	for _, a := range w.Assignments {
		if err := v.assignment(a); err != nil {
			return Decision{Steps: j.env.Spent}, err
		}
		if v.refused {
			j.trace.say("Validation failed.")
			return j.decide("Write", false), nil
		}
	}
	return j.decide("Write", true), nil
}

// remember lets several assignments share what was asked for one of them.
func (j *judge) remember() {
	j.several = true
	if j.granted == nil {
		j.granted = make(map[tree.Path]bool)
	}
	if j.validated == nil {
		j.validated = make(map[tree.Path]bool)
	}
}

// grantAll asks for every assignment whether it is granted. A write that assigns
// nothing needs it at its own location: whether it is may not be told otherwise.
func (j *judge) grantAll(w tree.Write) (bool, error) {
	if len(w.Assignments) == 0 {
		return j.grantWrite(w.At)
	}
	for _, a := range w.Assignments {
		if over, err := j.charge(assignmentSteps); err != nil || over {
			return false, err
		}
		if ok, err := j.grantWrite(a.Path); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// assignmentSteps is what an assignment is charged for the way down to it.
const assignmentSteps = 4

// charge counts steps beside those of rules. It reports true if there were too many
// in the request.
func (j *judge) charge(steps int) (over bool, err error) { return j.over(j.env.Charge(steps)) }

// over reports whether an error outside of a rule says that there were too many steps
// in the request. Any other error is returned.
func (j *judge) over(err error) (bool, error) {
	if _, failed := errors.AsType[*expr.Failure](err); failed {
		j.decision.OverBudget = true
		return true, nil
	}
	return false, err
}

func (j *judge) grantWrite(p tree.Path) (bool, error) {
	if rule, ok := j.ruleset.opens(expr.Write, p); ok && !j.trace.on {
		j.decision.Rule = rule
		return true, nil
	}
	return j.grant(expr.Write, p)
}

// A validator asks the .validate rules that a write concerns, until one of them
// is not true.
type validator struct {
	*judge
	refused bool
}

// charge counts steps beside those of rules. If there were too many in the request, the
// write is refused.
func (v *validator) charge(steps int) error { return v.refuseOver(v.env.Charge(steps)) }

// refuseOver refuses the write, by no rule, if an error says that there were too many
// steps in the request. Any other error is returned.
func (v *validator) refuseOver(err error) error {
	over, err := v.over(err)
	if over {
		v.refused, v.decision.Rule = true, DecidingRule{}
	}
	return err
}

// assignment asks the rules above an assignment, at it, and below it as far as
// it brings data.
func (v *validator) assignment(a tree.Assignment) error {
	if err := v.charge(assignmentSteps); err != nil || v.refused {
		return err
	}
	w := v.start(a.Path)
	for w.path() != a.Path {
		if w.node == nil || !w.node.validates {
			return nil
		}
		if err := v.ancestor(w); err != nil || v.refused {
			return err
		}
		w.down()
	}
	switch {
	case w.node == nil || !w.node.validates:
		return nil
	case a.Priority: // a write of the node, but not of its children
		return v.ancestor(w)
	}
	return v.descend(w.node, a.Path, a.Node, w.wildcards)
}

// ancestor asks the rule at a location that the write does not bring itself.
func (v *validator) ancestor(w *walk) error {
	if w.node.validate == nil || v.validated[w.path()] {
		return nil
	}
	if v.several {
		v.validated[w.path()] = true
	}
	exists, err := v.after.Exists(w.path())
	if err != nil || !exists {
		return v.refuseOver(err)
	}
	return v.ask(w.node.validate, w.path(), w.wildcards)
}

// ask asks one rule.
func (v *validator) ask(rule *rule, p tree.Path, wildcards []string) error {
	ok, err := v.eval(rule, p, wildcards)
	if err == nil && !ok {
		v.refused = true
		v.decision.Rule = DecidingRule{p, rule.kind, rule.line, rule.column}
	}
	return err
}

// descend asks the rules at and below a location that the write brings data to.
// Payload and rules are walked side by side, and the payload only where there
// are rules below.
func (v *validator) descend(n *node, p tree.Path, data tree.Node, wildcards []string) error {
	if data.IsNull() {
		return nil
	}
	if n.validate != nil {
		if err := v.ask(n.validate, p, wildcards); err != nil || v.refused {
			return err
		}
	}
	if n.wildcard == nil || !n.wildcard.validates {
		return v.literals(n, p, data, wildcards)
	}
	wildcards = slices.Grow(wildcards, 1) // for all children: they come one by one
	for key, child := range data.Children() {
		if err := v.charge(1); err != nil || v.refused {
			return err
		}
		next, wild := n.child(key)
		if !next.validates {
			continue
		}
		bound := wildcards
		if wild {
			bound = append(bound, key)
		}
		if err := v.descend(next, p.Child(key), child, bound); err != nil || v.refused {
			return err
		}
	}
	return nil
}

// literals descends to the children that the rules name, which may be few of
// very many.
func (v *validator) literals(n *node, p tree.Path, data tree.Node, wildcards []string) error {
	if err := v.charge(len(n.validating)); err != nil || v.refused {
		return err
	}
	for _, key := range n.validating {
		child := data.Child(key)
		if child.IsNull() {
			continue
		}
		if err := v.descend(n.children[key], p.Child(key), child, wildcards); err != nil || v.refused {
			return err
		}
	}
	return nil
}
