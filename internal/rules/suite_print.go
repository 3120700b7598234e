package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// A Case is a request with what became of it, to be printed as a case of a Suite.
type Case struct {
	// Verb is read, put, patch, post or delete.
	Verb string
	Path tree.Path
	// Query has the parameters of a read.
	Query map[string]string
	Auth  tree.Node
	// Body is the JSON that a write brings, on one line.
	Body string
	// NowMillis is the variable now, and Data what the rules read of the tree.
	NowMillis int64
	Data      tree.Node
	Allowed   bool
}

// String prints the case with the blocks that prepare it.
func (c Case) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "now %d\n\ndata\n%s\n\n%s %s", c.NowMillis, caseJSON(c.Data), c.Verb, caseTarget(c.Path))
	if !c.Auth.IsNull() {
		b.WriteString(" as=" + caseJSON(c.Auth))
	}
	for _, name := range queryNames {
		if value, ok := c.Query[name]; ok {
			b.WriteString(" " + name + "=" + value)
		}
	}
	b.WriteByte('\n')
	if c.Body != "" && slices.Contains([]string{"put", "patch", "post"}, c.Verb) {
		b.WriteString(c.Body + "\n")
	}
	b.WriteString("----\n" + verdict(c.Allowed) + "\n")
	return b.String()
}

// caseJSON prints a node on one line.
func caseJSON(n tree.Node) string {
	if n.IsNull() {
		return "null"
	}
	return string(tree.AppendJSON(nil, n, tree.Export))
}

// caseTarget prints a path as a command has it.
func caseTarget(p tree.Path) string {
	text := p.String()
	if strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == '"' || !strconv.IsPrint(c) }) {
		return strconv.Quote(text)
	}
	return text
}
