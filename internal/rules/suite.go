package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// SuiteMillis is the time of the cases of a suite that sets none. It does not
// move, so that a case means the same every day.
const SuiteMillis = 1_500_000_000_000

// A Suite is the cases that a ruleset should allow or deny, read from a text of
// blocks. An empty line ends a block, and comments begin with #:
//
//	data                 the tree, as JSON in the lines below; it stays for all cases
//	now MILLIS           the variable now, and the time of server values; what an
//	                     .expireOn says is over by then is gone from the tree
//	auth NAME            gives a name to the variable auth in the lines below
//
//	# The comment above a case is its name.
//	read PATH [as=NAME|JSON] [orderBy="…" and what else REST knows of queries]
//	----
//	allowed
//
//	put|patch|post|delete|priority PATH [as=NAME|JSON] [!]
//	the body, as JSON
//	----
//	denied: /where/a/rule .refused
//
// A write that is allowed changes the tree for the cases behind it if its command
// ends in "!".
type Suite struct {
	cases []suiteCase
	done  <-chan struct{}
}

// isUnwanted reports whether nobody waits for the results any more.
func (s *Suite) isUnwanted() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// A suiteCase is one request with what should become of it.
type suiteCase struct {
	name    string
	line    int
	command string
	want    string
	request Request
	data    *tree.Node // what the tree is set to before; nil leaves it
	read    bool
	at      tree.Path // of a read
	query   Query
	write   tree.Write
	keep    bool
}

// A Result is what became of one case.
type Result struct {
	Name, Command string
	Line          int // of the command in the suite, from 1
	Passed        bool
	// Want and Got are spelled alike: "denied: /a .validate (3:9)".
	Want, Got string
	// Tried are the rules that were asked if it has not passed, in order, a line each; of
	// very many only the first, and a line that says so.
	Tried []string
}

// maxTried bounds the rules that a result lists, and maxTriedBytes what all results do.
const (
	maxTried      = 200
	maxTriedBytes = 4 << 20
	triedMore     = "… and more"
)

// Run judges every case in order, and counts what the rules came to. Once nobody waits for the results, the rest of the
// cases are not judged: their result is an error.
func (s *Suite) Run(r *Ruleset) ([]Result, *Coverage) {
	coverage := NewCoverage(r)
	results := make([]Result, 0, len(s.cases))
	var data tree.Node
	var clean swept
	room := maxTriedBytes
	for i := range s.cases {
		c := &s.cases[i]
		result := Result{Name: c.name, Command: c.command, Line: c.line, Want: c.want}
		if s.isUnwanted() {
			result.Got = "error: " + ErrUnwanted.Error()
			results = append(results, result)
			continue
		}
		c.request.Done = s.done
		if c.data != nil {
			data = *c.data
		}
		data = clean.sweep(r, data, c.request.NowMillis, s.done)
		data = c.run(r, data, coverage, &result, &room)
		results = append(results, result)
	}
	return results, coverage
}

// run judges one case on a tree, and returns the tree for the next. The rules that it
// lists take of the room that is left for all.
func (c *suiteCase) run(r *Ruleset, data tree.Node, coverage *Coverage, result *Result, room *int) tree.Node {
	before := *room
	request := c.request
	request.Trace = true // else it may be decided without asking
	request.Observe = func(a Asked) {
		coverage.note(a)
		switch n := len(result.Tried); {
		case n < maxTried && *room > 0:
			line := a.String()
			result.Tried = append(result.Tried, line)
			*room -= len(line)
		case n == 0 || result.Tried[n-1] != triedMore:
			result.Tried = append(result.Tried, triedMore)
		}
	}
	var d Decision
	w, err := c.write, error(nil)
	if c.read {
		d, err = r.Read(request, InNode(data), c.at, c.query)
	} else if w, err = tree.Resolve(c.write, request.NowMillis, InNode(data)); err == nil {
		d, err = r.Write(request, InNode(data), w)
	}
	if err != nil {
		result.Got = "error: " + err.Error()
		return data
	}
	result.Got = d.text()
	place := strings.LastIndex(result.Got, " (") // the position of the rule
	result.Passed = c.want == result.Got || c.want == verdict(d.Allowed) ||
		place > 0 && c.want == result.Got[:place]
	if result.Passed {
		result.Tried, *room = nil, before
	}
	if d.Allowed && c.keep {
		return applied(data, w)
	}
	return data
}

// String spells a rule that was asked as a trace does, with its place.
func (a Asked) String() string {
	rule := `"` + strings.Join(strings.Fields(a.Shown()), " ") + `"`
	text := fmt.Sprintf("%d:%d %s:%s: %s => %v", a.Line, a.Column, a.Path, a.Kind, rule, a.Result)
	if a.Failure != "" {
		text += " (" + a.Failure + ")"
	}
	return text
}

// maxShown is how much of a rule is shown where it was asked.
const maxShown = 1 << 10

// Shown returns the text of the rule, cut if it is long: a suite or a simulation may ask it
// many times.
func (a Asked) Shown() string {
	if len(a.Text) <= maxShown {
		return a.Text
	}
	return strings.ToValidUTF8(a.Text[:maxShown], "") + "…"
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

// text spells a decision with the rule that made it.
func (d Decision) text() string {
	text := verdict(d.Allowed)
	if d.Rule.Line > 0 {
		text += fmt.Sprintf(": %s %s (%d:%d)", d.Rule.Path, d.Rule.Kind, d.Rule.Line, d.Rule.Column)
	}
	return text
}

// applied returns the tree that a write makes of another.
func applied(before tree.Node, w tree.Write) tree.Node {
	e := tree.NewEditor(before)
	e.Apply(tree.Path{}, slices.Values(w.Assignments))
	return e.Node()
}
