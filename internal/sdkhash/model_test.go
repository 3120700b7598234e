package sdkhash_test

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/tree"
)

// modelHash is the hash of n by the description, with nothing clever.
func modelHash(n tree.Node, js bool) string {
	var text strings.Builder
	if p := n.Priority(); !p.IsNull() {
		text.WriteString("priority:" + modelLeaf(p, js) + ":")
	}
	if n.IsNull() {
		return ""
	}
	if !n.IsObject() {
		text.WriteString(modelLeaf(n.Leaf(), js))
		return sum(text.String())
	}
	type named struct {
		key  string
		node tree.Node
	}
	var children []named
	for key, child := range n.Children() {
		children = append(children, named{key, child})
	}
	slices.SortFunc(children, func(a, b named) int {
		p, q := a.node.Priority(), b.node.Priority()
		if p.IsNumber() && q.IsNumber() && p.Float() == q.Float() {
			return tree.CompareKeys(a.key, b.key)
		}
		if c := tree.CompareLeaves(p, q); c != 0 {
			return c
		}
		return tree.CompareKeys(a.key, b.key)
	})
	for _, child := range children {
		text.WriteString(":" + child.key + ":" + modelHash(child.node, js))
	}
	return sum(text.String())
}

func modelLeaf(l tree.Leaf, js bool) string {
	switch {
	case l.Kind() == tree.Boolean:
		return "boolean:" + strconv.FormatBool(l.Bool())
	case l.IsNumber() && js:
		return "number:" + jsNumber(l.Float())
	case l.IsNumber():
		return fmt.Sprintf("number:%016x", math.Float64bits(l.Float()))
	default:
		return "string:" + l.Text()
	}
}

func sum(text string) string {
	d := sha1.Sum([]byte(text))
	return base64.StdEncoding.EncodeToString(d[:])
}

// jsNumber is how the JavaScript SDK spells a number: step by step what it computes.
func jsNumber(v float64) string {
	sign, e, f := 0.0, 0.0, 0.0
	if math.Signbit(v) {
		sign = 1
	}
	if v != 0 {
		v = math.Abs(v)
		if v >= math.Pow(2, -1022) {
			ln := math.Min(math.Floor(math.Log(v)/math.Ln2), 1023)
			e = ln + 1023
			f = math.Floor(v*math.Pow(2, 52-ln) - math.Pow(2, 52) + 0.5)
		} else {
			f = math.Floor(v/math.Pow(2, -1074) + 0.5)
		}
	}
	var bits []byte
	push := func(x float64, count int) {
		for range count {
			if half := x / 2; half == math.Floor(half) { // also if it is infinite
				bits = append(bits, '0')
			} else {
				bits = append(bits, '1')
			}
			x = math.Floor(x / 2)
		}
	}
	push(f, 52)
	push(e, 11)
	push(sign, 1)
	slices.Reverse(bits)
	number, err := strconv.ParseUint(string(bits), 2, 64)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%016x", number)
}

// A generator makes up trees.
type generator struct {
	*rand.Rand
	keys []string // to choose from
}

func newGenerator(t testing.TB) generator {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return generator{rand.New(rand.NewPCG(seed, 1)), keys}
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// keys are some that sort around ".priority" and some that sort in odd ways.
var keys = []string{
	"0", "1", "2", "10", "07", "-1", "2147483648", "!", "!a", "-", "-OHxQ2bKz9fVtR4mWn7L", "-OHxQ2bKz9fVtR4mWn7M", ",", " ",
	"0a", ":", "A", "a", "aa", "b", "c", "priority", "é", "\uffee", "😀", "😀a", "\u2028", `"`, `\`, `a"b\c`, "~",
}

// node returns a node that is at most depth deep.
func (g generator) node(depth int) tree.Node {
	n, err := tree.DecodeBytes([]byte(g.text(depth)), tree.DecodeOptions{})
	if err != nil {
		panic(err)
	}
	return n
}

func (g generator) text(depth int) string {
	var priority string
	if g.IntN(4) == 0 {
		priority = `".priority":` + g.priority()
	}
	if depth == 0 || g.IntN(4) == 0 {
		if priority == "" {
			return g.leaf()
		}
		return `{".value":` + g.leaf() + `,` + priority + `}`
	}
	members := make([]string, 0, 8)
	if priority != "" {
		members = append(members, priority)
	}
	used := map[string]bool{}
	for range 1 + g.IntN(6) {
		if key := pick(g.Rand, g.keys...); !used[key] {
			used[key] = true
			members = append(members, string(tree.AppendString(nil, key))+":"+g.text(depth-1))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g generator) priority() string {
	if g.IntN(2) == 0 {
		return g.number()
	}
	return g.string()
}

func (g generator) leaf() string {
	switch g.IntN(5) {
	case 0:
		return pick(g.Rand, "true", "false")
	case 1, 2:
		return g.number()
	}
	return g.string()
}

func (g generator) string() string {
	return string(tree.AppendString(nil, pick(g.Rand, "", "a", "b", "1", "true", "😀", "\uffee", "\u2028\u2029", "a\x00b", "\n\t\"\\/", "é", ":", "string:a", "\x7f")))
}

func (g generator) number() string {
	if g.IntN(3) == 0 {
		return pick(g.Rand, "0", "1", "-1", "42", "9007199254740991", "9007199254740993", "-9223372036854775808", "9223372036854775807", "63.99999999999999")
	}
	return string(tree.AppendLeaf(nil, tree.DoubleLeaf(g.double())))
}

// double returns a double, mostly one that is near a power of two.
func (g generator) double() float64 {
	if g.IntN(4) == 0 {
		for {
			if v := math.Float64frombits(g.Uint64()); !math.IsNaN(v) && !math.IsInf(v, 0) {
				return v
			}
		}
	}
	exponent := g.IntN(60)
	if g.IntN(3) == 0 {
		exponent = g.IntN(2097) - 1074
	}
	bits := math.Float64bits(math.Ldexp(1, exponent)) + uint64(g.IntN(256)) - 128
	if v := math.Float64frombits(bits &^ (1 << 63)); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v * pick(g.Rand, 1.0, -1.0)
	}
	return math.MaxFloat64
}
