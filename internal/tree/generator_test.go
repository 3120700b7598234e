package tree_test

import (
	"math/rand/v2"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// A generator makes up requests. What it makes is small and repeats itself, so
// that requests meet in the same places, and is often wrong in a subtle way.
type generator struct{ *rand.Rand }

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// body returns the JSON text of a PUT, mostly a valid one.
func (g generator) body() string { return g.value(3) }

// value returns a JSON text that is at most depth deep.
func (g generator) value(depth int) string {
	n := g.IntN(20)
	switch {
	case n < 5 && depth > 0:
		return g.object(depth)
	case n < 7 && depth > 0:
		return g.array(depth)
	case n < 9 && depth > 0:
		return g.dotted(depth)
	case n == 9:
		return pick(g.Rand, "{}", "[]", "null", "[null]", "{ }")
	case n == 10:
		return g.serverValue()
	}
	return g.leaf()
}

// leaf returns a primitive.
func (g generator) leaf() string {
	switch g.IntN(5) {
	case 0:
		return pick(g.Rand, "true", "false", "null")
	case 1:
		return g.text()
	default:
		return randomNumber(g.Rand)
	}
}

// text returns a JSON string in one of its spellings.
func (g generator) text() string {
	return pick(g.Rand,
		`""`, `"a"`, `"timestamp"`, `"\u0061"`, `"\ud83d\ude00"`, `"😀"`, `"\/\b\f\n\r\t\"\\"`, `"\u0000"`, `"é"`,
		"\"\x7f\u2028\"", `"1"`, `"true"`, string(tree.AppendString(nil, randomText(g.Rand))),
		`"\ud83d"`, `"\udc00"`, `"\x"`, "\"\xff\"", "\"\x1f\"",
	)
}

func (g generator) object(depth int) string {
	var members []string
	for range g.IntN(5) {
		members = append(members, g.key()+g.space()+":"+g.space()+g.value(depth-1))
	}
	return "{" + g.space() + strings.Join(members, ",") + "}"
}

func (g generator) array(depth int) string {
	var elements []string
	for range g.IntN(4) {
		elements = append(elements, g.space()+g.value(depth-1))
	}
	return "[" + strings.Join(elements, ",") + g.space() + "]"
}

// dotted returns an object with .priority or .value, valid or not.
func (g generator) dotted(depth int) string {
	priority := `".priority":` + pick(g.Rand, g.leaf(), g.leaf(), g.leaf(), g.serverValue(), g.value(depth-1))
	value := `".value":` + pick(g.Rand, g.leaf(), g.leaf(), g.leaf(), g.serverValue(), g.value(depth-1))
	child := g.key() + ":" + g.value(depth-1)
	return "{" + pick(g.Rand,
		value, value+","+priority, priority+","+value, child+","+priority, priority+","+child, priority+","+child,
		priority, value+","+child, value+","+value, priority+","+priority+","+child, `".sv":"timestamp",`+child, `".foo":1`,
	) + "}"
}

// serverValue returns a placeholder, mostly a valid one.
func (g generator) serverValue() string {
	return pick(g.Rand,
		`{".sv":"timestamp"}`, `{".sv":"timestamp"}`, `{".sv":{"increment":1}}`, `{".sv":{"increment":-0.5}}`,
		`{".sv":{"increment":`+randomNumber(g.Rand)+`}}`, `{".sv":{"increment":`+g.leaf()+`}}`, `{".sv":"now"}`,
		`{".sv":{"increment":1,"increment":2}}`, `{".sv":{}}`, `{".sv":1}`, `{".sv":null}`, `{".sv":[]}`, `{ ".sv" : { "increment" : 2 } }`,
	)
}

// plainKey returns a valid key.
func (g generator) plainKey() string {
	return pick(g.Rand,
		"a", "a", "b", "b", "c", "0", "1", "2", "3", "4", "5", "6", "00", "01", "-0", "-1", "10", "2147483647", "2147483648",
		"é", "\uffff", "😀", " ", `"`, `\`, "a b", "-OHxQ2bKz9fVtR4mWn7L",
	)
}

// key returns the JSON text of a key, rarely an invalid one.
func (g generator) key() string {
	if g.IntN(60) == 0 {
		return pick(g.Rand, `""`, `"a/b"`, `"a.b"`, `"$"`, `"\u0000"`, `"\u007f"`, "\"\xff\"", `".value"`, `".priority"`)
	}
	if g.IntN(10) == 0 {
		return pick(g.Rand, `"\u0061"`, `"\u0030"`, `"\uD83D\uDE00"`)
	}
	return string(tree.AppendString(nil, g.plainKey()))
}

func (g generator) space() string { return pick(g.Rand, "", "", "", "", " ", "\n", "\t", "\r\n  ") }

// path returns the keys of a location, mostly a shallow one.
func (g generator) path() []string {
	if g.IntN(200) == 0 {
		return strings.Split(strings.Repeat("k/", 30+g.IntN(3))+"k", "/")
	}
	keys := make([]string, g.IntN(4))
	for i := range keys {
		keys[i] = g.plainKey()
	}
	return keys
}

// patch returns the body of a PATCH, mostly a valid one.
func (g generator) patch() string {
	if g.IntN(20) == 0 {
		return pick(g.Rand, "null", "{}", "[]", "[1]", "1", `"a"`, "{", g.body())
	}
	var members []string
	for range g.IntN(4) + 1 {
		name := strings.Join(g.path(), pick(g.Rand, "/", "/", "//"))
		name = pick(g.Rand, "", "", "/") + name + pick(g.Rand, "", "", "/")
		value := g.value(2)
		if g.IntN(5) == 0 {
			name, value = strings.TrimSuffix(name, "/")+"/.priority", pick(g.Rand, g.leaf(), g.serverValue())
		}
		members = append(members, string(tree.AppendString(nil, name))+":"+value)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// damage returns text with a few bytes changed.
func (g generator) damage(text string) string {
	b := []byte(text)
	for range 1 + g.IntN(3) {
		i := g.IntN(len(b) + 1)
		switch g.IntN(4) {
		case 0:
			b = b[:i]
		case 1:
			b = append(b[:i:i], b[min(i+1, len(b)):]...)
		case 2:
			j := min(i+g.IntN(10), len(b))
			b = append(b[:j:j], b[i:]...) // some of it twice
		default:
			const bytes = "{}[]\":,0123456789eE+-. \\/untrfalsxé\x00\x1f\x7f\xff\xed\xa0"
			b = append(append(b[:i:i], bytes[g.IntN(len(bytes))]), b[i:]...)
		}
	}
	return string(b)
}
