package expr

import (
	"fmt"
	"slices"
	"strings"
)

// A Kind is the rule that an expression stands in.
type Kind uint8

// The kinds of rules.
const (
	Read Kind = iota
	Write
	Validate
)

// String returns the key of the rule.
func (k Kind) String() string { return [...]string{".read", ".write", ".validate"}[k] }

// A Scope is where an expression stands.
type Scope struct {
	Kind Kind
	// Wildcards are the names, with dollar signs, that the location binds, those
	// nearest to the root first. Of two equal names the later one counts.
	Wildcards []string
}

// Compile parses, checks and compiles an expression. The errors are in the order
// of their offsets; a syntax error is the only one.
func Compile(source string, scope Scope) (*Expr, []Error) {
	syntax, problem := Parse(source)
	if problem != nil {
		return nil, []Error{*problem}
	}
	return syntax.Compile(scope)
}

// Compile checks and compiles a parsed expression. It may be called once.
func (s *Syntax) Compile(scope Scope) (*Expr, []Error) {
	c := &checker{scope: scope}
	if t := c.check(s.root); t&(TypeBoolean|TypeError) == 0 {
		c.errors = append(c.errors, Error{0, "Expression must evaluate to a boolean."})
	}
	if c.errors != nil {
		slices.SortStableFunc(c.errors, func(a, b Error) int { return a.Offset - b.Offset })
		return nil, c.errors
	}
	e := &Expr{run: compileBoolean(s.root), patterns: s.patterns}
	if l, ok := s.root.(*literal); ok {
		e.constant, e.isConstant = l.leaf.Bool(), true
	}
	return e, nil
}

// A checker gives every node its type, and refuses what does not fit, in the
// words of the live service.
type checker struct {
	scope  Scope
	errors []Error
}

// fail refuses a node.
func (c *checker) fail(n node, format string, args ...any) Type {
	c.errors = append(c.errors, Error{n.at().offset, fmt.Sprintf(format, args...)})
	return TypeError
}

// check types a node that is a value: a list is none.
func (c *checker) check(n node) Type {
	t := c.typeOf(n)
	n.at().typ = t
	return t
}

func (c *checker) typeOf(n node) Type {
	switch n := n.(type) {
	case *literal:
		return literalType(n)
	case *pattern:
		return TypeRegex
	case *list:
		return c.fail(n, "Unexpected array literal.")
	case *variable:
		return c.variable(n)
	case *unary:
		return c.unary(n)
	case *chain:
		return c.chain(n)
	case *ternary:
		return c.ternary(n)
	case *member:
		return c.member(n)
	case *call:
		return c.call(n)
	}
	panic(fmt.Sprintf("unknown node %T", n))
}

func literalType(l *literal) Type {
	v := value{leaf: l.leaf}
	switch {
	case l.leaf.IsNull():
		return TypeNull
	case v.isNumber():
		return TypeNumber
	case v.isText():
		return TypeString
	}
	return TypeBoolean
}

func (c *checker) variable(v *variable) Type {
	switch v.name {
	case "auth":
		return TypeAny
	case "now":
		return TypeNumber
	case "query":
		return TypeQuery
	case "root", "data":
		return TypeSnapshot
	case "newData":
		if c.scope.Kind == Read {
			return c.fail(v, "newData is invalid in .read expressions.")
		}
		return TypeSnapshot
	}
	for i, name := range slices.Backward(c.scope.Wildcards) {
		if name == v.name {
			v.index = i
			return TypeString
		}
	}
	return c.fail(v, "Unknown variable '%s'.", v.name)
}

func (c *checker) unary(u *unary) Type {
	t := c.check(u.x)
	switch {
	case u.op == "!" && !t.in(TypeBoolean):
		return c.fail(u, "! only operates on booleans.")
	case u.op == "-" && !t.in(typesNumeric):
		return c.fail(u, "- only operates on numbers.")
	case u.op == "!":
		return TypeBoolean
	}
	return TypeNumber
}

func (c *checker) chain(n *chain) Type {
	left, leftNode := c.check(n.first), n.first
	for _, l := range n.links {
		right := c.check(l.x)
		left = c.binary(l, leftNode, left, right)
		leftNode = n
	}
	return left
}

// binary types one operator, given the types of its operands.
func (c *checker) binary(l link, leftNode node, left, right Type) Type {
	takes, result := operatorTypes(l.op, left, right)
	if !left.in(takes) {
		c.fail(leftNode, "%s", operandMessage(l.op, "left"))
		result = TypeError
	}
	if !right.in(takes) {
		c.fail(l.x, "%s", operandMessage(l.op, "right"))
		result = TypeError
	}
	return result
}

// operatorTypes returns what an operator takes and what it gives.
func operatorTypes(op string, left, right Type) (takes, result Type) {
	switch op {
	case "&&", "||":
		return TypeBoolean, TypeBoolean
	case "==", "===", "!=", "!==":
		return typesComparable, TypeBoolean
	case "<", "<=", ">", ">=":
		return typesOrdered, TypeBoolean
	case "+":
		return typesOrdered, sumType(left, right)
	}
	return typesNumeric, TypeNumber
}

// operandMessage refuses an operand. The words are the service's own, uneven as
// they are; it also names === as == and !== as !=.
func operandMessage(op, side string) string {
	switch op {
	case "&&", "||":
		return strings.ToUpper(side[:1]) + side[1:] + " operand of " + op + " must be boolean."
	case "==", "===":
		if side == "left" {
			return "Invalid == expression: left operand is not a number, boolean, string, null."
		}
		return "Invalid == expression: right operand is not a number, boolean, string, or null."
	case "!=", "!==":
		return "Invalid != expression: " + side + " operand is not a number, boolean, string, or null."
	case "<", "<=", ">", ">=":
		return "Invalid " + op + " expression: " + side + " operand must be a number or string."
	case "+":
		return "Invalid + expression: " + side + " operand is not a number or string."
	}
	return "Invalid " + op + " expression: " + side + " operand is not a number."
}

// sumType is the type of left + right: with a string it is a string.
func sumType(left, right Type) Type {
	switch {
	case (left|right)&TypeError != 0:
		return TypeError
	case (left|right)&TypeString != 0:
		return TypeString
	case left|right == TypeNumber:
		return TypeNumber
	}
	return TypePrimitive
}

func (c *checker) ternary(n *ternary) Type {
	cond, yes, no := c.check(n.cond), c.check(n.yes), c.check(n.no)
	switch {
	case !cond.in(TypeBoolean):
		return c.fail(n.cond, "condition of ? must be boolean.")
	case (yes|no)&TypeError != 0:
		return TypeError
	case yes == no:
		return yes
	case yes.in(typesMixed) && no.in(typesMixed):
		return TypePrimitive
	}
	return TypeOpaque
}
