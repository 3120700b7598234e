package leave_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/tree"
)

// A sparse is a node of the tree that SDKs keep: a value, or children that may hold values
// further down. The priority of a node is its child .priority. It knows nothing of rows;
// order says which request a value came with.
type sparse struct {
	value    *value
	order    int
	children map[string]*sparse
}

// A value is JSON as the SDKs keep it: a leaf, or children; both nil is no data.
type value struct {
	leaf     string // JSON text
	priority string // JSON text, "" for none
	children map[string]*value
}

func (v *value) isEmpty() bool { return v.leaf == "" && len(v.children) == 0 }

// valueOf returns a node as a value.
func valueOf(n tree.Node) *value {
	v := &value{}
	if p := n.Priority(); !p.IsNull() {
		v.priority = string(tree.AppendLeaf(nil, p))
	}
	if !n.IsNull() && !n.IsObject() {
		v.leaf = string(tree.AppendLeaf(nil, n.Leaf()))
	}
	for key, child := range n.Children() {
		if v.children == nil {
			v.children = map[string]*value{}
		}
		v.children[key] = valueOf(child)
	}
	return v
}

// text returns the value as JSON, with children in any order.
func (v *value) text() string {
	if v.isEmpty() {
		return "null"
	}
	var members []string
	if v.leaf != "" {
		members = append(members, `".value":`+v.leaf)
	}
	if v.priority != "" {
		members = append(members, `".priority":`+v.priority)
	}
	for key, child := range v.children {
		members = append(members, string(tree.AppendString(nil, key))+":"+child.text())
	}
	return "{" + strings.Join(members, ",") + "}"
}

// update changes what is at keys below the value.
func (v *value) update(keys []string, to *value) {
	switch {
	case len(keys) == 0:
		*v = *to
	case keys[0] == ".priority":
		if !v.isEmpty() {
			if v.priority = to.text(); v.priority == "null" {
				v.priority = ""
			}
			if to.leaf != "" {
				v.priority = to.leaf
			}
		}
	default:
		child := &value{}
		if old := v.children[keys[0]]; old != nil {
			child = old
		}
		child.update(keys[1:], to)
		if child.isEmpty() {
			if delete(v.children, keys[0]); v.leaf == "" && len(v.children) == 0 {
				*v = value{}
			}
			return
		}
		if v.children == nil {
			v.children = map[string]*value{}
		}
		v.leaf, v.children[keys[0]] = "", child
	}
}

func (s *sparse) remember(keys []string, v *value, order int) {
	switch {
	case len(keys) == 0:
		*s = sparse{value: v, order: order}
	case s.value != nil:
		s.value.update(keys, v)
	default:
		if s.children == nil {
			s.children = map[string]*sparse{}
		}
		child := s.children[keys[0]]
		if child == nil {
			child = &sparse{}
			s.children[keys[0]] = child
		}
		child.remember(keys[1:], v, order)
	}
}

// forget reports whether nothing is left of the node.
func (s *sparse) forget(keys []string) bool {
	if len(keys) == 0 {
		*s = sparse{}
		return true
	}
	if s.value != nil {
		if s.value.leaf != "" {
			return false
		}
		v := s.value
		s.value = nil
		for key, child := range v.children {
			s.remember([]string{key}, child, s.order)
		}
	}
	if child := s.children[keys[0]]; child != nil && child.forget(keys[1:]) {
		delete(s.children, keys[0])
	}
	return len(s.children) == 0
}

// each yields the values with their paths.
func (s *sparse) each(at string, yield func(at string, s *sparse)) {
	if s.value != nil {
		yield(cmp.Or(at, "/"), s)
	}
	for key, child := range s.children {
		child.each(at+"/"+key, yield)
	}
}

// writes returns what is left, a line for each request of which something is, in order.
func (s *sparse) writes(t *testing.T) string {
	t.Helper()
	lines := map[int][]string{}
	s.each("", func(at string, s *sparse) {
		n, err := tree.DecodeBytes([]byte(s.value.text()), tree.DecodeOptions{})
		if err != nil {
			t.Fatalf("the model has %s: %v", s.value.text(), err)
		}
		lines[s.order] = append(lines[s.order], fmt.Sprintf("%s %s", at, tree.AppendJSON(nil, n, tree.Export)))
	})
	var b strings.Builder
	for _, order := range slices.Sorted(maps.Keys(lines)) {
		slices.Sort(lines[order])
		b.WriteString(strings.Join(lines[order], ", ") + "\n")
	}
	return b.String()
}

// writesOf returns what a list has left in the form of sparse.writes. The rows are read again
// from their bytes.
func writesOf(t *testing.T, l *leave.List) string {
	t.Helper()
	var b strings.Builder
	for _, r := range l.Rows() {
		again, err := leave.Decode(r.Number, r.Encoded)
		if err != nil {
			t.Fatal(err)
		}
		w, err := again.Write()
		if err != nil {
			t.Fatal(err)
		}
		var line []string
		for _, a := range w.Assignments {
			if !w.At.Contains(a.Path) || (w.Patch && a.Path == w.At && !a.Priority) {
				t.Fatalf("a part at %s of a write at %s", a.Path, w.At)
			}
			at := a.Path.String()
			if a.Priority {
				at = strings.TrimSuffix(at, "/") + "/.priority"
			}
			line = append(line, fmt.Sprintf("%s %s", at, tree.AppendJSON(nil, a.Node, tree.Export)))
		}
		slices.Sort(line)
		b.WriteString(strings.Join(line, ", ") + "\n")
	}
	return b.String()
}

