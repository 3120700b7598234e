package rules

import (
	"errors"

	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// errUnknown ends the evaluation of a rule that looks at newData.
var errUnknown = errors.New("the write is not known yet")

// unknown is the state after a write that is not known yet.
type unknown struct{}

func (unknown) Look(tree.Path) (leaf, priority tree.Leaf, err error) {
	return leaf, priority, errUnknown
}
func (unknown) Kind(tree.Path) (tree.Kind, error)     { return tree.Null, errUnknown }
func (unknown) Priority(tree.Path) (tree.Leaf, error) { return tree.Leaf{}, errUnknown }
func (unknown) Exists(tree.Path) (bool, error)        { return false, errUnknown }

// MayWrite reports whether some write at p could be granted; below, a write of what
// is below p could be, as a patch. If not, all of them are denied on this state. A
// rule whose outcome depends on newData counts as one that grants. An error is one of
// data; then there is no decision.
func (r *Ruleset) MayWrite(req Request, data Data, p tree.Path, below bool) (bool, error) {
	if _, ok := r.opens(expr.Write, p); ok {
		return true, nil
	}
	j := newJudge(r, req, data, 0)
	defer j.release()
	j.env.After = unknown{}
	granted, err := j.grant(expr.Write, p)
	if errors.Is(err, errUnknown) {
		return true, nil
	}
	if err != nil || granted || !below {
		return granted, err
	}
	n := &r.root
	for rest := p; n != nil && !rest.IsRoot(); {
		var key string
		key, rest = rest.Cut()
		n, _ = n.child(key)
	}
	return n.grantsBelow(), nil
}

// grantsBelow reports whether there is a .write below that is not just false.
func (n *node) grantsBelow() bool {
	if n == nil {
		return false
	}
	for _, child := range n.children {
		if child.mayGrant() || child.grantsBelow() {
			return true
		}
	}
	return n.wildcard != nil && (n.wildcard.mayGrant() || n.wildcard.grantsBelow())
}

func (n *node) mayGrant() bool {
	if n.write == nil {
		return false
	}
	value, constant := n.write.expr.Constant()
	return value || !constant
}
