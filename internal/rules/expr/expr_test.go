package expr_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// This file holds what the tests of this package share.

// A line is a line of a file in testdata that is neither empty nor a comment.
type line struct {
	where string // file:line
	text  string
}

func lines(t testing.TB, name string) []line {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []line
	scanner := bufio.NewScanner(f)
	for n := 1; scanner.Scan(); n++ {
		if text := strings.TrimRight(scanner.Text(), " "); text != "" && text[0] != '#' {
			all = append(all, line{fmt.Sprintf("testdata/%s:%d", name, n), text})
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// decode reads a text that is known to be valid.
func decode(t testing.TB, text string) tree.Node {
	t.Helper()
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatalf("DecodeBytes(%s): %v", text, err)
	}
	return n
}

func path(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatalf("ParsePath(%q): %v", text, err)
	}
	return p
}

// nodeData is a state of the tree in memory.
type nodeData struct{ root tree.Node }

func (d nodeData) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	n := d.root.At(p)
	return n.Leaf(), n.Priority(), nil
}

func (d nodeData) Kind(p tree.Path) (tree.Kind, error) { return d.root.At(p).Leaf().Kind(), nil }

func (d nodeData) Priority(p tree.Path) (tree.Leaf, error) { return d.root.At(p).Priority(), nil }

func (d nodeData) Exists(p tree.Path) (bool, error) { return !d.root.At(p).IsNull(), nil }

// at is the scope of the rules in testdata: /p/$id.
func at(kind expr.Kind) expr.Scope { return expr.Scope{Kind: kind, Wildcards: []string{"$id"}} }

// errorText joins errors as the files in testdata spell them.
func errorText(errors []expr.Error) string {
	if len(errors) == 0 {
		return "ok"
	}
	var all []string
	for _, e := range errors {
		all = append(all, e.Error())
	}
	return strings.Join(all, "\n")
}

// compile compiles an expression that is known to be valid.
func compile(t testing.TB, source string, scope expr.Scope) *expr.Expr {
	t.Helper()
	e, errors := expr.Compile(source, scope)
	if errors != nil {
		t.Fatalf("Compile(%s): %s", source, errorText(errors))
	}
	return e
}
