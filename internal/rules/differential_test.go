package rules_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// A maker makes up documents, trees and requests that have much in common.
type maker struct{ *rand.Rand }

var someKeys = []string{"a", "b", "ab", "1"}

// document makes rules of at most depth levels, and their text.
func (m maker) document(depth int, wildcards []string) (*oracleNode, string) {
	n := &oracleNode{children: map[string]*oracleNode{}}
	var members []string
	for i, rule := range []**term{&n.read, &n.write, &n.validate} {
		if m.IntN(3) > 0 {
			continue
		}
		kind := []string{"read", "write", "validate"}[i]
		*rule = (&termMaker{m.Rand, kind, wildcards}).boolean(m.IntN(4))
		members = append(members, fmt.Sprintf("%q: %s", "."+kind, quoted((*rule).text)))
	}
	if depth > 0 {
		for range m.IntN(3) {
			key := pick(m.Rand, someKeys...)
			if n.children[key] == nil {
				child, text := m.document(depth-1, wildcards)
				n.children[key] = child
				members = append(members, fmt.Sprintf("%q: %s", key, text))
			}
		}
		if m.IntN(2) == 0 {
			n.wildcard = pick(m.Rand, "$x", "$y")
			child, text := m.document(depth-1, append(wildcards[:len(wildcards):len(wildcards)], n.wildcard))
			n.below = child
			members = append(members, fmt.Sprintf("%q: %s", n.wildcard, text))
		}
	}
	m.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return n, "{" + strings.Join(members, pick(m.Rand, ", ", ", // and\n")) + "}"
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// body makes a JSON text, sometimes with priorities and often with nothing.
func (m maker) body(depth int) string {
	if depth == 0 || m.IntN(3) == 0 {
		leaf := pick(m.Rand, "1", "2", "0", `"a"`, `"b"`, `"ab"`, "true", "false", "null")
		if m.IntN(6) == 0 {
			return fmt.Sprintf(`{".value":%s,".priority":%s}`, leaf, pick(m.Rand, "1", `"a"`))
		}
		return leaf
	}
	members := map[string]string{}
	for range m.IntN(4) {
		members[pick(m.Rand, someKeys...)] = m.body(depth - 1)
	}
	if m.IntN(6) == 0 {
		members[".priority"] = pick(m.Rand, "1", `"a"`)
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		all = append(all, quoted(key)+":"+members[key])
	}
	return "{" + strings.Join(all, ",") + "}"
}

// path makes at most depth keys.
func (m maker) path(depth int) []string {
	var keys []string
	for range m.IntN(depth + 1) {
		keys = append(keys, pick(m.Rand, someKeys...))
	}
	return keys
}

func treePath(keys []string) (p tree.Path) {
	for _, key := range keys {
		p = p.Child(key)
	}
	return p
}

// A madeWrite is one write, as the package and as the oracle take it.
type madeWrite struct {
	write       tree.Write
	assignments []oracleAssignment
	text        string
	apply       func(*model.Tree) error
}

func (m maker) write(t *testing.T) madeWrite {
	at := m.path(3)
	switch m.IntN(6) {
	case 0:
		body := pick(m.Rand, "1", `"a"`, "null")
		return madeWrite{
			tree.PutPriority(treePath(at), decode(t, body)), []oracleAssignment{{at, true}},
			fmt.Sprintf("PUT %s/.priority %s", treePath(at), body),
			func(m *model.Tree) error { return m.PutPriority(at, []byte(body), nowMillis) },
		}
	case 1, 2, 3:
		body := pick(m.Rand, m.body(2), m.body(2), "null")
		return madeWrite{
			tree.Put(treePath(at), decode(t, body)), []oracleAssignment{{at, false}},
			fmt.Sprintf("PUT %s %s", treePath(at), body),
			func(m *model.Tree) error { return m.Put(at, []byte(body), nowMillis) },
		}
	}
	return m.patch(t, at)
}

// patch tries until the paths do not overlap.
func (m maker) patch(t *testing.T, at []string) madeWrite {
	for {
		var members []string
		var assignments []oracleAssignment
		for range 1 + m.IntN(3) {
			rel := append(m.path(1), pick(m.Rand, someKeys...))
			key, value := strings.Join(rel, "/"), pick(m.Rand, m.body(1), "null")
			priority := m.IntN(5) == 0
			if priority {
				key, value = key+"/.priority", pick(m.Rand, "1", "null")
			}
			members = append(members, quoted(key)+":"+value)
			assignments = append(assignments, oracleAssignment{append(slices.Clone(at), rel...), priority})
		}
		body := "{" + strings.Join(members, ",") + "}"
		w, err := tree.DecodePatch(strings.NewReader(body), treePath(at), tree.DecodeOptions{})
		if err == nil {
			return madeWrite{
				w, assignments, fmt.Sprintf("PATCH %s %s", treePath(at), body),
				func(m *model.Tree) error { return m.Patch(at, []byte(body), nowMillis) },
			}
		}
	}
}

// The oracle computes with doubles alone: a small time keeps them exact.
const oracleNow = 1000

// TestAgainstOracle gives the same random rules, trees and requests to the
// package and to the oracle.
func TestAgainstOracle(t *testing.T) {
	m := maker{random(t)}
	documents := 500
	if testing.Short() {
		documents = 100
	}
	allowed, judged := 0, 0
	for range documents {
		root, text := m.document(3, nil)
		s := &subject{maker: m, t: t, root: root, ruleset: compile(t, text), text: text, before: model.New()}
		for range 6 {
			if err := s.before.Put(nil, []byte(m.body(3)), nowMillis); err != nil {
				t.Fatal(err)
			}
			s.auth = pick(m.Rand, "null", `{"uid":"a","n":1,"m":{"k":"ab"},"yes":true}`, `{"uid":"b","m":"x"}`)
			for _, ok := range []bool{s.read(), s.write()} {
				if judged++; ok {
					allowed++
				}
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d of %d requests allowed", allowed, judged)
	if allowed < judged/20 || allowed > judged*19/20 {
		t.Errorf("%d of %d requests are allowed: the test says little", allowed, judged)
	}
}

// A subject is a document and a tree under test.
type subject struct {
	maker
	t       *testing.T
	root    *oracleNode
	ruleset *rules.Ruleset
	text    string
	before  *model.Tree
	auth    string
}

func (s *subject) request() rules.Request {
	return rules.Request{Auth: decode(s.t, s.auth), NowMillis: oracleNow}
}

func (s *subject) world() world {
	w := world{now: oracleNow, before: stateOf(s.before)}
	if err := json.Unmarshal([]byte(s.auth), &w.auth); err != nil {
		s.t.Fatal(err)
	}
	return w
}

func (s *subject) data() tree.Node { return decode(s.t, s.before.Export(nil)) }

func (s *subject) fail(request string, d rules.Decision, err error, want bool) {
	s.t.Helper()
	s.t.Errorf("rules %s\ndata %s\n%s as %s: allowed %v, %v, want %v",
		s.text, s.before.Export(nil), request, s.auth, d.Allowed, err, want)
}

func (s *subject) read() bool {
	at := s.path(4)
	judge := func() (rules.Decision, error) {
		return s.ruleset.Read(s.request(), rules.InNode(s.data()), treePath(at), rules.Query{})
	}
	want := s.world().granted(s.root, at, func(n *oracleNode) *term { return n.read })
	d, err := judge()
	if err != nil || d.Allowed != want {
		s.fail("GET "+treePath(at).String(), d, err, want)
	}
	s.disturb("GET "+treePath(at).String(), d, judge)
	return want
}

func (s *subject) write() bool {
	made := s.maker.write(s.t)
	judge := func() (rules.Decision, error) {
		return s.ruleset.Write(s.request(), rules.InNode(s.data()), made.write)
	}
	after := s.before.Clone()
	if err := made.apply(after); err != nil {
		s.t.Fatal(err)
	}
	w := s.world()
	w.after = stateOf(after)
	want := w.allows(s.root, made.assignments)
	d, err := judge()
	if err != nil || d.Allowed != want {
		s.fail(made.text, d, err, want)
	}
	may, err := s.ruleset.MayWrite(s.request(), rules.InNode(s.data()), made.write.At, made.write.Patch)
	if err != nil || want && !may {
		s.fail("before its body is known, "+made.text, rules.Decision{Allowed: may}, err, want)
	}
	s.disturb(made.text, d, judge)
	return want
}

// disturb changes the tree away from what a decision read: it must stand.
func (s *subject) disturb(request string, d rules.Decision, judge func() (rules.Decision, error)) {
	other := s.path(3)
	p := treePath(other)
	for _, q := range d.Reads {
		if q.Contains(p) || p.Contains(q) {
			return
		}
	}
	if err := s.before.Put(other, []byte(s.body(2)), nowMillis); err != nil {
		s.t.Fatal(err)
	}
	if again, err := judge(); err != nil || again.Allowed != d.Allowed {
		s.fail(fmt.Sprintf("after a change at %s, which is none of %v, %s", p, d.Reads, request), again, err, d.Allowed)
	}
}