// TestModel makes random requests, and holds the list against the tree of the SDKs.
func TestModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rounds := 200
	if testing.Short() {
		rounds = 50
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		limits := leave.Limits{MaxParts: 1 + rng.IntN(12), MaxBytes: 20 + rng.IntN(400)}
		model, list := &sparse{}, leave.New(limits)
		stored := map[uint64]string{} // what a store would have
		var history []string
		for i := range 60 {
			request := randomRequest(rng)
			next, err := apply(t, list, request)
			if err != nil {
				if fault.KindOf(err) != fault.TooLarge {
					t.Fatalf("seed %d round %d: %s: %v", seed, round, request, err)
				}
				continue
			}
			history = append(history, request)
			keep(stored, list, next)
			list = next
			tell(t, model, request, i)
			if got, want := writesOf(t, list), model.writes(t); got != want {
				t.Fatalf("seed %d round %d: after\n%s\nthere is left\n%swant\n%s", seed, round, strings.Join(history, "\n"), got, want)
			}
			if parts := strings.Count(writesOf(t, list), "/"); list.Bytes() > limits.MaxBytes || parts < len(list.Rows()) {
				t.Fatalf("seed %d round %d: %d bytes with the limits %+v", seed, round, list.Bytes(), limits)
			}
			checkStored(t, stored, list)
		}
	}
}

// keep changes the rows of a store as Changes says.
func keep(stored map[uint64]string, from, to *leave.List) {
	put, deleted := leave.Changes(from, to)
	for _, r := range put {
		stored[r.Number] = r.Encoded
	}
	for _, number := range deleted {
		delete(stored, number)
	}
}

func checkStored(t *testing.T, stored map[uint64]string, l *leave.List) {
	t.Helper()
	rows := l.Rows()
	for _, r := range rows {
		if stored[r.Number] != r.Encoded {
			t.Fatalf("row %d is stored as %q, want %q", r.Number, stored[r.Number], r.Encoded)
		}
	}
	if len(stored) != len(rows) {
		t.Fatalf("%d rows are stored, want %d", len(stored), len(rows))
	}
}

// tell makes a request to the model.
func tell(t *testing.T, model *sparse, request string, order int) {
	t.Helper()
	action, w := parse(t, request)
	rank := func(a tree.Assignment) int {
		switch {
		case a.Priority:
			return 2
		case a.Node.IsNull():
			return 1
		}
		return 0
	}
	slices.SortStableFunc(w.Assignments, func(a, b tree.Assignment) int { return rank(a) - rank(b) })
	for _, a := range w.Assignments {
		keys := slices.Collect(a.Path.Keys())
		if a.Priority {
			keys = append(keys, ".priority")
		}
		if action == "oc" {
			model.forget(keys)
		} else {
			model.remember(keys, valueOf(a.Node), order)
		}
	}
}

func randomRequest(rng *rand.Rand) string {
	at := randomPath(rng, rng.IntN(4))
	switch rng.IntN(8) {
	case 0, 1:
		if rng.IntN(6) == 0 {
			at = strings.TrimSuffix(at, "/") + "/.priority"
		}
		return "oc " + at
	case 2, 3:
		return "om " + at + " " + randomPatch(rng)
	case 4:
		return "o " + strings.TrimSuffix(at, "/") + "/.priority " + pick(rng, "1", `"p"`, "null", `{".sv":"timestamp"}`)
	default:
		return "o " + at + " " + randomValue(rng, 3)
	}
}

// randomPatch has paths that do not overlap: each begins with a key of its own, or is the
// priority of one whose child it has.
func randomPatch(rng *rand.Rand) string {
	var members []string
	for _, key := range []string{"a", "b", "1"} {
		switch rng.IntN(5) {
		case 0:
			members = append(members, fmt.Sprintf("%q:%s", key, randomValue(rng, 2)))
		case 1:
			members = append(members, fmt.Sprintf("%q:%s", key+"/a", randomValue(rng, 1)), fmt.Sprintf("%q:%s", key+"/.priority", pick(rng, "1", "null")))
		case 2:
			members = append(members, fmt.Sprintf("%q:%s", key+"/b", randomValue(rng, 1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func randomPath(rng *rand.Rand, depth int) string {
	p := ""
	for range depth {
		p += "/" + pick(rng, "a", "b", "1", "é")
	}
	return cmp.Or(p, "/")
}

func randomValue(rng *rand.Rand, depth int) string {
	if depth == 0 || rng.IntN(3) == 0 {
		return pick(rng, "1", "true", `"x"`, "null", "0.5", `{".sv":"timestamp"}`, `{".sv":{"increment":2}}`,
			`{".value":1,".priority":2}`, `{".value":{".sv":"timestamp"},".priority":{".sv":{"increment":0.5}}}`)
	}
	var members []string
	for _, key := range []string{"a", "b", "1", "é"} {
		if rng.IntN(2) == 0 {
			members = append(members, fmt.Sprintf("%q:%s", key, randomValue(rng, depth-1)))
		}
	}
	if rng.IntN(4) == 0 {
		members = append(members, `".priority":`+pick(rng, "3", `"q"`))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func pick(rng *rand.Rand, choices ...string) string { return choices[rng.IntN(len(choices))] }
