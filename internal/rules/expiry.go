package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// An expiry is an .expireOn.
type expiry struct {
	on           string // the path of the time below each child
	line, column int
}

const textExpiry = "Invalid expireOn expression. Must be a string: the path below each child where the time is at which it expires."

// expiry compiles the value of .expireOn.
func (c *compiler) expiry(e *element) *expiry {
	if e.kind != kindString || e.text == valueIndex {
		c.fail(e.offset, textExpiry)
		return nil
	}
	p, err := tree.ParsePath(e.text)
	switch {
	case err == nil && !p.IsRoot() && c.depth+1+p.Depth() > tree.MaxDepth:
		c.fail(e.offset, "The path of expireOn leads below the deepest level, %d.", tree.MaxDepth)
	case err == nil && !p.IsRoot():
		at := c.lines.problem(e.offset, "")
		return &expiry{p.String()[1:], at.Line, at.Column}
	case strings.ContainsAny(e.text, ".#$[]"):
		c.fail(e.offset, textKey)
	case err != nil:
		c.fail(e.offset, "%s", err)
	default:
		c.fail(e.offset, textExpiry)
	}
	return nil
}

// queried returns the indexes of a node that queries use: those of .indexOn, and that of
// .expireOn as if .indexOn named it.
func (n *node) queried() []string {
	if n.expiry == nil || slices.Contains(n.indexes, n.expiry.on) {
		return n.indexes
	}
	return append(slices.Clone(n.indexes), n.expiry.on)
}

// ExpiryWarnings returns the .expireOn for which no .validate looks at the clock: a client
// that writes a time in the past by mistake loses the child at once.
func (r *Ruleset) ExpiryWarnings() []Problem {
	return r.root.appendUnchecked(nil).sorted()
}

// Warnings returns what ExpiryWarnings does as lines, each with the name of the document.
func (r *Ruleset) Warnings(name string) (lines string) {
	for _, p := range r.ExpiryWarnings() {
		lines += name + ":" + p.String() + "\n"
	}
	return lines
}

func (n *node) appendUnchecked(found Problems) Problems {
	if x := n.expiry; x != nil && !n.checksTime() {
		found = append(found, Problem{x.line, x.column, fmt.Sprintf(
			`nothing checks the time at %q: a child with a time in the past is deleted at once. Add ".validate": "newData.val() > now" there`, x.on)})
	}
	for _, child := range n.children {
		found = child.appendUnchecked(found)
	}
	if n.wildcard != nil {
		found = n.wildcard.appendUnchecked(found)
	}
	return found
}

// checksTime reports whether each child that has rules has a .validate, somewhere from
// the child down to its time, that looks at the clock.
func (n *node) checksTime() bool {
	if n.wildcard == nil {
		return false
	}
	for _, child := range n.children {
		if !child.looksAtClock(n.expiry.on) {
			return false
		}
	}
	return n.wildcard.looksAtClock(n.expiry.on)
}

var clockWord = regexp.MustCompile(`\bnow\b`)

// looksAtClock reports whether a .validate at the node, or on the way down a path, has now.
func (n *node) looksAtClock(path string) bool {
	for rest := path; ; {
		if n.validate != nil && clockWord.MatchString(n.validate.text) {
			return true
		}
		var key string
		if key, rest, _ = strings.Cut(rest, "/"); key == "" {
			return false
		}
		child, _ := n.child(key)
		if child == nil {
			return false
		}
		n = child
	}
}
