package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/tree"
)

// pieces splits a text and prints each piece on a line.
func pieces(t *testing.T, text string, maxBytes int, leaves bool) string {
	t.Helper()
	var b strings.Builder
	s := client.Splitter{MaxBytes: maxBytes, Leaves: leaves, Emit: func(p client.Piece) error {
		later := ""
		if p.Later {
			later = " later"
		}
		fmt.Fprintf(&b, "%s = %s%s\n", p.Path, p.JSON, later)
		return nil
	}}
	if _, err := s.Split(strings.NewReader(text)); err != nil {
		t.Fatalf("split %s: %v", text, err)
	}
	return b.String()
}

func TestSplit(t *testing.T) {
	t.Parallel()
	const rooms = ` { "a" : {"x":1.0, "y":[true,null,"z"]}, "b": 12345678901234567890, ".priority": "p" } `
	tests := []struct {
		name     string
		text     string
		maxBytes int
		leaves   bool
		want     string
	}{
		{"whole", rooms, 1000, false, ` = {"a":{"x":1.0,"y":[true,null,"z"]},"b":12345678901234567890,".priority":"p"}`},
		{"children", rooms, 40, false, "a = {\"x\":1.0,\"y\":[true,null,\"z\"]}\nb = 12345678901234567890\n.priority = \"p\" later"},
		{"deeper", rooms, 8, false, "a/x = 1.0\na/y/0 = true\na/y/2 = \"z\"\nb = 12345678901234567890\n.priority = \"p\" later"},
		{"leaves", rooms, 1000, true, "a/x = 1.0\na/y/0 = true\na/y/1 = null\na/y/2 = \"z\"\nb = 12345678901234567890\n.priority = \"p\" later"},
		{"a leaf", "5", 1000, true, " = 5"},
		{"no data", "{}", 1000, false, " = {}"},
		{"no leaves", `{"a":{},"b":[]}`, 1000, true, ""},
		{"wrapped leaves", `{"a":{".value":1,".priority":2},"b":{".priority":3,".value":"x"},"c":{".sv":"timestamp"}}`, 1000, true,
			"a = {\".value\":1,\".priority\":2}\nb = {\".priority\":3,\".value\":\"x\"}\nc = {\".sv\":\"timestamp\"}"},
		{"only a priority", `{"a":{".priority":3}}`, 1000, true, "a/.priority = 3 later"},
		{"priority before children", `{"a":{".priority":3,"x":1,"y":2}}`, 10, false, "a/x = 1\na/y = 2\na/.priority = 3 later"},
		{"nulls", `{"a":null,"bbbbbbbbbb":1,"c":null}`, 10, false, "bbbbbbbbbb = 1"},
		{"escapes", `{"\u0061\"":"\u00e4"}`, 3, false, `a" = "\u00e4"`},
	}
	for _, test := range tests {
		got := strings.TrimSuffix(pieces(t, test.text, test.maxBytes, test.leaves), "\n")
		if got != test.want {
			t.Errorf("%s: pieces of %s are\n%s\nwant\n%s", test.name, test.text, got, test.want)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"", "1:1: there is no JSON text"},
		{`{"a":`, "the text ends in the middle"},
		{"{\"a\":1,\n\"b\"", "2:4: the text ends in the middle"},
		{"{\n  \"a\": nope}", "2:9: not valid JSON"},
		{`{"a":1} x`, "1:9: "},
		{`{"a":1} 2`, "1:8: something follows"},
		{"[1,2", "the text ends in the middle"},
		{"{\"a\":\"\xff\"}", "1:7: not valid JSON"},
	}
	for _, test := range tests {
		s := client.Splitter{MaxBytes: 1000, Emit: func(client.Piece) error { return nil }}
		_, err := s.Split(strings.NewReader(test.text))
		if _, ok := errors.AsType[*client.DataError](err); !ok || !strings.Contains(err.Error(), test.want) {
			t.Errorf("splitting %q: %v, want a DataError with %q", test.text, err, test.want)
		}
	}
}

