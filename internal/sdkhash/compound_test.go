package sdkhash_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/phone"
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
		s := phone.Splitter{Split: func(_ int, path []string) bool { return strings.Join(path, "/") == v.split }}
		if _, posts := s.Ranges(n); !slices.Equal(posts, v.posts) || !slices.Equal(s.Texts, v.texts) {
			t.Errorf("the model cuts %s at %q into %q", v.text, posts, s.Texts)
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
	for i := range 8_000 {
		if g.keys = keys; i%2 == 0 {
			g.keys = []string{"1", "-a", "-b", "a", "b"} // so that changes meet
		}
		server := g.node(1 + g.IntN(3))
		client := server
		if g.IntN(8) > 0 {
			client = g.edited(server)
		}
		hashes, posts := g.splitter().Ranges(client)
		c := compound(t, hashes, posts)
		merges, hidden := c.AllMerges(server)
		if hidden != phone.Forgets(server) {
			t.Fatalf("%s: a priority in no range: %v", export(server), hidden)
		}
		same := tree.Equal(client, server)
		if same && len(merges) > 0 {
			t.Fatalf("equal trees %s, posts %q: merges %s", export(server), posts, describe(merges))
		}
		if hidden || phone.Forgets(client) {
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
		if counts[want] < 15 {
			t.Errorf("too few of one kind: %v", counts)
		}
	}
}

// TestTraps has one case for each mistake of the SDKs that merges have to live with.
func TestTraps(t *testing.T) {
	t.Parallel()
	g := newGenerator(t)
	for _, trap := range []struct{ name, client, server, posts, merges string }{
		{
			"a leaf with a priority where the client has posts inside",
			`{"a":1,"x":{"b":1,"c":2},"y":1}`, `{"a":1,"x":{".value":5,".priority":"p"},"y":1}`, "a x/b x/c y",
			`(a, x/c] {"x":{".value":5,".priority":"p"}}`,
		},
		{
			"the leaf at From has a priority",
			`{"a":{".value":1,".priority":"p"},"b":2,"c":3}`, `{"a":{".value":1,".priority":"p"},"b":4,"c":3}`, "a b c",
			`(a, b] {"a":{".value":1,".priority":"p"},"b":4}`,
		},
		{
			"From would be the priority of an object whose children all go",
			`{"a":1,"x":{".priority":"p","c":1},"y":1}`, `{"a":1,"x":{".priority":"p","d":1},"y":1}`, "a x/.priority x/c y",
			`(a, y] {"x":{".priority":"p","d":1},"y":1}`,
		},
		{
			"of an object only the priority is in the run",
			`{"x":{"b":1,"c":2}}`, `{"x":{".priority":"p","c":2}}`, "x/b x/c",
			`(, x/b] {"x":{".priority":"p","c":2}}`,
		},
		{
			"and the next leaf is a priority, too",
			`{"x":{"b":1,"c":{".priority":"q","z":2}}}`, `{"x":{".priority":"p","c":{".priority":"q","z":2}}}`, "x/b x/c/z",
			`(, x/b] {"x":{".priority":"p","c":{".priority":"q","z":2}}}`,
		},
		{"a priority of the root", `{"a":1,"b":2}`, `{".priority":"p","a":1,"b":2}`, "a b", `(, a] {".priority":"p","a":1}`},
		{"nothing is left in the run", `{"a":1,"b":2,"c":3}`, `{"a":1,"c":3}`, "a b c", `(a, b] null`},
		{"more behind the last post", `{"a":1}`, `{"a":1,"b":{"c":2,"d":3},"e":4}`, "a", `(a, ] {"b":{"c":2,"d":3},"e":4}`},
		{"two runs", `{"a":1,"b":2,"c":3}`, `{"a":4,"b":2,"c":5}`, "a b c", `(, a] {"a":4} (b, c] {"c":5}`},
	} {
		client, server := decode(t, trap.client), decode(t, trap.server)
		want := strings.Fields(trap.posts)
		s := phone.Splitter{Split: func(_ int, path []string) bool { return slices.Contains(want, strings.Join(path, "/")) }}
		hashes, posts := s.Ranges(client)
		if !slices.Equal(posts, want) {
			t.Fatalf("%s: the posts are %q", trap.name, posts)
		}
		merges, hidden := compound(t, hashes, posts).AllMerges(server)
		var got []string
		for _, m := range merges {
			got = append(got, fmt.Sprintf("(%s, %s] %s", m.From, m.To, m.Value))
		}
		if strings.Join(got, " ") != trap.merges || hidden {
			t.Errorf("%s: merges %s, want %s", trap.name, got, trap.merges)
		}
		for range 20 { // in any order of the children
			if n := apply(t, g, client, merges); !tree.Equal(n, server) {
				t.Errorf("%s: the client has %s, want %s", trap.name, export(n), trap.server)
				break
			}
		}
	}
}

// TestMergesSendsEverything: these clients cannot be helped by merges.
func TestMergesSendsEverything(t *testing.T) {
	t.Parallel()
	const large = `"a":"a string that is much longer than all the others together","b":1`
	hashes := func(client string) ([]string, []string) {
		s := phone.Splitter{Split: func(int, []string) bool { return true }}
		return s.Ranges(decode(t, client))
	}
	for _, c := range []struct {
		client, server string
		ok             bool
	}{
		{`{` + large + `,"c":2}`, `{` + large + `,"c":3}`, true},
		{`{` + large + `,"c":2}`, `{` + large + `}`, true},
		{`{` + large + `}`, `{` + large + `}`, false},
		{`{` + large + `,"c":2}`, `{"a":"another string that is much longer than the others","b":1,"c":2}`, false},
		{`{` + large + `,"c":2}`, `null`, false},
		{`{` + large + `,"c":2}`, `"a leaf"`, false},
		{`"a leaf"`, `{` + large + `}`, false},
		{`null`, `{` + large + `}`, false},
		{`{` + large + `,"c":{"-x":1}}`, `{` + large + `,"c":{"-x":1,".priority":1}}`, false},
		{`{` + large + `,"c":{"1":1}}`, `{` + large + `,"c":{"1":2,".priority":1}}`, false},
		{`{` + large + `,"c":{"1":1,"x":2}}`, `{` + large + `,"c":{"1":1,"x":2,".priority":1}}`, true},
	} {
		merges, ok := compound(t, first(hashes(c.client)), second(hashes(c.client))).Merges(decode(t, c.server))
		if ok != c.ok || ok != (len(merges) > 0) {
			t.Errorf("client %s, server %s: merges %s, %v, want %v", c.client, c.server, describe(merges), ok, c.ok)
		}
	}
	if _, ok := (sdkhash.Compound{}).Merges(decode(t, `{`+large+`}`)); ok {
		t.Error("a client that said nothing gets merges")
	}
}

func first[T any](a, _ T) T  { return a }
func second[T any](_, b T) T { return b }

func TestNewCompoundRefuses(t *testing.T) {
	t.Parallel()
	hash := sum("any")
	many := func(n int) []string {
		posts := make([]string, n)
		for i := range posts {
			posts[i] = fmt.Sprint(i)
		}
		return posts
	}
	deep := strings.TrimSuffix(strings.Repeat("k/", tree.MaxDepth), "/")
	for _, c := range []struct {
		name   string
		hashes int
		posts  []string
		ok     bool
	}{
		{"nothing", 0, nil, false},
		{"one hash", 1, nil, true},
		{"too few hashes", 2, []string{"a", "b"}, false},
		{"too many hashes", 4, []string{"a", "b"}, false},
		{"ordered", 5, []string{"9", "10", "a", "a/b"}, true},
		{"a priority in its place", 4, []string{"x/-a", "x/.priority", "x/a"}, true},
		{"the root", 2, []string{"/"}, true},
		{"with slashes around", 3, []string{"/a", "/b/"}, true},
		{"out of order", 3, []string{"10", "9"}, false},
		{"a priority out of place", 3, []string{"x/.priority", "x/-a"}, false},
		{"twice the same", 3, []string{"a", "a"}, false},
		{"an invalid key", 2, []string{"a.b"}, false},
		{"an empty key", 2, []string{"a//b"}, false},
		{"another construct", 2, []string{"a/.value"}, false},
		{"below a priority", 2, []string{".priority/a"}, false},
		{"not UTF-8", 2, []string{"\xff"}, false},
		{"the deepest", 2, []string{deep}, true},
		{"its priority", 2, []string{deep + "/.priority"}, true},
		{"too deep", 2, []string{deep + "/k"}, false},
		{"far too deep", 2, []string{strings.Repeat("k/", 1<<20)}, false},
		{"many", sdkhash.MaxPosts + 1, many(sdkhash.MaxPosts), true},
		{"too many", sdkhash.MaxPosts + 2, many(sdkhash.MaxPosts + 1), false},
	} {
		if _, ok := sdkhash.NewCompound(slices.Repeat([]string{hash}, c.hashes), c.posts); ok != c.ok {
			t.Errorf("%s: NewCompound says %v, want %v", c.name, ok, c.ok)
		}
	}
	if _, ok := sdkhash.NewCompound([]string{strings.Repeat("A", 29), ""}, []string{"a"}); ok {
		t.Error("a hash of 29 bytes is taken")
	}
}

// splitter returns one of a random mind.
func (g generator) splitter() *phone.Splitter {
	switch g.IntN(3) {
	case 0: // as the SDK's own
		threshold := g.IntN(300)
		return &phone.Splitter{Split: func(length int, path []string) bool {
			return length > threshold && (len(path) == 0 || path[len(path)-1] != phone.PriorityKey)
		}}
	case 1:
		return &phone.Splitter{Split: func(int, []string) bool { return true }}
	}
	return &phone.Splitter{Split: func(int, []string) bool { return g.IntN(3) == 0 }}
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
	list := make([]phone.Merge, len(merges))
	for i, m := range merges {
		list[i] = phone.Merge{From: m.From, To: m.To, HasFrom: m.HasFrom, HasTo: m.HasTo, Value: decode(t, string(m.Value))}
	}
	got, err := phone.Apply(g.Rand, client, list)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func export(n tree.Node) string { return string(tree.AppendJSON(nil, n, tree.Export)) }

func describe(merges []sdkhash.Merge) string {
	var text strings.Builder
	for _, m := range merges {
		fmt.Fprintf(&text, "(%v %q, %v %q] %s\n", m.HasFrom, m.From, m.HasTo, m.To, m.Value)
	}
	return text.String()
}

// FuzzMerges compares a node with whatever a client may send.
func FuzzMerges(f *testing.F) {
	for _, v := range rangeVectors {
		f.Add([]byte(v.text), strings.Join(v.posts, "\n"), uint64(1))
	}
	f.Add([]byte(`{"a":{".value":1,".priority":2},"b":{".priority":3,"c":{".priority":4,"d":5}}}`), "a\nb/.priority\nb/c", uint64(5))
	f.Fuzz(func(t *testing.T, text []byte, lines string, differs uint64) {
		n, err := tree.DecodeBytes(text, tree.DecodeOptions{})
		if err != nil || n.HasPlaceholders() {
			return
		}
		posts := strings.Split(lines, "\n")
		hashes := make([]string, len(posts)+1)
		for i := range hashes {
			if differs>>(i%64)&1 == 1 {
				hashes[i] = sum(lines)
			}
		}
		c, ok := sdkhash.NewCompound(hashes, posts)
		if !ok {
			return
		}
		merges, _ := c.AllMerges(n)
		for i, m := range merges {
			if _, err := tree.DecodeBytes(m.Value, tree.DecodeOptions{}); err != nil {
				t.Fatalf("the value %s is not a node: %v", m.Value, err)
			}
			if !m.HasFrom && i > 0 || !m.HasTo && i < len(merges)-1 {
				t.Fatalf("merges %s", describe(merges))
			}
		}
		if some, ok := c.Merges(n); ok != (len(some) > 0) {
			t.Fatalf("Merges says %v with %s", ok, describe(some))
		}
	})
}
