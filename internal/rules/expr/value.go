package expr

import (
	"math"

	"github.com/livetree/livetree/internal/tree"
)

// A value is what a part of an expression comes to, snapshots aside.
type value struct {
	kind valueKind
	leaf tree.Leaf // of a leaf
	node tree.Node // of an object that is a claim
}

type valueKind uint8

const (
	valueLeaf valueKind = iota // also null
	// valueNaN is a number that is none: the quotient of a division by zero, or
	// what is too large for a double.
	valueNaN
	// valueObject has children. It equals nothing, not even itself: nobody loads
	// two subtrees to compare them.
	valueObject
)

var nan = value{kind: valueNaN}

func leafOf(l tree.Leaf) value  { return value{leaf: l} }
func booleanOf(b bool) value    { return value{leaf: tree.BooleanLeaf(b)} }
func textOf(s string) value     { return value{leaf: tree.StringLeaf(s)} }
func integerOf(i int64) value   { return value{leaf: tree.IntegerLeaf(i)} }
func (v value) isText() bool    { return v.kind == valueLeaf && v.leaf.Kind() == tree.String }
func (v value) isInteger() bool { return v.kind == valueLeaf && v.leaf.Kind() == tree.Integer }
func (v value) isNumber() bool  { return v.kind == valueNaN || v.kind == valueLeaf && v.leaf.IsNumber() }

// claimOf returns the value of a node of auth.
func claimOf(n tree.Node) value {
	if n.IsObject() {
		return value{kind: valueObject, node: n}
	}
	return value{leaf: n.Leaf()}
}

// doubleOf returns a number. What is not finite is NaN: the live service knows
// no infinity, 1/0 is NaN there.
func doubleOf(f float64) value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nan
	}
	return value{leaf: tree.DoubleLeaf(f)}
}

// float returns a number as a double.
func (v value) float() float64 {
	if v.kind == valueNaN {
		return math.NaN()
	}
	return v.leaf.Float()
}

// text returns a number or a string as + joins it to a string. Numbers look as
// they do in answers.
func (v value) text() string {
	switch {
	case v.kind == valueNaN:
		return "NaN"
	case v.isText():
		return v.leaf.Text()
	}
	return string(tree.AppendLeaf(nil, v.leaf))
}

// equal is ==, which never converts: values of different types are not equal.
func equal(a, b value) bool {
	if a.isText() && b.isText() { // which may be long
		return a.leaf.Text() == b.leaf.Text()
	}
	return a.kind == valueLeaf && b.kind == valueLeaf && tree.CompareLeaves(a.leaf, b.leaf) == 0
}

// order compares two numbers or two strings; ok is false for anything else. NaN
// has no order: comparable is false.
func order(a, b value) (result int, comparable, ok bool) {
	switch {
	case a.isNumber() && b.isNumber():
		if a.kind == valueNaN || b.kind == valueNaN {
			return 0, false, true
		}
	case !a.isText() || !b.isText():
		return 0, false, false
	}
	return tree.CompareLeaves(a.leaf, b.leaf), true, true
}

// calculate is - * / and %, and + of numbers. Integers of 64 bits stay exact
// where the result is one; everything else is a double.
func calculate(op byte, a, b value) value {
	if a.isInteger() && b.isInteger() {
		if r, ok := calculateInteger(op, a.leaf.Int(), b.leaf.Int()); ok {
			return integerOf(r)
		}
	}
	x, y := a.float(), b.float()
	switch op {
	case '+':
		return doubleOf(x + y)
	case '-':
		return doubleOf(x - y)
	case '*':
		return doubleOf(x * y)
	case '/':
		return doubleOf(x / y)
	}
	return doubleOf(math.Mod(x, y)) // the sign is that of x
}

// calculateInteger reports false when the result is no integer of 64 bits.
func calculateInteger(op byte, x, y int64) (int64, bool) {
	switch op {
	case '+':
		r := x + y
		return r, (r > x) == (y > 0)
	case '-':
		r := x - y
		return r, (r < x) == (y > 0)
	case '*':
		if x == 0 || y == 0 {
			return 0, true
		}
		r := x * y
		return r, r/y == x && (x != -1 || y != math.MinInt64) && (y != -1 || x != math.MinInt64)
	}
	if y == 0 || x == math.MinInt64 && y == -1 {
		return 0, false
	}
	if op == '%' {
		return x % y, true
	}
	return x / y, x%y == 0
}

// length returns the number of UTF-16 code units in s, as JavaScript counts.
func length(s string) int64 {
	n := int64(0)
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0xF0:
			n += 2 // the lead byte of four
		case c < 0x80 || c >= 0xC0:
			n++
		}
	}
	return n
}
