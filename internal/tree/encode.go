package tree

import (
	"io"
	"math"
	"strconv"
)

// A Form is one of the two ways to print a node.
type Form uint8

const (
	// Plain is what an ordinary read shows: arrays where the rule allows them,
	// no priorities.
	Plain Form = iota
	// Export shows priorities, and every object as an object.
	Export
)

// AppendJSON appends n as compact JSON, null for no data.
func AppendJSON(dst []byte, n Node, form Form) []byte {
	if n.IsNull() {
		return append(dst, "null"...)
	}
	e := encoder{slab: n.slab, form: form, dst: dst, limit: math.MaxInt}
	e.cell(n.cell())
	return e.dst
}

// Traits are what plain text leaves out of a node, or shows in another shape.
type Traits struct {
	Priorities bool // some node has a priority
	Arrays     bool // some node prints as an array
}

// AppendWithin appends n as compact JSON unless that takes more than limit
// bytes, and reports whether it did. The traits are those of the nodes that
// were looked at: of all of them when it did.
func AppendWithin(dst []byte, n Node, form Form, limit int) ([]byte, Traits, bool) {
	return AppendNoting(dst, n, form, limit, nil)
}

// AppendNoting is AppendWithin that also appends to times, unless that is nil, where
// in the result the timestamps of n begin. If it does not append n they mean nothing.
func AppendNoting(dst []byte, n Node, form Form, limit int, times *[]int) ([]byte, Traits, bool) {
	e := encoder{slab: n.slab, form: form, dst: dst, limit: len(dst) + limit, times: times}
	e.cell(n.cell())
	if len(e.dst) > e.limit {
		return dst, e.traits, false
	}
	return e.dst, e.traits, true
}

// AppendHead appends the first bytes of the text of n, at most limit, and reports whether they
// are all. It looks at little more of n than it appends.
func AppendHead(dst []byte, n Node, form Form, limit int) ([]byte, bool) {
	e := encoder{slab: n.slab, form: form, dst: dst, limit: len(dst) + limit}
	e.cell(n.cell())
	if len(e.dst) > e.limit {
		return e.dst[:e.limit], false
	}
	return e.dst, true
}

// flushBytes is how much PrintJSON gathers before it writes.
const flushBytes = 32 << 10

// PrintJSON writes n as compact JSON, in pieces.
func PrintJSON(w io.Writer, n Node, form Form) error {
	if n.IsNull() {
		_, err := io.WriteString(w, "null")
		return err
	}
	e := encoder{slab: n.slab, form: form, limit: math.MaxInt, w: w}
	e.cell(n.cell())
	e.flush()
	return e.err
}

// An encoder appends nodes of one slab. It gives up, at some point behind the
// limit, without saying so: the caller looks at the length.
type encoder struct {
	slab   *slab
	form   Form
	dst    []byte
	limit  int
	traits Traits
	times  *[]int // where timestamps begin is noted here, unless it is nil

	w   io.Writer // of PrintJSON, else nil
	err error     // of w
}

// flush writes what was appended.
func (e *encoder) flush() {
	if e.err != nil {
		return
	}
	_, e.err = e.w.Write(e.dst)
	e.dst = e.dst[:0]
}

// flushFull is flush once as much was appended as PrintJSON gathers.
func (e *encoder) flushFull() {
	if e.w != nil && len(e.dst) > flushBytes {
		e.flush()
	}
}

func (e *encoder) cell(c cell) {
	if c.priority {
		e.traits.Priorities = true
	}
	array := c.kind == Object && e.slab.isArray(c)
	if array {
		e.traits.Arrays = true
	}
	switch {
	case array && e.form == Plain:
		e.array(c)
	case c.kind == Object:
		e.object(c)
	case c.priority && e.form == Export:
		e.dst = append(e.dst, `{".value":`...)
		e.note(c)
		e.dst = AppendLeaf(e.dst, e.slab.leaf(c))
		e.dst = append(e.dst, `,".priority":`...)
		e.note(e.slab.cells[c.first()])
		e.dst = AppendLeaf(e.dst, e.slab.priority(c))
		e.dst = append(e.dst, '}')
	default:
		e.note(c)
		e.dst = AppendLeaf(e.dst, e.slab.leaf(c))
	}
}

// note notes where the next leaf begins if it is a timestamp.
func (e *encoder) note(c cell) {
	if c.kind == serverTime && e.times != nil {
		*e.times = append(*e.times, len(e.dst))
	}
}

