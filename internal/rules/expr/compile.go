package expr

import (
	"github.com/livetree/livetree/internal/tree"
)

// Compiled code is closures, by what they come to. Static types decide which of
// them a node becomes, so that most of the checks at run time are gone.
type (
	booleanCode  func(*Env) (bool, error)
	valueCode    func(*Env) (value, error)
	snapshotCode func(*Env) (ruleSnapshot, error)
)

// failAt returns the failure of a node. Failures are made when an expression is
// compiled; failing costs nothing then.
func failAt(n node, message string) *Failure {
	return &Failure{Offset: n.at().offset, Message: message}
}

// compileBoolean compiles a node of type boolean.
func compileBoolean(n node) booleanCode {
	switch n := n.(type) {
	case *literal:
		b := n.leaf.Bool()
		return func(*Env) (bool, error) { return b, nil }
	case *unary:
		x := compileBoolean(n.x)
		return func(e *Env) (bool, error) {
			b, err := x(e)
			return !b, err
		}
	case *chain:
		switch n.links[0].op {
		case "&&", "||":
			return compileLogical(n)
		case "==", "===", "!=", "!==":
			return compileEquality(n)
		}
		return compileOrder(n)
	case *ternary:
		cond, yes, no := compileBoolean(n.cond), compileBoolean(n.yes), compileBoolean(n.no)
		return func(e *Env) (bool, error) {
			b, err := cond(e)
			switch {
			case err != nil:
				return false, err
			case b:
				return yes(e)
			}
			return no(e)
		}
	case *member:
		return compileQueryFlag(n.name)
	case *call:
		return compileBooleanCall(n)
	}
	panic("not a boolean")
}

// compileLogical compiles && and ||, which stop at the first operand that
// decides.
func compileLogical(n *chain) booleanCode {
	operands := []booleanCode{compileBoolean(n.first)}
	for _, l := range n.links {
		operands = append(operands, compileBoolean(l.x))
	}
	decides := n.links[0].op == "||"
	return func(e *Env) (bool, error) {
		if err := e.spend(len(operands)); err != nil {
			return false, err
		}
		for _, operand := range operands {
			if b, err := operand(e); err != nil || b == decides {
				return b && err == nil, err
			}
		}
		return !decides, nil
	}
}

// compileEquality compiles == and !=. In a == b == c the left operand of the
// second one is a boolean.
func compileEquality(n *chain) booleanCode {
	if code := compileIsNull(n); code != nil {
		return code
	}
	first := compileValue(n.first)
	type right struct {
		x      valueCode
		negate bool
	}
	var rights []right
	for _, l := range n.links {
		rights = append(rights, right{compileValue(l.x), l.op[0] == '!'})
	}
	return func(e *Env) (result bool, err error) {
		if err := e.spend(len(rights)); err != nil {
			return false, err
		}
		left, err := first(e)
		for i, right := range rights {
			if err != nil {
				return false, err
			}
			if i > 0 {
				left = booleanOf(result)
			}
			var v value
			if v, err = right.x(e); err == nil {
				err = e.spendEqual(left, v)
			}
			result = equal(left, v) != right.negate
		}
		return result && err == nil, err
	}
}

// compileIsNull compiles the comparison of val() with null, which asks whether there is
// data and needs no leaf, however long that is. It returns nil for others.
func compileIsNull(n *chain) booleanCode {
	if len(n.links) != 1 {
		return nil
	}
	x, null := n.first, n.links[0].x
	if isNull(x) {
		x, null = null, x
	}
	asked, ok := x.(*call)
	if !ok || !isNull(null) {
		return nil
	}
	m, ok := asked.callee.(*member)
	if !ok || m.name != "val" {
		return nil
	}
	exists := looking(compileRuleSnapshot(m.target), ruleSnapshot.exists)
	want := n.links[0].op[0] == '!'
	return func(e *Env) (bool, error) {
		if err := e.spend(1); err != nil {
			return false, err
		}
		found, err := exists(e)
		return err == nil && found == want, err
	}
}

