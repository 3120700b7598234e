package tree

import (
	"cmp"
	"math"
	"math/big"
	"strings"
)

// A Kind is the type of a node or leaf. The kinds are in the order in which
// values of different types sort, numbers being of one type.
type Kind uint8

// The kinds of nodes. A Null node holds no data.
const (
	Null Kind = iota
	Boolean
	Integer
	Double
	String
	Object
	serverTime             // {".sv":"timestamp"}; once it is resolved, the time of its slab
	serverIncrementInteger // {".sv":{"increment":n}}, n an integer
	serverIncrementDouble  // the same, n a double
)

// String returns the name of the kind.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Boolean:
		return "boolean"
	case Integer:
		return "integer"
	case Double:
		return "double"
	case String:
		return "string"
	case Object:
		return "object"
	default:
		return "server value"
	}
}

// A Leaf is a value without children: null, a boolean, a number or a string.
// Priorities are leaves too, of which booleans are not allowed. The zero Leaf
// is null.
type Leaf struct {
	kind Kind
	bits uint64 // 0 or 1, the int64, or the bits of the float64
	text string
}

// BooleanLeaf returns the leaf that holds b.
func BooleanLeaf(b bool) Leaf {
	if b {
		return Leaf{kind: Boolean, bits: 1}
	}
	return Leaf{kind: Boolean}
}

// IntegerLeaf returns the leaf that holds v.
func IntegerLeaf(v int64) Leaf { return Leaf{kind: Integer, bits: uint64(v)} }

// DoubleLeaf returns the leaf that holds v, which must be finite. An integral v
// below 2^53 in size becomes an integer.
func DoubleLeaf(v float64) Leaf {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return IntegerLeaf(int64(v))
	}
	return Leaf{kind: Double, bits: math.Float64bits(v)}
}

// StringLeaf returns the leaf that holds s, which must be valid UTF-8.
func StringLeaf(s string) Leaf { return Leaf{kind: String, text: s} }

// Kind returns the leaf's kind; it is never Object.
func (l Leaf) Kind() Kind { return l.kind }

// IsNull reports whether the leaf holds nothing.
func (l Leaf) IsNull() bool { return l.kind == Null }

// IsNumber reports whether the leaf is an integer or a double.
func (l Leaf) IsNumber() bool { return l.kind == Integer || l.kind == Double }

// Bool returns the value of a Boolean.
func (l Leaf) Bool() bool { return l.bits != 0 }

// Int returns the value of an Integer.
func (l Leaf) Int() int64 { return int64(l.bits) }

// Float returns the value of a number, rounded to a double.
func (l Leaf) Float() float64 {
	if l.kind == Integer {
		return float64(int64(l.bits))
	}
	return math.Float64frombits(l.bits)
}

// Text returns the value of a String.
func (l Leaf) Text() string { return l.text }

// Clone returns a copy of l that keeps nothing alive that l was read from: the text of
// a leaf is a part of that of all that was decoded with it.
func (l Leaf) Clone() Leaf {
	l.text = strings.Clone(l.text)
	return l
}

// CompareLeaves orders leaves as queries and priorities do: null, false, true,
// numbers by value, strings by CompareStrings. Integers and doubles compare by
// their exact values.
func CompareLeaves(a, b Leaf) int {
	if c := cmp.Compare(a.rank(), b.rank()); c != 0 {
		return c
	}
	switch a.kind {
	case Boolean:
		return cmp.Compare(a.bits, b.bits)
	case Integer, Double:
		return compareNumbers(a, b)
	case String:
		return CompareStrings(a.text, b.text)
	default:
		return 0
	}
}

// rank gives integers and doubles one place in the order of kinds.
func (l Leaf) rank() Kind {
	if l.kind == Double {
		return Integer
	}
	return l.kind
}

func compareNumbers(a, b Leaf) int {
	switch {
	case a.kind == Integer && b.kind == Integer:
		return cmp.Compare(a.Int(), b.Int())
	case a.kind == Double && b.kind == Double:
		return cmp.Compare(a.Float(), b.Float())
	case a.kind == Double:
		return -compareNumbers(b, a)
	}
	// An integer against a double: rounding could make them look equal only
	// where the doubles are the same, so the slow exact way is rare.
	if c := cmp.Compare(a.Float(), b.Float()); c != 0 {
		return c
	}
	exact := new(big.Float).SetInt64(a.Int()) // 64 bits of precision: exact
	return exact.Cmp(big.NewFloat(b.Float()))
}

// maxIncrement is half of what lies between the two largest doubles. The sum with
// an increment below it is never out of range: it is rounded back to the largest.
// Larger ones are refused whatever they are added to, because who may not read
// that would learn from a refusal how large it is.
const maxIncrement = 0x1p970

// increment returns the sum that the server value {"increment": by} gives when
// old is in its place: exact while it fits an int64, by alone when old is not a
// number.
func increment(old, by Leaf) Leaf {
	if !old.IsNumber() {
		return by
	}
	if old.kind == Integer && by.kind == Integer {
		if sum := old.Int() + by.Int(); (sum > old.Int()) == (by.Int() > 0) {
			return IntegerLeaf(sum)
		}
	}
	return DoubleLeaf(old.Float() + by.Float())
}
