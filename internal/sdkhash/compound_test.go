package sdkhash_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

// rangeVectors are from the SDK for iOS.
var rangeVectors = []struct {
	text, split string
	posts       []string
	texts       []string
}{
	{
		`{"foo":{"!beforePriority":"before",".priority":"prio","afterPriority":"after"},"qux":"qux"}`, "foo/.priority",
		[]string{"foo/.priority", "qux"},
		[]string{
			`("foo":("!beforePriority":(string:"before"),".priority":(string:"prio")))`,
			`("foo":("afterPriority":(string:"after")),"qux":(string:"qux"))`,
		},
	},
	{
		`{"1":"one","2":"two","10":"ten"}`, "2",
		[]string{"2", "10"},
		[]string{`("1":(string:"one"),"2":(string:"two"))`, `("10":(string:"ten"))`},
	},
	{
		`{"foo":{".value":"bar",".priority":"baz"}}`, "",
		[]string{"foo"},
		[]string{`("foo":(priority:string:"baz":string:"bar"))`},
	},
}

func TestRangeVectors(t *testing.T) {
	t.Parallel()
	for _, v := range rangeVectors {
		n := decode(t, v.text)
		var hashes []string
		for _, text := range v.texts {
			hashes = append(hashes, sum(text))
		}
		c := compound(t, append(hashes, ""), v.posts)
		if differs := c.Differs(n); slices.Contains(differs, true) {
			t.Errorf("ranges of %s differ: %v", v.text, differs)
		}
		s := splitter{split: func(_ int, path []string) bool { return strings.Join(path, "/") == v.split }}
		if _, posts := s.finish(snapOf(n)); !slices.Equal(posts, v.posts) || !slices.Equal(s.texts, v.texts) {
			t.Errorf("the model cuts %s at %q into %q", v.text, posts, s.texts)
		}
	}
}

func compound(t testing.TB, hashes, posts []string) sdkhash.Compound {
	t.Helper()
	c, ok := sdkhash.NewCompound(hashes, posts)
	if !ok {
		t.Fatalf("the posts %q with %d hashes are refused", posts, len(hashes))
	}
	return c
}

// TestMergesMakeTheSame has random clients apply the merges that lead to random nodes.
func TestMergesMakeTheSame(t *testing.T) {
	t.Parallel()
	g := newGenerator(t)
	counts := map[string]int{}
	for i := range 20_000 {
		if g.keys = keys; i%2 == 0 {
			g.keys = []string{"1", "-a", "-b", "a", "b"} // so that changes meet
		}
		server := g.node(1 + g.IntN(3))
		client := server
		if g.IntN(8) > 0 {
			client = g.edited(server)
		}
		hashes, posts := g.splitter().finish(snapOf(client))
		c := compound(t, hashes, posts)
		merges, hidden := c.AllMerges(server)
		if hidden != snapOf(server).forgets() {
			t.Fatalf("%s: a priority in no range: %v", export(server), hidden)
		}
		same := tree.Equal(client, server)
		if same && len(merges) > 0 {
			t.Fatalf("equal trees %s, posts %q: merges %s", export(server), posts, describe(merges))
		}
		if hidden || snapOf(client).forgets() {
			counts["hidden"]++
			continue
		}
		got := apply(t, g, client, merges)
		if modelHash(got, false) != modelHash(server, false) {
			t.Fatalf("client %s\nposts  %q\nserver %s\nmerges %s\ngive   %s", export(client), posts, export(server), describe(merges), export(got))
		}
		counts[fmt.Sprintf("%d merges", min(len(merges), 3))]++
	}
	for _, want := range []string{"hidden", "0 merges", "1 merges", "2 merges", "3 merges"} {
		if counts[want] < 100 {
			t.Errorf("too few of one kind: %v", counts)
		}
	}
}

// splitter returns one of a random mind.
func (g generator) splitter() *splitter {
	switch g.IntN(3) {
	case 0: // as the SDK's own
		threshold := g.IntN(300)
		return &splitter{split: func(length int, path []string) bool {
			return length > threshold && (len(path) == 0 || path[len(path)-1] != priorityKey)
		}}
	case 1:
		return &splitter{split: func(int, []string) bool { return true }}
	}
	return &splitter{split: func(int, []string) bool { return g.IntN(3) == 0 }}
}

// edited returns n with a few changes.
func (g generator) edited(n tree.Node) tree.Node {
	if g.IntN(20) == 0 {
		return g.node(3)
	}
	e := tree.NewEditor(n)
	for range 1 + g.IntN(4) {
		at := g.place(e.Node())
		switch g.IntN(6) {
		case 0:
			e.Set(at, tree.Node{})
		case 1:
			e.SetPriority(at, tree.Leaf{})
		case 2:
			e.SetPriority(at, tree.StringLeaf(pick(g.Rand, "p", "q")))
		case 3:
			e.Set(at.Child(pick(g.Rand, g.keys...)), g.node(g.IntN(2)))
		default:
			e.Set(at, g.node(g.IntN(3)))
		}
	}
	return e.Node()
}

// place returns the path of some node of n.
func (g generator) place(n tree.Node) tree.Path {
	var p tree.Path
	for n.IsObject() && g.IntN(5) > 0 {
		chosen := g.IntN(n.Len())
		for key, child := range n.Children() {
			if chosen == 0 {
				p, n = p.Child(key), child
				break
			}
			chosen--
		}
	}
	return p
}

// apply returns what a client has after merges.
func apply(t testing.TB, g generator, client tree.Node, merges []sdkhash.Merge) tree.Node {
	t.Helper()
	s := snapOf(client)
	for _, m := range merges {
		a := applier{Rand: g.Rand, hasStart: m.HasFrom, hasEnd: m.HasTo}
		a.start, a.end = postKeys(m.From), postKeys(m.To)
		s = a.update(nil, s, snapOf(decode(t, string(m.Value))))
	}
	return decode(t, s.text())
}

func postKeys(post string) []string {
	if post = strings.Trim(post, "/"); post == "" {
		return nil
	}
	return strings.Split(post, "/")
}

func export(n tree.Node) string { return string(tree.AppendJSON(nil, n, tree.Export)) }

func describe(merges []sdkhash.Merge) string {
	var text strings.Builder
	for _, m := range merges {
		fmt.Fprintf(&text, "(%v %q, %v %q] %s\n", m.HasFrom, m.From, m.HasTo, m.To, m.Value)
	}
	return text.String()
}