// isNull reports whether a node is the literal null.
func isNull(n node) bool {
	l, ok := n.(*literal)
	return ok && l.leaf.IsNull()
}

// spendEqual charges for the question whether two values are equal, if they are long
// strings of the same length.
func (e *Env) spendEqual(a, b value) error {
	bytes := len(a.leaf.Text())
	if bytes < 1<<10 || len(b.leaf.Text()) != bytes {
		return nil
	}
	return e.Charge(bytes >> 10 * int(equalled))
}

// compileOrder compiles < <= > and >=, of which types allow only one in a row.
func compileOrder(n *chain) booleanCode {
	op := n.links[0].op
	left, right := compileValue(n.first), compileValue(n.links[0].x)
	fail := failAt(n, "The operands of "+op+" are not two numbers or two strings.")
	return func(e *Env) (bool, error) {
		if err := e.spend(1); err != nil {
			return false, err
		}
		a, err := left(e)
		if err != nil {
			return false, err
		}
		b, err := right(e)
		if err != nil {
			return false, err
		}
		if err := e.Charge(min(len(a.leaf.Text()), len(b.leaf.Text())) * int(scanned) >> 10); err != nil {
			return false, err
		}
		c, comparable, ok := order(a, b)
		if !ok {
			return false, fail
		}
		less := op[0] == '<'
		return comparable && (c < 0 && less || c > 0 && !less || c == 0 && len(op) == 2), nil
	}
}

// compileValue compiles a node of any type as a value.
func compileValue(n node) valueCode {
	switch n.at().typ {
	case TypeBoolean:
		x := compileBoolean(n)
		return func(e *Env) (value, error) {
			b, err := x(e)
			return booleanOf(b), err
		}
	case TypeSnapshot, TypeMethod, TypeRegex, TypeQuery:
		// A branch of ?: may be one, and the types still allow == behind it.
		fail := failAt(n, "This is not a value.")
		return func(*Env) (value, error) { return value{}, fail }
	}
	switch n := n.(type) {
	case *literal:
		v := leafOf(n.leaf)
		return func(*Env) (value, error) { return v, nil }
	case *variable:
		return compileVariable(n)
	case *unary:
		return compileMinus(n)
	case *chain:
		return compileArithmetic(n)
	case *ternary:
		return compileTernary(n)
	case *member:
		return compileMember(n)
	case *call:
		return compileValueCall(n)
	}
	panic("not a value")
}

func compileVariable(v *variable) valueCode {
	switch v.name {
	case "now":
		return func(e *Env) (value, error) {
			e.UsedNow = true
			return integerOf(e.NowMillis), nil
		}
	case "auth":
		return func(e *Env) (value, error) { return claimOf(e.Auth), nil }
	}
	index := v.index
	return func(e *Env) (value, error) {
		key := e.Wildcards[index]
		if e.Drawn != "" && key == e.Drawn {
			e.UsedDrawn = true
		}
		return textOf(key), nil
	}
}

func compileMinus(n *unary) valueCode {
	x := compileValue(n.x)
	fail := failAt(n, "The operand of - is not a number.")
	return func(e *Env) (value, error) {
		v, err := x(e)
		if err != nil {
			return v, err
		}
		if !v.isNumber() {
			return v, fail
		}
		return calculate('-', integerOf(0), v), e.spend(1)
	}
}

func compileTernary(n *ternary) valueCode {
	cond, yes, no := compileBoolean(n.cond), compileValue(n.yes), compileValue(n.no)
	return func(e *Env) (value, error) {
		b, err := cond(e)
		switch {
		case err != nil:
			return value{}, err
		case b:
			return yes(e)
		}
		return no(e)
	}
}

