package expr

import "github.com/livetree/livetree/internal/tree"

// A node is a part of an expression. Parentheses leave no node behind.
type node interface {
	// at returns where the node is and, once it is checked, its type.
	at() *mark
}

type mark struct {
	offset int // of the first byte that is typical for the node
	typ    Type
}

func (m *mark) at() *mark { return m }

type (
	// A literal is null, a boolean, a number or a string.
	literal struct {
		mark
		leaf tree.Leaf
	}
	// A pattern is a regular expression.
	pattern struct {
		mark
		regex *regex
	}
	// A list is an array literal.
	list struct {
		mark
		items []node
	}
	// A variable is a name, with its dollar sign if it is a wildcard.
	variable struct {
		mark
		name  string
		index int // of a wildcard's value in Env.Wildcards
	}
	// A unary is !x or -x.
	unary struct {
		mark
		op string
		x  node
	}
	// A chain is a run of operators of one precedence, applied from left to
	// right. As one node it keeps the tree flat: `a || b || c || …` may be long.
	chain struct {
		mark
		first node
		links []link
	}
	// A ternary is cond ? yes : no.
	ternary struct {
		mark
		cond, yes, no node
	}
	// A member is target.name, target['name'], or target[index].
	member struct {
		mark
		target node
		name   string
		index  node // nil if the name is known
	}
	// A call is callee(args); the callee is a member unless it is an error.
	call struct {
		mark
		callee node
		args   []node
	}
)

// A link is an operator of a chain and its right operand.
type link struct {
	op string
	x  node
}