func (e *encoder) object(c cell) {
	e.dst = append(e.dst, '{')
	if c.priority && e.form == Export {
		e.dst = append(e.dst, `".priority":`...)
		e.note(e.slab.cells[c.first()])
		e.dst = append(AppendLeaf(e.dst, e.slab.priority(c)), ',')
	}
	most := e.limit
	if e.w != nil {
		most = min(most, flushBytes)
	}
	for children := e.slab.children(c); len(children) > 0; {
		if len(e.dst) > e.limit || e.err != nil {
			return
		}
		e.flushFull()
		e.dst, children = e.slab.appendLeaves(e.dst, children, most)
		if len(children) > 0 && !children[0].isPlainLeaf() {
			e.dst = e.slab.appendKey(e.dst, children[0])
			e.cell(children[0])
			e.dst = append(e.dst, ',')
			children = children[1:]
		}
	}
	e.dst[len(e.dst)-1] = '}'
}

// isPlainLeaf reports whether c is a leaf without a priority, and no server value.
func (c cell) isPlainLeaf() bool { return c.kind < Object && !c.priority }

// appendLeaves appends the first children of an object, each with its key and a comma, up to
// one that is no plain leaf, or until there are more than most bytes. It returns the others.
//
// It is most of what printing takes, and is twice as fast as with a function for each part:
// dst stays in registers.
func (s *slab) appendLeaves(dst []byte, children []cell, most int) ([]byte, []cell) {
	text, literal := s.text, s.literal
	for len(children) > 0 && len(dst) <= most {
		c := children[0]
		if !c.isPlainLeaf() {
			break
		}
		children = children[1:]
		if literal && c.keyLen != indexKey {
			dst = append(dst, '"')
			dst = append(dst, text[c.key:c.key+uint32(c.keyLen)]...)
			dst = append(dst, '"', ':')
		} else {
			dst = s.appendKey(dst, c)
		}
		switch {
		case c.kind == Integer:
			dst = strconv.AppendInt(dst, int64(c.bits), 10)
		case c.kind == String && literal:
			dst = append(dst, '"')
			dst = append(dst, text[c.first():c.first()+c.count()]...)
			dst = append(dst, '"')
		default:
			dst = AppendLeaf(dst, s.leaf(c))
		}
		dst = append(dst, ',')
	}
	return dst, children
}

// appendKey appends the key of a cell with its colon.
func (s *slab) appendKey(dst []byte, c cell) []byte {
	dst = append(dst, '"')
	if c.keyLen == indexKey {
		dst = strconv.AppendUint(dst, uint64(c.key), 10)
	} else {
		dst = appendEscaped(dst, s.key(c))
	}
	return append(dst, '"', ':')
}

func (e *encoder) array(c cell) {
	e.dst = append(e.dst, '[')
	next := uint32(0)
	for _, child := range e.slab.children(c) {
		if len(e.dst) > e.limit || e.err != nil {
			return
		}
		e.flushFull()
		for ; next < child.key; next++ {
			e.dst = append(e.dst, "null,"...)
		}
		e.cell(child)
		e.dst = append(e.dst, ',')
		next++
	}
	e.dst[len(e.dst)-1] = ']'
}

// AppendLeaf appends l as JSON; a server value that is not resolved as a client
// writes it.
func AppendLeaf(dst []byte, l Leaf) []byte {
	switch l.kind {
	case Boolean:
		return strconv.AppendBool(dst, l.Bool())
	case Integer:
		return strconv.AppendInt(dst, l.Int(), 10)
	case Double:
		return appendDouble(dst, l.Float())
	case String:
		return AppendString(dst, l.text)
	case serverTime:
		return append(dst, `{".sv":"timestamp"}`...)
	case serverIncrementInteger:
		return appendIncrement(dst, Leaf{kind: Integer, bits: l.bits})
	case serverIncrementDouble:
		return appendIncrement(dst, Leaf{kind: Double, bits: l.bits})
	}
	return append(dst, "null"...)
}

func appendIncrement(dst []byte, by Leaf) []byte {
	dst = AppendLeaf(append(dst, `{".sv":{"increment":`...), by)
	return append(dst, "}}"...)
}

// appendDouble appends the shortest text that reads back as v and is seen to be
// a double: one with a fraction as JavaScript prints it, an integral one (of
// 2^53 or more) always with an exponent.
func appendDouble(dst []byte, v float64) []byte {
	if size := math.Abs(v); size >= 1e-6 && v != math.Trunc(v) {
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, v, 'e', -1, 64)
	// Go writes at least two digits of exponent: e-07 becomes e-7.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// AppendString appends s as a JSON string. Only what JSON requires is escaped.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s)
	return append(dst, '"')
}

func appendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := range len(s) {
		if stringBytes[s[i]] != specialByte {
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscapedByte(dst, s[i])
		start = i + 1
	}
	return append(dst, s[start:]...)
}

func appendEscapedByte(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