// compileArithmetic compiles + - * / and %.
func compileArithmetic(n *chain) valueCode {
	first := compileValue(n.first)
	type right struct {
		op   byte
		x    valueCode
		fail *Failure
	}
	var rights []right
	for _, l := range n.links {
		rights = append(rights, right{l.op[0], compileValue(l.x), failAt(l.x, "An operand of "+l.op+" does not fit.")})
	}
	return func(e *Env) (value, error) {
		left, err := first(e)
		for _, right := range rights {
			if err != nil {
				return left, err
			}
			var v value
			if v, err = right.x(e); err != nil {
				return left, err
			}
			left, err = e.apply(right.op, left, v, right.fail)
		}
		return left, err
	}
}

// apply is one arithmetic operator.
func (e *Env) apply(op byte, a, b value, fail *Failure) (value, error) {
	if a.isNumber() && b.isNumber() {
		return calculate(op, a, b), e.spend(1)
	}
	fits := func(v value) bool { return v.isNumber() || v.isText() }
	if op != '+' || !fits(a) || !fits(b) {
		return value{}, fail
	}
	bytes := len(a.leaf.Text()) + len(b.leaf.Text())
	if bytes > MaxStringBytes {
		return value{}, tooLong(fail)
	}
	if err := e.spendText(bytes, made); err != nil {
		return value{}, err
	}
	return textOf(a.text() + b.text()), nil
}

// tooLong is the failure of a string that would be longer than allowed.
func tooLong(at *Failure) *Failure {
	return &Failure{Offset: at.Offset, Message: "A string is too long.", OverBudget: true}
}

// compileRuleSnapshot compiles a node whose value is a rule snapshot.
func compileRuleSnapshot(n node) snapshotCode {
	switch n := n.(type) {
	case *variable:
		switch n.name {
		case "root":
			return func(e *Env) (ruleSnapshot, error) { return ruleSnapshot{data: e.Before}, nil }
		case "data":
			return func(e *Env) (ruleSnapshot, error) { return ruleSnapshot{data: e.Before, path: e.Path}, nil }
		}
		return func(e *Env) (ruleSnapshot, error) { return ruleSnapshot{data: e.After, path: e.Path}, nil }
	case *ternary:
		cond, yes, no := compileBoolean(n.cond), compileRuleSnapshot(n.yes), compileRuleSnapshot(n.no)
		return func(e *Env) (ruleSnapshot, error) {
			b, err := cond(e)
			switch {
			case err != nil:
				return ruleSnapshot{}, err
			case b:
				return yes(e)
			}
			return no(e)
		}
	case *call:
		m := n.callee.(*member)
		if m.name == "parent" {
			return compileParent(n, compileRuleSnapshot(m.target))
		}
		return compileChild(n, compileRuleSnapshot(m.target))
	}
	panic("not a rule snapshot")
}

func compileParent(n *call, target snapshotCode) snapshotCode {
	fail := failAt(n, "The root has no parent.")
	return func(e *Env) (ruleSnapshot, error) {
		s, err := target(e)
		if err != nil {
			return s, err
		}
		s, ok := s.parent()
		if !ok {
			return s, fail
		}
		return s, e.spend(1)
	}
}

// compileChild compiles child(). A literal path is parsed once.
func compileChild(n *call, target snapshotCode) snapshotCode {
	if l, ok := n.args[0].(*literal); ok {
		if rel, err := tree.ParsePath(l.leaf.Text()); err == nil {
			return func(e *Env) (ruleSnapshot, error) {
				s, err := target(e)
				if err != nil {
					return s, err
				}
				return s.join(rel), e.spend(1)
			}
		}
	}
	path := compileText(n.args[0])
	return func(e *Env) (ruleSnapshot, error) {
		s, err := target(e)
		if err != nil {
			return s, err
		}
		text, err := path(e)
		if err != nil {
			return s, err
		}
		if err := e.spendText(len(text), parsed); err != nil {
			return s, err
		}
		return s.child(text), nil
	}
}
