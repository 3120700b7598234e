package sdkhash

import (
	"math"
	"strconv"

	"github.com/livetree/livetree/internal/tree"
)

// A clientLeaf is a leaf, or a priority, as clients have it: all numbers are doubles.
type clientLeaf struct {
	kind   tree.Kind // Null, Boolean, Double or String
	number float64   // 1 for true
	text   string
}

// appendLeaf appends a leaf as it is hashed, spelled by a form.
func appendLeaf(dst []byte, l clientLeaf, f form) []byte {
	switch l.kind {
	case tree.Boolean:
		return strconv.AppendBool(append(dst, "boolean:"...), l.number != 0)
	case tree.Double:
		bits := math.Float64bits(l.number)
		if f == jsForm {
			bits = jsBits(l.number)
		}
		return appendHex(append(dst, "number:"...), bits)
	case tree.String:
		dst = append(dst, "string:"...)
		if f == quotedForm {
			return appendQuoted(dst, l.text)
		}
		return append(dst, l.text...)
	}
	return dst
}

// appendPriority appends what stands before a node with a priority.
func appendPriority(dst []byte, priority clientLeaf, f form) []byte {
	if priority.kind == tree.Null {
		return dst
	}
	dst = append(dst, "priority:"...)
	return append(appendLeaf(dst, priority, f), ':')
}

// A form is a way to spell leaves.
type form uint8

const (
	rightForm  form = iota
	jsForm          // numbers as the JavaScript SDK spells them
	quotedForm      // strings in quotes, as in ranges
)

// differs reports whether the JavaScript SDK spells l in a way of its own.
func (l clientLeaf) differs() bool {
	return l.kind == tree.Double && jsBits(l.number) != math.Float64bits(l.number)
}

// appendHex appends 16 lower-case hex digits.
func appendHex(dst []byte, bits uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, digits[bits>>shift&15])
	}
	return dst
}

// appendQuoted appends text in double quotes, in which only they and backslashes are
// escaped.
func appendQuoted(dst []byte, text string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(text) {
		if c := text[i]; c == '"' || c == '\\' {
			dst = append(append(dst, text[start:i]...), '\\')
			start = i
		}
	}
	return append(append(dst, text[start:]...), '"')
}

// clientLeafOf returns l as clients have it; server values must have been resolved.
func clientLeafOf(l tree.Leaf) clientLeaf {
	switch l.Kind() {
	case tree.Boolean:
		return booleanLeaf(l.Bool())
	case tree.Integer, tree.Double:
		return clientLeaf{kind: tree.Double, number: l.Float()}
	case tree.String:
		return clientLeaf{kind: tree.String, text: l.Text()}
	}
	return clientLeaf{}
}

func booleanLeaf(b bool) clientLeaf {
	if b {
		return clientLeaf{kind: tree.Boolean, number: 1}
	}
	return clientLeaf{kind: tree.Boolean}
}
