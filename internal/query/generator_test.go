package query_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// A generator makes up values, keys and queries. They are few and near each
// other, so that they meet.
type generator struct{ *rand.Rand }

func pick[T any](g generator, choices ...T) T { return choices[g.IntN(len(choices))] }

func (g generator) leaf() tree.Leaf {
	switch g.IntN(8) {
	case 0:
		return tree.Leaf{}
	case 1:
		return tree.BooleanLeaf(g.IntN(2) == 0)
	case 2, 3, 4:
		return g.number()
	default:
		return tree.StringLeaf(g.text())
	}
}

// number returns a number, often one near those that a double cannot hold.
func (g generator) number() tree.Leaf {
	near := int64(g.IntN(5) - 2)
	switch g.IntN(7) {
	case 0:
		return tree.IntegerLeaf(near)
	case 1:
		return tree.IntegerLeaf(pick[int64](g, 1<<53, -1<<53) + near)
	case 2: // wraps around to the other end of the integers, too
		return tree.IntegerLeaf(pick[int64](g, math.MaxInt64, math.MinInt64, math.MaxInt64-1023, math.MinInt64+1024, 1<<62, -1<<62) + near)
	case 3:
		return tree.DoubleLeaf(pick(g, 1.0, -1) * pick(g, 0.5, 1<<53, 1<<53+2, 1<<62, 1<<63, 1<<63-1024, 1<<63+2048, 1e300))
	case 4:
		return tree.DoubleLeaf(pick(g, 5e-324, -5e-324, math.MaxFloat64, -math.MaxFloat64, 0.1, -0.1, math.Copysign(0, -1)))
	case 5:
		return tree.IntegerLeaf(int64(g.Uint64()) >> g.IntN(64))
	}
	for {
		if v := math.Float64frombits(g.Uint64()); !math.IsNaN(v) && !math.IsInf(v, 0) {
			return tree.DoubleLeaf(v)
		}
	}
}

// text returns a short string, or one around the length at which index values
// cut them.
func (g generator) text() string {
	s := g.shortText()
	if g.IntN(4) > 0 {
		return s
	}
	filler := pick(g, "x", "\x00", "😀", "\uffee")
	n := (query.MaxIndexedText + g.IntN(7) - 3 - g.IntN(2)*len(s)) / len(filler)
	return strings.Repeat(filler, n) + s
}

// longText returns a string of which an index value holds the beginning, most
// often the same.
func (g generator) longText() tree.Leaf {
	return tree.StringLeaf(strings.Repeat("x", query.MaxIndexedText) + pick(g, "", "a", "b", g.shortText()))
}

func (g generator) shortText() string {
	alphabet := []rune("\x00\x01a aAz\x7fé\ud7ff\ue000\uf8ff\uffff😀\U0010ffff")
	text := make([]rune, g.IntN(4))
	for i := range text {
		text[i] = alphabet[g.IntN(len(alphabet))]
	}
	return string(text)
}

// key returns a valid key.
func (g generator) key() string {
	for {
		key := pick(g, "7", "07", "007", "-7", "0", "-0", "00", "000", "-00", "8", "2147483647", "2147483648", "a", "a ", "b", g.shortText())
		if tree.CheckKey(key) == nil {
			return key
		}
	}
}

func (g generator) position() query.Position {
	value := query.LeafValue(g.leaf())
	if g.IntN(10) == 0 {
		value = query.ObjectValue()
	}
	return query.Position{Value: value, Key: g.key()}
}

// bound returns a bound for an order that is not by key.
func (g generator) bound() query.Bound {
	if g.IntN(4) == 0 {
		return query.Bound{}
	}
	b := query.Bound{Set: true, Value: g.leaf(), Exclusive: g.IntN(2) == 0}
	if g.IntN(2) == 0 {
		b.Key = g.key()
	}
	return b
}

// boundIn returns a bound for the order by value, often at a child of n.
func (g generator) boundIn(n tree.Node) query.Bound {
	b := g.bound()
	at := g.IntN(2 * (1 + n.Len()))
	for key, child := range n.Children() {
		if at--; at != 0 || !b.Set || child.IsObject() {
			continue
		}
		b.Value = child.Leaf()
		if b.Key != "" {
			b.Key = key
		}
	}
	return b
}

// keyBound returns a bound for the order by key.
func (g generator) keyBound() query.Bound {
	if g.IntN(4) == 0 {
		return query.Bound{}
	}
	text := pick(g, g.key(), g.shortText(), g.key()+g.shortText(), g.key()+"/.")
	return query.Bound{Set: true, Value: tree.StringLeaf(text), Exclusive: g.IntN(2) == 0}
}

// children returns an object of leaves and objects, or nothing.
func (g generator) children(t *testing.T, leaf func() tree.Leaf) tree.Node {
	values := map[string]string{}
	for range g.IntN(20) {
		value := string(tree.AppendLeaf(nil, leaf()))
		values[g.key()] = pick(g, value, value, value, `{"a":1}`)
	}
	body := []byte{'{'}
	for key, value := range values {
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(tree.AppendString(body, key), ':'), value...)
	}
	return decode(t, string(append(body, '}')))
}