func TestSplitFindsProblems(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"k":`, 33) + "1" + strings.Repeat("}", 33)
	tests := []struct{ text, want string }{
		{"{\"a\":1,\n  \"b.c\": 2}", `2:3: invalid child name: "b.c" holds "."`},
		{`{"a":{"b":1,"b":2}}`, `1:13: the key "b" is repeated`},
		{`{".valu":1}`, `1:2: invalid child name`},
		{`{".value":1,"a":2}`, `1:13: "a" stands beside .value`},
		{`{"a":2,".value":1}`, `1:8: .value stands beside children`},
		{`{".value":{"a":1}}`, ".value must be a leaf"},
		{`{"a":{".priority":true,"b":1}}`, "1:19: a priority must be"},
		{`{"n":{".sv":{"increment":1}}}`, "applied twice"},
		{`{"n":1e400000000000}`, "1:6: the number 1e400000000000 is out of range"},
		{`{"":1}`, "it is empty"},
		{deep, "more than 32 levels deep"},
	}
	for _, test := range tests {
		var found []string
		s := client.Splitter{MaxBytes: 1000, Emit: func(client.Piece) error { return nil },
			Problem: func(p client.Problem) { found = append(found, p.String()) }}
		stats, err := s.Split(strings.NewReader(test.text))
		if err != nil || len(found) == 0 || !strings.Contains(found[0], test.want) || stats.Problems != int64(len(found)) {
			t.Errorf("splitting %s: %v, problems %q, want %q", test.text, err, found, test.want)
		}
	}
	// Among many keys too.
	var b strings.Builder
	b.WriteString("{")
	for i := range 100 {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	b.WriteString(`"k77":2}`)
	problems := 0
	s := client.Splitter{MaxBytes: 10, Emit: func(client.Piece) error { return nil }, Problem: func(client.Problem) { problems++ }}
	if _, err := s.Split(strings.NewReader(b.String())); err != nil || problems != 1 {
		t.Errorf("a repeated key among many: %v, %d problems, want 1", err, problems)
	}
}

// TestSplitKeepsTheTree puts random trees together again from their pieces.
func TestSplitKeepsTheTree(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		text := randomTree(random, 4)
		want, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, text, err)
		}
		for _, leaves := range []bool{false, true} {
			maxBytes := 1 + random.IntN(60)
			if got := assemble(t, text, maxBytes, leaves); !bytes.Equal(tree.AppendJSON(nil, got, tree.Export), tree.AppendJSON(nil, want, tree.Export)) {
				t.Fatalf("seed %d: %s in pieces of %d bytes (leaves %v) is\n%s, want\n%s\npieces:\n%s", seed, text, maxBytes, leaves,
					tree.AppendJSON(nil, got, tree.Export), tree.AppendJSON(nil, want, tree.Export), pieces(t, text, maxBytes, leaves))
			}
		}
	}
}

// assemble applies the pieces of a text one by one.
func assemble(t *testing.T, text string, maxBytes int, leaves bool) tree.Node {
	t.Helper()
	editor := tree.NewEditor(tree.Node{})
	s := client.Splitter{MaxBytes: maxBytes, Leaves: leaves, Emit: func(p client.Piece) error {
		name, isPriority := strings.CutSuffix(p.Path, ".priority")
		at, err := tree.ParsePath(name)
		if err != nil {
			return err
		}
		n, err := tree.DecodeBytes(p.JSON, tree.DecodeOptions{Depth: at.Depth()})
		if err != nil {
			return err
		}
		if isPriority {
			editor = tree.NewEditor(editor.Node())
			editor.SetPriority(at, n.Leaf())
		} else {
			editor.Set(at, n)
		}
		return nil
	}}
	if _, err := s.Split(strings.NewReader(text)); err != nil {
		t.Fatalf("split %s: %v", text, err)
	}
	return editor.Node()
}

// randomTree returns a JSON text of some depth.
func randomTree(random *rand.Rand, depth int) string {
	kind := random.IntN(10)
	if depth == 0 {
		kind = random.IntN(6)
	}
	switch kind {
	case 0:
		return "null"
	case 1:
		return "true"
	case 2, 3:
		return strconv.Itoa(random.IntN(1000))
	case 4:
		return strconv.Quote(strings.Repeat("s", random.IntN(20)))
	case 5:
		return fmt.Sprintf(`{".value":%d,".priority":%d}`, random.IntN(9), random.IntN(9))
	case 6:
		var list []string
		for range random.IntN(5) {
			list = append(list, randomTree(random, depth-1))
		}
		return "[" + strings.Join(list, " , ") + "]"
	}
	var list []string
	for i := range random.IntN(6) {
		list = append(list, fmt.Sprintf(`"k%d":%s`, i, randomTree(random, depth-1)))
	}
	if random.IntN(3) == 0 {
		at := random.IntN(len(list) + 1)
		list = append(list[:at], append([]string{fmt.Sprintf(`".priority":%d`, random.IntN(9))}, list[at:]...)...)
	}
	return "{" + strings.Join(list, ",") + "}"
}

// FuzzSplit: a text that the server takes is put together again from its pieces;
// one that is not is never taken without a word.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{`{"a":{"b":[1,null,2.50]},".priority":"p"}`, `{"a":{".value":1,".priority":2}}`, `[[],{}]`, `{"a":{".sv":"timestamp"}}`, `{"a":1,"a":2}`, `1e5`} {
		f.Add(text, 5, true)
	}
	f.Fuzz(func(t *testing.T, text string, maxBytes int, leaves bool) {
		problems := 0
		s := client.Splitter{MaxBytes: max(1, maxBytes), Leaves: leaves, Emit: func(client.Piece) error { return nil }, Problem: func(client.Problem) { problems++ }}
		_, err := s.Split(strings.NewReader(text))
		n, decodeErr := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
		if decodeErr != nil || err != nil || problems > 0 {
			if decodeErr != nil && err == nil && problems == 0 {
				t.Errorf("%q is split, but is refused: %v", text, decodeErr)
			}
			return
		}
		if n.HasPlaceholders() {
			return
		}
		got, want := tree.AppendJSON(nil, assemble(t, text, max(1, maxBytes), leaves), tree.Export), tree.AppendJSON(nil, n, tree.Export)
		if !bytes.Equal(got, want) {
			t.Errorf("%q in pieces of %d bytes is %s, want %s", text, maxBytes, got, want)
		}
	})
}

// TestSplitAfterALongValue splits a text in which many short values come after one that is very long. What was read ahead is as long as that, and is not
// moved for each of them.
func TestSplitAfterALongValue(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"a":"` + strings.Repeat("x", 12<<20) + `","b":{"c":0`)
	for i := range 20_000 {
		fmt.Fprintf(&text, `,"k%060d":%d`, i, i)
	}
	text.WriteString("}}")
	s := client.Splitter{MaxBytes: 16 << 20, Leaves: true, Emit: func(client.Piece) error { return nil }}
	if _, err := s.Split(strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	if moved, most := client.Moved(&s), int64(2*text.Len()); moved > most {
		t.Errorf("of a text of %d bytes %d were moved to make room, want %d at most", text.Len(), moved, most)
	}
}
