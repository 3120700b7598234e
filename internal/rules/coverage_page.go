package rules

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

const pageHead = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%s</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
pre, code, td { font: 13px/1.6 ui-monospace, monospace; }
pre { overflow-x: auto; }
td { padding: 0 1rem 0 0; vertical-align: top; }
pre a { color: inherit; display: inline-block; opacity: .5; text-align: right; text-decoration: none; user-select: none; width: 3.5em; }
mark { border-bottom: 2px solid; border-radius: 2px; color: inherit; }
.full { background: #2a23; border-color: #2a2; }
.part { background: #fa04; border-color: #c80; }
.none { background: #e224; border-color: #d22; }
</style>
`

// Page returns the coverage and the results as an HTML page that needs nothing
// else: the document with a mark at every rule, all rules, and all cases.
func (c *Coverage) Page(title string, results []Result) string {
	var b strings.Builder
	e := html.EscapeString
	fmt.Fprintf(&b, pageHead, e(title))
	fmt.Fprintf(&b, "<h1>%s</h1>\n<p>%s; %s.</p>\n", e(title), e(Tally(results)), e(c.Summary()))
	b.WriteString("<p><mark class=\"full\">all outcomes seen</mark> <mark class=\"part\">one outcome missing</mark> <mark class=\"none\">never asked</mark></p>\n")
	b.WriteString("<h2>Document</h2>\n<pre>")
	c.writeSource(&b)
	b.WriteString("</pre>\n<h2>Rules</h2>\n<table>\n")
	for _, rc := range c.rules {
		fmt.Fprintf(&b, "<tr><td><a href=\"#L%d\">%d:%d</a><td>%s %s<td><mark class=\"%s\">%s</mark>\n",
			rc.Line, rc.Line, rc.Column, e(rc.Pattern), rc.Kind, rc.class(), e(rc.String()))
	}
	b.WriteString("</table>\n<h2>Cases</h2>\n<table>\n")
	for _, r := range results {
		class, word := "full", "ok"
		if !r.Passed {
			class, word = "none", "FAIL"
		}
		fmt.Fprintf(&b, "<tr><td>%d<td><mark class=\"%s\">%s</mark><td>%s<br>%s<td>%s\n", r.Line, class, word, e(r.Name), e(r.Command), e(r.Got))
	}
	b.WriteString("</table>\n</html>\n")
	return b.String()
}

// class is the look of a rule.
func (rc RuleCoverage) class() string {
	switch seen, possible := rc.Outcomes(); seen {
	case possible:
		return "full"
	case 0:
		return "none"
	}
	return "part"
}

// writeSource writes the document line by line, with the rules marked. A rule of
// several lines is marked on each.
func (c *Coverage) writeSource(b *strings.Builder) {
	rules, start := c.rules, 0
	for i, line := range slices.Collect(strings.Lines(c.source)) {
		end := start + len(line)
		fmt.Fprintf(b, "<a id=\"L%d\" href=\"#L%d\">%d</a>  ", i+1, i+1, i+1)
		for at := start; at < end; {
			if len(rules) == 0 || rules[0].offset >= end {
				b.WriteString(html.EscapeString(c.source[at:end]))
				break
			}
			rc := rules[0]
			from, to := max(rc.offset, at), min(rc.end, end)
			b.WriteString(html.EscapeString(c.source[at:from]))
			fmt.Fprintf(b, "<mark class=\"%s\" title=\"%s\">%s</mark>", rc.class(), html.EscapeString(rc.String()), html.EscapeString(c.source[from:to]))
			if at = to; rc.end <= end {
				rules = rules[1:]
			}
		}
		start = end
	}
}

// Tally says in words how many cases passed.
func Tally(results []Result) string {
	failed := 0
	for _, r := range results {
		if !r.Passed {
			failed++
		}
	}
	return fmt.Sprintf("cases: %d passed, %d failed", len(results)-failed, failed)
}
