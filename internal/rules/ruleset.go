package rules

import (
	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// MaxBytes is the longest text of a rules document.
const MaxBytes = 256 << 10

// A Ruleset is a compiled rules document. It is immutable and may be used by any
// number of goroutines. The zero Ruleset denies everything.
type Ruleset struct {
	source string
	root   node
}

// A node is the rules of the locations that one path of the document matches.
type node struct {
	read, write, validate *rule
	children              map[string]*node
	wildcard              *node
	indexes               []string // of .indexOn
	expiry                *expiry  // of .expireOn, nil if there is none

	// What there is here or below: .validate, .indexOn or .expireOn, and .read or .write that
	// are literally true. Validating are the literal children with a .validate at
	// them or below, sorted.
	validates, indexed, opensRead, opensWrite bool
	validating                                []string
}

// child returns the rules for a child, nil if there are none. The literal child
// hides the wildcard, whatever it says.
func (n *node) child(key string) (child *node, wild bool) {
	if c, ok := n.children[key]; ok {
		return c, false
	}
	return n.wildcard, n.wildcard != nil
}

// A rule is a .read, .write or .validate.
type rule struct {
	kind   expr.Kind
	expr   *expr.Expr
	text   string // as written, for traces
	line   int
	column int
}

// Source returns the text that the ruleset was compiled from.
func (r *Ruleset) Source() string { return r.source }

// OpensRoot reports whether everybody may read, or write, the whole database: a
// rule at the root is literally true.
func (r *Ruleset) OpensRoot() (read, write bool) {
	return r.root.read.isTrue(), r.root.write.isTrue()
}

// RootOpenings returns the rules at the root that are literally true.
func (r *Ruleset) RootOpenings() []DecidingRule {
	var list []DecidingRule
	for _, rule := range []*rule{r.root.read, r.root.write} {
		if rule.isTrue() {
			list = append(list, DecidingRule{tree.Path{}, rule.kind, rule.line, rule.column})
		}
	}
	return list
}

func (r *rule) isTrue() bool {
	if r == nil {
		return false
	}
	value, constant := r.expr.Constant()
	return constant && value
}
