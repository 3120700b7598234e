package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// awkward keys are those that sort or split in surprising ways.
var awkward = []string{
	"7", "07", "007", "-0", "00", "0", "1", "2", "3", "-7", "2147483647", "2147483648", "-2147483648",
	"a", "b", "c", "A", "é", "ﷺ", "\uffee", "😀", "😀b", "a b", "-", "~", `q"uote`, `back\slash`,
	strings.Repeat("k", 60), "-N3kxPwGQdTzxZ0q1a2b",
}

func (h *history) key() string {
	if h.rng.IntN(3) > 0 {
		return awkward[h.rng.IntN(6)] // collide often
	}
	return awkward[h.rng.IntN(len(awkward))]
}

func (h *history) path(maxDepth int) tree.Path {
	var p tree.Path
	for range h.rng.IntN(maxDepth + 1) {
		p = p.Child(h.key())
	}
	return p
}

// target returns a path to write or read at: often one where data is, rarely
// near the root, so that trees grow.
func (h *history) target(d twin) tree.Path {
	if h.rng.IntN(3) == 0 {
		return h.path(1).Join(h.path(4))
	}
	var p tree.Path
	for h.rng.IntN(6) > 0 {
		keys := childKeys(d.tree.Shallow(pathKeys(p)))
		if len(keys) == 0 {
			break
		}
		p = p.Child(keys[h.rng.IntN(len(keys))])
	}
	if h.rng.IntN(4) == 0 {
		p = p.Child(h.key())
	}
	if p.IsRoot() && h.rng.IntN(10) > 0 {
		return p.Child(h.key())
	}
	return p
}

// childKeys returns the keys of an object that was printed shallow.
func childKeys(shallow string) []string {
	var members map[string]any
	if json.Unmarshal([]byte(shallow), &members) != nil {
		return nil // a leaf
	}
	return slices.Sorted(maps.Keys(members))
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func (h *history) scalar() string {
	switch h.rng.IntN(12) {
	case 0:
		return "true"
	case 1:
		return "false"
	case 2:
		return "null"
	case 3:
		return strconv.FormatInt(h.rng.Int64N(2000)-1000, 10)
	case 4:
		return strconv.FormatInt(int64(h.rng.Uint64()), 10)
	case 5:
		return strconv.FormatFloat(h.rng.NormFloat64()*1e10, 'g', -1, 64)
	case 6:
		return []string{"1.0", "1e3", "-0", "-0.0", "1e21", "9007199254740993.0", "5e-324", "1.5e300"}[h.rng.IntN(8)]
	case 7:
		if h.rng.IntN(12) == 0 {
			return strconv.Quote(strings.Repeat("long", 4000+h.rng.IntN(2000))) // its row is not copied
		}
		return strconv.Quote(strings.Repeat("x", h.rng.IntN(400)))
	case 8:
		return `{".sv":"timestamp"}`
	case 9:
		return fmt.Sprintf(`{".sv":{"increment":%s}}`, []string{"1", "-5", "0.5", "9223372036854775807", "1e308"}[h.rng.IntN(5)])
	default:
		return []string{`""`, `"é😀\u0000\n"`, `"\ud83d\ude00"`, `"a\"b\\c"`}[h.rng.IntN(4)]
	}
}

func (h *history) priority() string {
	switch h.rng.IntN(6) {
	case 0:
		return "null"
	case 1:
		return `"p"`
	case 2:
		return `{".sv":"timestamp"}`
	case 3:
		return `{".sv":{"increment":2}}`
	default:
		return strconv.Itoa(h.rng.IntN(10))
	}
}

// body returns a random JSON text, mostly small, sometimes larger than a chunk.
func (h *history) body(depth int) string {
	switch n := h.rng.IntN(12); {
	case n < 4 || depth == 0:
		if h.rng.IntN(5) == 0 {
			return fmt.Sprintf(`{".value":%s,".priority":%s}`, h.scalar(), h.priority())
		}
		return h.scalar()
	case n < 5:
		return h.array(depth)
	case n < 6 && h.rng.IntN(8) == 0:
		return h.wide()
	default:
		return h.object(depth)
	}
}

func (h *history) array(depth int) string {
	parts := make([]string, h.rng.IntN(6))
	for i := range parts {
		parts[i] = "null"
		if h.rng.IntN(3) > 0 {
			parts[i] = h.body(depth - 1)
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func (h *history) object(depth int) string {
	members := map[string]string{}
	for range h.rng.IntN(6) {
		members[strconv.Quote(h.key())] = h.body(depth - 1)
	}
	if h.rng.IntN(4) == 0 {
		members[`".priority"`] = h.priority()
	}
	parts := make([]string, 0, len(members))
	for _, key := range sortedKeys(members) {
		parts = append(parts, key+":"+members[key])
	}
	h.rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return "{" + strings.Join(parts, ",") + "}"
}

// wide returns an object of many small children: too many for point deletes, or
// a long array.
func (h *history) wide() string {
	parts := make([]string, 50+h.rng.IntN(600))
	for i := range parts {
		key := "w" + strconv.Itoa(i)
		if len(parts)%2 == 0 {
			key = strconv.Itoa(i * (1 + len(parts)%3))
		}
		parts[i] = fmt.Sprintf("%q:%d", key, i)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// patch returns the body of a PATCH, sometimes one that is refused.
func (h *history) patch(d twin, p tree.Path) string {
	members := map[string]string{}
	children := childKeys(d.tree.Shallow(pathKeys(p)))
	for range h.rng.IntN(5) {
		name := strings.TrimPrefix(h.path(3).String(), "/")
		switch {
		case len(children) > 0 && h.rng.IntN(2) == 0:
			name = children[h.rng.IntN(len(children))]
		case name == "" && h.rng.IntN(20) > 0:
			name = h.key()
		}
		switch h.rng.IntN(8) {
		case 0:
			members[strconv.Quote(strings.TrimPrefix(name+"/.priority", "/"))] = h.priority()
		case 1:
			members[strconv.Quote("/"+name+"//"+h.key()+"/")] = h.body(1)
		case 2, 3:
			members[strconv.Quote(name)] = "null"
		default:
			members[strconv.Quote(name)] = h.body(2)
		}
	}
	parts := make([]string, 0, len(members))
	for _, key := range sortedKeys(members) {
		parts = append(parts, key+":"+members[key])
	}
	return "{" + strings.Join(parts, ",") + "}"
}
