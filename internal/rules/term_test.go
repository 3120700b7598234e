package rules_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// This file makes up expressions. A term is the text of an expression together
// with its meaning, which does not come from the text: so the parser is under
// test, too.

type term struct {
	text string
	// binds says how strongly the outermost operator binds, from ?: to operands.
	binds int
	eval  func(*world) (any, error)
}

const (
	bindsTernary = iota
	bindsOr
	bindsAnd
	bindsEquality
	bindsOrder
	bindsSum
	bindsProduct
	bindsUnary
	bindsMember
)

// A termMaker makes terms for one place in a document.
type termMaker struct {
	*rand.Rand
	kind      string // of the rule: read, write, validate
	wildcards []string
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// in returns the text of t where something that binds less would need
// parentheses. Sometimes there are some anyway.
func (m *termMaker) in(t *term, binds int) string {
	if t.binds < binds || m.IntN(8) == 0 {
		return pick(m.Rand, "(", "( ") + t.text + ")"
	}
	return t.text
}

func constant(text string, v any) *term {
	return &term{text, bindsMember, func(*world) (any, error) { return v, nil }}
}

// both evaluates two terms in order.
func both(a, b *term, f func(x, y any) (any, error)) func(*world) (any, error) {
	return func(w *world) (any, error) {
		x, err := a.eval(w)
		if err != nil {
			return nil, err
		}
		y, err := b.eval(w)
		if err != nil {
			return nil, err
		}
		return f(x, y)
	}
}

// binary makes a term of an operator that binds to the left.
func (m *termMaker) binary(op string, binds int, a, b *term, f func(x, y any) (any, error)) *term {
	space := pick(m.Rand, " ", " ", "\n")
	text := m.in(a, binds) + space + op + space + m.in(b, binds+1)
	return &term{text, binds, both(a, b, f)}
}

func (m *termMaker) boolean(depth int) *term {
	if depth == 0 {
		b := m.IntN(2) == 0
		return constant(strconv.FormatBool(b), b)
	}
	switch m.IntN(9) {
	case 0, 1:
		return m.logical(depth)
	case 2:
		x := m.boolean(depth - 1)
		return &term{"!" + m.in(x, bindsUnary), bindsUnary, func(w *world) (any, error) {
			v, err := x.eval(w)
			return v != true, err
		}}
	case 3:
		return m.ternary(m.boolean, depth)
	case 4:
		negate := m.IntN(2) == 0
		op := pick(m.Rand, "==", "===")
		if negate {
			op = "!" + op[1:]
		}
		return m.binary(op, bindsEquality, m.anything(depth-1), m.anything(depth-1), func(x, y any) (any, error) {
			return same(x, y) != negate, nil
		})
	case 5:
		return m.comparison(depth)
	case 6:
		return m.textTest(depth)
	}
	return m.snapshotTest(depth)
}

// same is ==: objects equal nothing.
func same(x, y any) bool {
	for _, v := range []any{x, y} {
		if _, object := v.(map[string]any); object {
			return false
		}
	}
	return x == y
}

func (m *termMaker) logical(depth int) *term {
	a, b := m.boolean(depth-1), m.boolean(depth-1)
	or := m.IntN(2) == 0
	op, binds := "&&", bindsAnd
	if or {
		op, binds = "||", bindsOr
	}
	t := m.binary(op, binds, a, b, nil)
	t.eval = func(w *world) (any, error) {
		if v, err := a.eval(w); err != nil || v == or {
			return v, err
		}
		return b.eval(w)
	}
	return t
}

func (m *termMaker) ternary(branch func(int) *term, depth int) *term {
	c, a, b := m.boolean(depth-1), branch(depth-1), branch(depth-1)
	text := m.in(c, bindsOr) + " ? " + m.in(a, bindsTernary) + " : " + m.in(b, bindsTernary)
	return &term{text, bindsTernary, func(w *world) (any, error) {
		v, err := c.eval(w)
		switch {
		case err != nil:
			return nil, err
		case v == true:
			return a.eval(w)
		}
		return b.eval(w)
	}}
}

func (m *termMaker) comparison(depth int) *term {
	op := pick(m.Rand, "<", "<=", ">", ">=")
	return m.binary(op, bindsOrder, m.ordered(depth-1), m.ordered(depth-1), func(x, y any) (any, error) {
		less, equal := false, false
		switch x := x.(type) {
		case float64:
			y, ok := y.(float64)
			if !ok {
				return nil, errFails
			}
			if math.IsNaN(x) || math.IsNaN(y) {
				return false, nil
			}
			less, equal = x < y, x == y
		case string:
			y, ok := y.(string)
			if !ok {
				return nil, errFails
			}
			less, equal = x < y, x == y
		default:
			return nil, errFails
		}
		switch op {
		case "<":
			return less, nil
		case "<=":
			return less || equal, nil
		case ">":
			return !less && !equal, nil
		}
		return !less, nil
	})
}

// textTest makes a call of a string method.
func (m *termMaker) textTest(depth int) *term {
	name := pick(m.Rand, "contains", "beginsWith", "endsWith")
	s, part := m.textual(depth-1), m.textual(depth-1)
	text := fmt.Sprintf("%s.%s(%s)", m.in(s, bindsMember), name, part.text)
	return &term{text, bindsMember, both(s, part, func(x, y any) (any, error) {
		s, ok1 := x.(string)
		part, ok2 := y.(string)
		if !ok1 || !ok2 {
			return nil, errFails
		}
		switch name {
		case "contains":
			return strings.Contains(s, part), nil
		case "beginsWith":
			return strings.HasPrefix(s, part), nil
		}
		return strings.HasSuffix(s, part), nil
	})}
}

// snapshotTest makes a call of a snapshot method that returns a boolean.
func (m *termMaker) snapshotTest(depth int) *term {
	s := m.snapshot(depth - 1)
	if m.IntN(3) == 0 {
		return m.hasChildren(s, depth)
	}
	name := pick(m.Rand, "exists", "hasChildren", "isString", "isNumber", "isBoolean")
	return m.method(s, name, func(s snapshot) any {
		v := s.value()
		switch name {
		case "exists":
			return v != nil
		case "isString":
			_, ok := v.(string)
			return ok
		case "isNumber":
			_, ok := v.(float64)
			return ok
		case "isBoolean":
			_, ok := v.(bool)
			return ok
		}
		_, ok := v.(map[string]any)
		return ok
	})
}

// method makes a call without arguments on a snapshot.
func (m *termMaker) method(s *term, name string, f func(snapshot) any) *term {
	text := m.in(s, bindsMember) + pick(m.Rand, "."+name, "['"+name+"']") + "()"
	return &term{text, bindsMember, func(w *world) (any, error) {
		v, err := s.eval(w)
		if err != nil {
			return nil, err
		}
		return f(v.(snapshot)), nil
	}}
}

// hasChildren makes hasChild(a) or hasChildren([a, b]).
func (m *termMaker) hasChildren(s *term, depth int) *term {
	a, b := m.textual(depth-1), m.textual(depth-1)
	text := m.in(s, bindsMember) + ".hasChildren([" + a.text + ", " + b.text + "])"
	names := []*term{a, b}
	if m.IntN(2) == 0 {
		text, names = m.in(s, bindsMember)+".hasChild("+a.text+")", names[:1]
	}
	return &term{text, bindsMember, func(w *world) (any, error) {
		at, err := s.eval(w)
		if err != nil {
			return nil, err
		}
		all := true
		for _, name := range names {
			key, err := name.eval(w)
			if err != nil {
				return nil, err
			}
			k, ok := key.(string)
			if !ok {
				return nil, errFails
			}
			all = all && at.(snapshot).child(k).node() != nil
		}
		return all, nil
	}}
}
