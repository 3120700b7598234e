package rules

import (
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// Compile reads a rules document. The error is of type Problems.
func Compile(source string) (*Ruleset, error) {
	c := &compiler{lines: newLineIndex(source)}
	if len(source) > MaxBytes {
		return nil, Problems{{1, 1, "The rules are larger than 256 KiB."}}
	}
	document, problem := readDocument(source)
	if problem != nil {
		return nil, Problems{c.lines.problem(problem.offset, "%s", problem.message)}
	}
	r := &Ruleset{source: source}
	c.document(&document, &r.root)
	if len(c.problems) > 0 {
		return nil, c.problems.sorted()
	}
	return r, nil
}

// A compiler walks a document and collects what is wrong with it.
type compiler struct {
	lines    lineIndex
	problems Problems
	// wildcards are the names on the way down to where the compiler is, depth the
	// number of keys.
	wildcards []string
	depth     int
	patterns  int // the size of all regular expressions so far
}

// maxPatterns bounds the regular expressions of a document, in instructions.
const maxPatterns = 200_000

func (c *compiler) fail(offset int, format string, args ...any) {
	c.problems = append(c.problems, c.lines.problem(offset, format, args...))
}

// Texts of the live service, which clients and tools show.
const (
	textExpectedBrace = "Expected '{'."
	textKey           = `String can't contain ".", "#", "$", "/", "[", or "]"`
	textRule          = "Invalid rule expression.  Expected 'true', 'false', or an expression string."
	textIndex         = "Invalid indexOn expression. Must be either a string or an array of strings"
)

// document compiles {"rules": {…}}.
func (c *compiler) document(e *element, root *node) {
	c.checkRepeated(e)
	found := false
	for i := range e.members {
		m := &e.members[i]
		switch {
		case m.key != "rules":
			c.fail(m.keyOffset, "Unknown key '%s': the only one here is 'rules'.", m.key)
		case m.element.kind != kindObject:
			c.fail(m.element.offset, textExpectedBrace)
			found = true
		default:
			c.node(&m.element, root)
			found = true
		}
	}
	if !found {
		c.fail(e.offset, "Expected 'rules'.")
	}
}

// checkRepeated refuses a key that an object has twice: which of the two counts
// would be a guess.
func (c *compiler) checkRepeated(e *element) {
	seen := make(map[string]bool, len(e.members))
	for _, m := range e.members {
		if seen[m.key] {
			c.fail(m.keyOffset, "Duplicate key '%s'.", m.key)
		}
		seen[m.key] = true
	}
}

// node compiles the rules of one path.
func (c *compiler) node(e *element, n *node) {
	c.checkRepeated(e)
	for i := range e.members {
		m := &e.members[i]
		switch m.key {
		case ".read":
			n.read = c.rule(expr.Read, &m.element)
		case ".write":
			n.write = c.rule(expr.Write, &m.element)
		case ".validate":
			n.validate = c.rule(expr.Validate, &m.element)
		case ".indexOn":
			n.indexes = c.indexes(&m.element)
		case ".expireOn":
			n.expiry = c.expiry(&m.element)
		default:
			c.child(m, n)
		}
	}
	c.checkWildcards(e)
	n.summarize()
}

// summarize notes what there is at a node and below.
func (n *node) summarize() {
	n.validates, n.indexed = n.validate != nil, len(n.indexes) > 0 || n.expiry != nil
	n.opensRead, n.opensWrite = n.read.isTrue(), n.write.isTrue()
	if n.wildcard != nil {
		n.include(n.wildcard)
	}
	for key, child := range n.children {
		n.include(child)
		if child.validates {
			n.validating = append(n.validating, key)
		}
	}
	slices.SortFunc(n.validating, tree.CompareKeys)
}

// include notes what there is at a child and below.
func (n *node) include(child *node) {
	n.validates = n.validates || child.validates
	n.indexed = n.indexed || child.indexed
	n.opensRead = n.opensRead || child.opensRead
	n.opensWrite = n.opensWrite || child.opensWrite
}

// checkWildcards refuses a second wildcard.
func (c *compiler) checkWildcards(e *element) {
	first := ""
	for _, m := range e.members {
		switch {
		case !strings.HasPrefix(m.key, "$"):
		case first == "":
			first = m.key
		case m.key != first:
			c.fail(m.keyOffset, "Cannot have multiple default rules ('%s' and '%s').", first, m.key)
		}
	}
}

// child compiles the rules below a key.
func (c *compiler) child(m *elementMember, parent *node) {
	name, wild := strings.CutPrefix(m.key, "$")
	switch {
	case m.element.kind != kindObject:
		c.fail(m.element.offset, textExpectedBrace)
		return
	case !c.checkKey(m.keyOffset, name):
		return
	case c.depth == tree.MaxDepth:
		c.fail(m.keyOffset, "The rules are more than %d levels deep.", tree.MaxDepth)
		return
	}
	n := &node{}
	c.depth++
	if wild {
		c.wildcards = append(c.wildcards, m.key)
		parent.wildcard = n
	} else {
		if parent.children == nil {
			parent.children = make(map[string]*node)
		}
		parent.children[m.key] = n
	}
	c.node(&m.element, n)
	if wild {
		c.wildcards = c.wildcards[:len(c.wildcards)-1]
	}
	c.depth--
}

// checkKey refuses what cannot be the name of a child.
func (c *compiler) checkKey(offset int, key string) bool {
	err := tree.CheckKey(key)
	switch {
	case err == nil:
		return true
	case strings.ContainsAny(key, ".#$/[]"):
		c.fail(offset, textKey)
	default:
		c.fail(offset, "%s", err)
	}
	return false
}

// rule compiles the value of .read, .write or .validate.
func (c *compiler) rule(kind expr.Kind, e *element) *rule {
	if e.kind != kindString && (e.kind != kindWord || e.text == "null") {
		c.fail(e.offset, textRule)
		return nil
	}
	if c.patterns > maxPatterns {
		return nil // it was said
	}
	compiled, problems := expr.Compile(e.text, expr.Scope{Kind: kind, Wildcards: c.wildcards})
	for _, p := range problems {
		offset := e.offset
		if e.kind == kindString {
			offset = e.origin(p.Offset)
		}
		c.fail(offset, "%s", p.Message)
	}
	if compiled == nil {
		return nil
	}
	if c.patterns += compiled.PatternSize(); c.patterns > maxPatterns {
		c.fail(e.offset, "The regular expressions of the rules are too large together.")
	}
	at := c.lines.problem(e.offset, "")
	return &rule{kind, compiled, e.text, at.Line, at.Column}
}

// indexes compiles the value of .indexOn.
func (c *compiler) indexes(e *element) []string {
	entries := e.items
	if e.kind == kindString {
		entries = []element{*e}
	} else if e.kind != kindArray {
		c.fail(e.offset, textIndex)
		return nil
	}
	indexes := make([]string, 0, len(entries))
	for i := range entries {
		entry := &entries[i]
		if entry.kind != kindString {
			c.fail(entry.offset, textIndex)
			continue
		}
		if index, ok := c.index(entry); ok && !slices.Contains(indexes, index) {
			indexes = append(indexes, index)
		}
	}
	return indexes
}

// index returns an entry of .indexOn in its one spelling.
func (c *compiler) index(e *element) (string, bool) {
	if e.text == valueIndex {
		return valueIndex, true
	}
	p, err := tree.ParsePath(e.text)
	switch {
	case err == nil && !p.IsRoot():
		return p.String()[1:], true
	case strings.ContainsAny(e.text, ".#$[]"):
		c.fail(e.offset, textKey)
	case err != nil:
		c.fail(e.offset, "%s", err)
	default:
		c.fail(e.offset, textIndex)
	}
	return "", false
}
