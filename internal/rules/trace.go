package rules

import (
	"strings"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// maxTrace bounds a trace: it is sent as the value of a header.
	maxTrace = 8 << 10
	// maxTraceNode bounds the data that a trace shows.
	maxTraceNode = 1 << 10
)

// A tracer writes down how a decision is made, for tokens that ask for it: the
// attempt, every location on the way, every rule with its outcome.
// The words are separated by spaces; clients break the line before each " /".
type tracer struct {
	on bool
	b  strings.Builder
}

// say adds a sentence.
func (t *tracer) say(text string) {
	if !t.on || t.b.Len() > maxTrace {
		return
	}
	if t.b.Len() > 0 {
		t.b.WriteByte(' ')
	}
	for _, c := range text {
		if c < ' ' || c == 0x7F { // no header may hold them
			c = ' '
		}
		t.b.WriteRune(c)
	}
}

// attempt begins the trace.
func (t *tracer) attempt(verb, what string, p tree.Path, auth tree.Node) {
	if !t.on {
		return
	}
	to := " "
	if what != "" {
		to = " " + what + " to "
	}
	t.say("Attempt to " + verb + to + p.String() + " with auth=" + nodeText(auth))
}

// payload is what a write brings, for a trace.
func payload(w tree.Write) string {
	if w.Patch {
		return "Sparse data"
	}
	return nodeText(w.Assignments[0].Node)
}

func nodeText(n tree.Node) string {
	if n.IsNull() {
		return "null"
	}
	text, _, ok := tree.AppendWithin(nil, n, tree.Export, maxTraceNode)
	if !ok {
		return "(large)"
	}
	return string(text)
}

// visit adds a location.
func (t *tracer) visit(p tree.Path) {
	if t.on {
		t.say(p.String())
	}
}

// rule adds a rule and what it came to.
func (t *tracer) rule(r *rule, p tree.Path, result bool, failure *expr.Failure) {
	if !t.on {
		return
	}
	text := p.String() + ":" + r.kind.String() + ": \"" + r.text + "\" => "
	switch {
	case result:
		text += "true"
	case failure != nil:
		text += "false (" + failure.Message + ")"
	default:
		text += "false"
	}
	t.say(text)
}

// text returns the trace, cut between two characters.
func (t *tracer) text() string {
	const more = " …"
	text := t.b.String()
	if len(text) <= maxTrace {
		return text
	}
	end := maxTrace - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
