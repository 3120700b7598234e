package rules_test

import (
	"math"
	"strconv"
	"strings"
)

// This file makes up the parts of expressions that are values and snapshots.

// anything makes a term that == takes.
func (m *termMaker) anything(depth int) *term {
	switch m.IntN(6) {
	case 0:
		return constant("null", nil)
	case 1:
		return m.boolean(depth)
	}
	return m.ordered(depth)
}

// ordered makes a term that < and + take.
func (m *termMaker) ordered(depth int) *term {
	switch m.IntN(3) {
	case 0:
		return m.number(depth)
	case 1:
		return m.textual(depth)
	}
	return m.dynamic(depth)
}

// dynamic makes a term whose type is known only when it is there.
func (m *termMaker) dynamic(depth int) *term {
	switch {
	case m.IntN(3) == 0:
		path := pick(m.Rand, "uid", "n", "m.k", "m.none.x", "m", "yes", "none", "uid.x")
		text := "auth." + path
		if m.IntN(3) == 0 {
			text = "auth['" + strings.ReplaceAll(path, ".", "']['") + "']"
		}
		return &term{text, bindsMember, func(w *world) (any, error) {
			v := w.auth
			for _, key := range strings.Split(path, ".") {
				object, _ := v.(map[string]any)
				v = object[key]
			}
			return v, nil
		}}
	case m.IntN(4) == 0:
		return m.method(m.snapshot(depth-1), "getPriority", func(s snapshot) any { return s.priority() })
	}
	return m.method(m.snapshot(depth-1), "val", func(s snapshot) any { return s.value() })
}

func (m *termMaker) number(depth int) *term {
	if depth <= 0 {
		switch n := m.IntN(4); n {
		case 0:
			return &term{"now", bindsMember, func(w *world) (any, error) { return w.now, nil }}
		default:
			return constant(strconv.Itoa(n-1), float64(n-1))
		}
	}
	switch m.IntN(3) {
	case 0:
		x := m.numeric(depth - 1)
		return &term{"-" + m.in(x, bindsUnary), bindsUnary, func(w *world) (any, error) {
			v, err := x.eval(w)
			f, ok := v.(float64)
			if err == nil && !ok {
				err = errFails
			}
			return 0 - f, err
		}}
	case 1:
		s := m.textual(depth - 1)
		return &term{m.in(s, bindsMember) + ".length", bindsMember, func(w *world) (any, error) {
			v, err := s.eval(w)
			text, ok := v.(string)
			if err == nil && !ok {
				err = errFails
			}
			return float64(len(text)), err
		}}
	}
	op := pick(m.Rand, "-", "*", "/", "%")
	binds := bindsProduct
	if op == "-" {
		binds = bindsSum
	}
	return m.binary(op, binds, m.numeric(depth-1), m.numeric(depth-1), func(x, y any) (any, error) {
		a, ok1 := x.(float64)
		b, ok2 := y.(float64)
		if !ok1 || !ok2 {
			return nil, errFails
		}
		return arithmetic(op, a, b), nil
	})
}

func (m *termMaker) numeric(depth int) *term {
	if m.IntN(2) == 0 {
		return m.number(depth)
	}
	return m.dynamic(depth)
}

// arithmetic knows no infinity.
func arithmetic(op string, a, b float64) float64 {
	switch op {
	case "-":
		return a - b
	case "*":
		return a * b
	case "%":
		return math.Mod(a, b)
	}
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// textual makes a term that methods take for a string.
func (m *termMaker) textual(depth int) *term {
	switch n := m.IntN(8); {
	case n == 0 && depth > 0:
		return m.binary("+", bindsSum, m.text(depth-1), m.ordered(depth-1), join)
	case n == 1 && depth > 0:
		return m.binary("+", bindsSum, m.ordered(depth-1), m.text(depth-1), join)
	case n == 2 && depth > 0:
		return m.replaced(depth)
	case n == 3:
		return m.dynamic(depth)
	case n == 4 && depth > 0:
		return m.ternary(m.text, depth)
	}
	return m.text(depth)
}

// text makes a term that is a string.
func (m *termMaker) text(int) *term {
	if len(m.wildcards) > 0 && m.IntN(3) == 0 {
		name := pick(m.Rand, m.wildcards...)
		return &term{name, bindsMember, func(w *world) (any, error) { return w.wildcards[name], nil }}
	}
	s := pick(m.Rand, "a", "b", "ab", "", "a/b", "/b//", "1", "./a", "A")
	return constant(pick(m.Rand, "'"+s+"'", `"`+s+`"`), s)
}

func (m *termMaker) replaced(depth int) *term {
	s, old, with := m.textual(depth-1), m.text(0), m.text(0)
	if old.text == "''" || old.text == `""` {
		old = constant("'a'", "a")
	}
	text := m.in(s, bindsMember) + ".replace(" + old.text + ", " + with.text + ")"
	return &term{text, bindsMember, func(w *world) (any, error) {
		v, err := s.eval(w)
		text, ok := v.(string)
		if err == nil && !ok {
			err = errFails
		}
		if err != nil {
			return nil, err
		}
		x, _ := old.eval(w)
		y, _ := with.eval(w)
		return strings.Join(strings.Split(text, x.(string)), y.(string)), nil
	}}
}

// join is + with a string.
func join(x, y any) (any, error) {
	text := ""
	for _, v := range []any{x, y} {
		switch v := v.(type) {
		case string:
			text += v
		case float64:
			text += spell(v)
		default:
			return nil, errFails
		}
	}
	return text, nil
}

func spell(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatInt(int64(f), 10)
	}
	if math.Abs(f) < 1e-6 {
		return strings.Replace(strconv.FormatFloat(f, 'e', -1, 64), "e-0", "e-", 1)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func (m *termMaker) snapshot(depth int) *term {
	if depth > 0 {
		switch m.IntN(4) {
		case 0:
			return m.parent(m.snapshot(depth - 1))
		case 1, 2:
			return m.child(m.snapshot(depth-1), m.textual(depth-1))
		case 3:
			if m.IntN(3) == 0 {
				return m.ternary(m.snapshot, depth)
			}
		}
	}
	names := []string{"root", "data"}
	if m.kind != "read" {
		names = append(names, "newData", "newData")
	}
	name := pick(m.Rand, names...)
	return &term{name, bindsMember, func(w *world) (any, error) {
		switch name {
		case "root":
			return snapshot{w.before, nil}, nil
		case "data":
			return snapshot{w.before, w.path}, nil
		}
		return snapshot{w.after, w.path}, nil
	}}
}

func (m *termMaker) parent(s *term) *term {
	return &term{m.in(s, bindsMember) + ".parent()", bindsMember, func(w *world) (any, error) {
		v, err := s.eval(w)
		if err != nil {
			return nil, err
		}
		at := v.(snapshot)
		if len(at.path) == 0 {
			return nil, errFails
		}
		return snapshot{at.state, at.path[:len(at.path)-1]}, nil
	}}
}

func (m *termMaker) child(s, path *term) *term {
	text := m.in(s, bindsMember) + ".child(" + path.text + ")"
	return &term{text, bindsMember, both(s, path, func(x, y any) (any, error) {
		key, ok := y.(string)
		if !ok {
			return nil, errFails
		}
		return x.(snapshot).child(key), nil
	})}
}
