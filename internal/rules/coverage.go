package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/livetree/livetree/internal/rules/expr"
)

// A Coverage counts what each rule of a document came to over many decisions. It
// serves one goroutine at a time.
type Coverage struct {
	source string
	rules  []*RuleCoverage // in the order of the text
	by     map[*rule]*RuleCoverage
}

// A RuleCoverage is what one rule came to.
type RuleCoverage struct {
	Pattern      string // where the rule stands: /rooms/$room
	Kind         expr.Kind
	Line, Column int // in the document, both from 1
	// True and False count the outcomes; Failed are those among the false ones that
	// could not be evaluated.
	True, False, Failed int

	constant, isConstant bool
	offset, end          int // of the text in the document, with its quotes
}

// NewCoverage returns a coverage in which no rule was asked yet.
func NewCoverage(r *Ruleset) *Coverage {
	c := &Coverage{source: r.source, by: make(map[*rule]*RuleCoverage)}
	if r.source == "" {
		return c // the zero Ruleset
	}
	document, problem := readDocument(r.source)
	if problem != nil {
		panic("a compiled ruleset cannot be read: " + problem.message)
	}
	for i := range document.members {
		c.collect(&document.members[i].element, &r.root, "")
	}
	slices.SortFunc(c.rules, func(a, b *RuleCoverage) int { return cmp.Compare(a.offset, b.offset) })
	return c
}

// collect lists the rules of a node and below. The element is what the node was
// compiled from: it knows the names of wildcards and where a text ends.
func (c *Coverage) collect(e *element, n *node, pattern string) {
	for i := range e.members {
		m := &e.members[i]
		switch m.key {
		case ".read":
			c.add(&m.element, n.read, pattern)
		case ".write":
			c.add(&m.element, n.write, pattern)
		case ".validate":
			c.add(&m.element, n.validate, pattern)
		case ".indexOn", ".expireOn":
		default:
			child := n.children[m.key]
			if strings.HasPrefix(m.key, "$") {
				child = n.wildcard
			}
			c.collect(&m.element, child, pattern+"/"+m.key)
		}
	}
}

func (c *Coverage) add(e *element, r *rule, pattern string) {
	end := e.offset + len(e.text)
	if e.kind == kindString {
		end = e.origin(len(e.text)) + 1
	}
	rc := &RuleCoverage{Pattern: cmp.Or(pattern, "/"), Kind: r.kind, Line: r.line, Column: r.column, offset: e.offset, end: end}
	rc.constant, rc.isConstant = r.expr.Constant()
	c.rules = append(c.rules, rc)
	c.by[r] = rc
}

// note counts one outcome.
func (c *Coverage) note(a Asked) {
	rc := c.by[a.rule]
	switch {
	case a.Result:
		rc.True++
	default:
		rc.False++
	}
	if a.Failure != "" {
		rc.Failed++
	}
}

// Rules returns what each rule came to, in the order of the text.
func (c *Coverage) Rules() []RuleCoverage {
	list := make([]RuleCoverage, 0, len(c.rules))
	for _, rc := range c.rules {
		list = append(list, *rc)
	}
	return list
}

// Outcomes returns how many different outcomes were seen, and how many there can
// be: two, or one if the rule is just true or false.
func (rc RuleCoverage) Outcomes() (seen, possible int) {
	possible = 2
	if rc.isConstant {
		possible = 1
	}
	return min(rc.True, 1) + min(rc.False, 1), possible
}

// String says what the rule came to, and what it never came to.
func (rc RuleCoverage) String() string {
	if rc.True+rc.False == 0 {
		return "never asked"
	}
	var parts []string
	switch {
	case rc.True > 0:
		parts = append(parts, fmt.Sprintf("true %d×", rc.True))
	case !rc.isConstant || rc.constant:
		parts = append(parts, "never true")
	}
	switch {
	case rc.Failed > 0:
		parts = append(parts, fmt.Sprintf("false %d× (%d failed)", rc.False, rc.Failed))
	case rc.False > 0:
		parts = append(parts, fmt.Sprintf("false %d×", rc.False))
	case !rc.isConstant || !rc.constant:
		parts = append(parts, "never false")
	}
	return strings.Join(parts, ", ")
}

// Summary says in a line how many rules were asked.
func (c *Coverage) Summary() string {
	asked, seen, possible := 0, 0, 0
	for _, rc := range c.rules {
		s, p := rc.Outcomes()
		seen, possible, asked = seen+s, possible+p, asked+min(s, 1)
	}
	return fmt.Sprintf("%d of %d rules asked, %d of %d outcomes seen", asked, len(c.rules), seen, possible)
}

// Text returns the coverage for people, a line for each rule; those that miss an
// outcome are marked.
func (c *Coverage) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, rc := range c.rules {
		mark := "  "
		if seen, possible := rc.Outcomes(); seen < possible {
			mark = "! "
		}
		// A Builder does not fail.
		_, _ = fmt.Fprintf(w, "%s%d:%d\t%s %s\t%s\n", mark, rc.Line, rc.Column, rc.Pattern, rc.Kind, rc)
	}
	_ = w.Flush()
	return b.String()
}
