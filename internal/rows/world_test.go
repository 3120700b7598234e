package rows_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/tree"
)

// seeded returns a source of random numbers, and prints its seed.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// keys are those of random trees: of all sorts, so that their order matters.
var keys = []string{"-5", "7", "07", "10", "9", "a", "b", "ab", "é", "𝄞", "x<y", `q"q`}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// randomNode returns the text of a random node in Export form.
func randomNode(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(3) == 0 {
		leaf := pick(r, []string{
			"9007199254740993", "1.5", "true", "false", `"hi"`, `"a\nb\u0001\"<é𝄞"`,
			`"` + strings.Repeat("long \\n", r.IntN(20)) + `"`, "-1", `"𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞"`,
		})
		if r.IntN(5) == 0 {
			return fmt.Sprintf(`{".value":%s,".priority":%d}`, leaf, r.IntN(5))
		}
		return leaf
	}
	var members []string
	if r.IntN(5) == 0 {
		members = append(members, `".priority":"p"`)
	}
	first := r.IntN(len(keys))
	for i := range 1 + r.IntN(4) {
		members = append(members, fmt.Sprintf("%s:%s", quote(keys[(first+i)%len(keys)]), randomNode(r, depth-1)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func quote(s string) string { return string(tree.AppendString(nil, s)) }

// change makes a random change to the tree.
func change(f *enginetest.Fixture, r *rand.Rand) {
	path := ""
	for range 1 + r.IntN(3) {
		path += "/" + pick(r, keys)
	}
	switch n := r.IntN(20); {
	case n < 8:
		f.Put(path, randomNode(r, 2))
	case n < 13:
		f.Put(path, "null")
	case n < 16:
		f.Patch(path, fmt.Sprintf(`{%s:%s,%s:null}`, quote(pick(r, keys[:4])), randomNode(r, 1), quote(pick(r, keys[4:]))))
	case n < 18:
		f.Do(fmt.Sprintf("PUT %s/.priority %d", path, r.IntN(3)))
	case n == 18:
		f.Put("/", "null")
	default:
		f.Put("/"+pick(r, keys), randomNode(r, 3))
	}
}

// params are the parameters of a request.
type params map[string]string

func (p params) request(t testing.TB) rows.ListRequest {
	t.Helper()
	req, err := rows.ParseList(func(name string) (string, bool) { v, ok := p[name]; return v, ok })
	if err != nil {
		t.Fatalf("ParseList(%v) = %v", p, err)
	}
	return req
}

// node returns the node at a path.
func node(t testing.TB, f *enginetest.Fixture, p tree.Path) tree.Node {
	t.Helper()
	n, err := tree.DecodeBytes([]byte(f.Export(p.String())), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// expectedRow works out a row the obvious way.
func expectedRow(t testing.TB, key string, n tree.Node, cut, counted int) rows.Row {
	t.Helper()
	row := rows.Row{Key: key, Children: min(n.Len(), counted), More: n.Len() > counted}
	text := string(tree.AppendJSON(nil, n, tree.Plain))
	switch n.Kind() {
	case tree.Null:
		row.Type = "none"
		return row
	case tree.Object:
		row.Type = "object"
		if utf8.RuneCountInString(text) <= cut {
			row.Value = text
		}
	case tree.String:
		row.Type, row.Value = "string", text
		if utf8.RuneCountInString(text) > cut {
			row.Value, row.Cut, row.Bytes = longestPart(t, text, n.Leaf().Text(), cut), true, len(n.Leaf().Text())
		}
	case tree.Boolean:
		row.Type, row.Value = "boolean", text
	default:
		row.Type, row.Value = "number", text
	}
	if p := n.Priority(); !p.IsNull() {
		row.Priority = string(tree.AppendLeaf(nil, p))
	}
	return row
}

// longestPart returns as much of the text of a string as has no more than cut characters and
// is valid JSON once it is closed.
func longestPart(t testing.TB, text, s string, cut int) string {
	t.Helper()
	characters := []rune(text)
	for n := min(cut, len(characters)-1); n > 0; n-- {
		var got string
		part := string(characters[:n])
		if json.Unmarshal([]byte(part+`"`), &got) == nil && strings.HasPrefix(s, got) {
			return part
		}
	}
	t.Fatalf("no part of %q fits", text)
	return ""
}

// expectedRows returns the rows of the children that a query by key selects.
func expectedRows(t testing.TB, n tree.Node, q query.Query, cut, counted int) []rows.Row {
	t.Helper()
	list := []rows.Row{}
	for _, key := range query.Select(n, q) {
		list = append(list, expectedRow(t, key, n.Child(key), cut, counted))
	}
	return list
}
