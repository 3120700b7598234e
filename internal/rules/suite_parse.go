package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/pushid"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// ParseSuite reads a suite. The error is of type Problems.
func ParseSuite(text string) (*Suite, error) { return ParseSuiteUntil(text, nil) }

// ParseSuiteUntil is ParseSuite for somebody who waits for the suite, and for its results, until done is closed. What is
// read then ends with ErrUnwanted.
func ParseSuiteUntil(text string, done <-chan struct{}) (*Suite, error) {
	p := &suiteParser{suite: Suite{done: done}, nowMillis: SuiteMillis, auths: map[string]tree.Node{}, keys: pushid.New(zeros{})}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		end := i
		for end < len(lines) && strings.TrimSpace(lines[end]) != "" {
			end++
		}
		if p.suite.isUnwanted() {
			return nil, ErrUnwanted
		}
		if end > i {
			p.block(lines[i:end], i+1)
		}
		i = end
	}
	if len(p.problems) == 0 && len(p.suite.cases) == 0 {
		p.fail(1, 1, "there is no case")
	}
	if len(p.problems) > 0 {
		return nil, p.problems.sorted()
	}
	return &p.suite, nil
}

// zeros is the random source of post: a suite has the same keys every time.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

type suiteParser struct {
	suite     Suite
	problems  Problems
	data      *tree.Node // for the next case
	nowMillis int64
	auths     map[string]tree.Node
	keys      *pushid.Generator
}

func (p *suiteParser) fail(line, column int, format string, args ...any) {
	p.problems = append(p.problems, Problem{line, column, fmt.Sprintf(format, args...)})
}

// A suiteBlock is a block in its parts.
type suiteBlock struct {
	comment string
	command string
	line    int // of the command
	input   string
	want    []string // below the dashes
	dashes  bool
}

// block reads one block that begins at a line.
func (p *suiteParser) block(lines []string, line int) {
	var b suiteBlock
	var comment []string
	for len(lines) > 0 && strings.HasPrefix(lines[0], "#") {
		comment = append(comment, strings.TrimSpace(strings.TrimLeft(lines[0], "#")))
		lines, line = lines[1:], line+1
	}
	if len(lines) == 0 {
		return
	}
	b.comment, b.command, b.line = strings.Join(comment, " "), strings.TrimSpace(lines[0]), line
	lines = lines[1:]
	if i := slices.Index(lines, "----"); i >= 0 {
		b.want, b.dashes = lines[i+1:], true
		lines = lines[:i]
	}
	b.input = strings.Join(lines, "\n")
	verb, rest, _ := strings.Cut(b.command, " ")
	switch verb {
	case "data", "now", "auth":
		p.setting(verb, strings.TrimSpace(rest), b)
	case "read", "put", "patch", "post", "delete", "priority":
		p.request(verb, strings.TrimSpace(rest), b)
	default:
		p.fail(line, 1, "unknown command %q: there are data, now, auth, read, put, patch, post, delete and priority", verb)
	}
}

var authName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// setting reads a block that prepares cases.
func (p *suiteParser) setting(verb, argument string, b suiteBlock) {
	if b.dashes && !slices.Equal(b.want, []string{"ok"}) {
		p.fail(b.line, 1, "%s expects nothing: there is no decision", verb)
	}
	switch verb {
	case "data":
		if argument != "" {
			p.fail(b.line, 1, "the data stands in the lines below")
			return
		}
		if n, ok := p.decode(b, tree.Path{}); ok {
			p.data = &n
		}
	case "now":
		millis, err := strconv.ParseInt(argument, 10, 64)
		if err != nil || millis < 0 || b.input != "" {
			p.fail(b.line, 1, "now needs a number of milliseconds since 1970")
			return
		}
		p.nowMillis = millis
	case "auth":
		if !authName.MatchString(argument) || argument == "null" || argument == "true" || argument == "false" {
			p.fail(b.line, 1, "auth needs a name of letters and digits, and JSON in the lines below")
			return
		}
		n, err := tree.DecodeClaims([]byte(b.input))
		p.failDecode(b, err)
		p.auths[argument] = n
	}
}

// request reads a case.
func (p *suiteParser) request(verb, rest string, b suiteBlock) {
	found := len(p.problems)
	c := suiteCase{name: b.comment, line: b.line, command: b.command, data: p.data}
	if c.name == "" {
		c.name = b.command
	}
	c.request.NowMillis = p.nowMillis
	c.want = p.want(b)
	target, rest := cutTarget(rest)
	if target == "" {
		p.fail(b.line, 1, "%s needs a path", verb)
		return
	}
	if verb == "put" && strings.HasSuffix(target, "/.priority") {
		verb, target = "priority", strings.TrimSuffix(target, "/.priority")
	}
	at, err := tree.ParsePath(target)
	if err != nil {
		p.fail(b.line, 1, "%v", err)
		return
	}
	p.options(&c, verb == "read", rest, b)
	if verb == "read" {
		c.read, c.at = true, at
	} else {
		c.write = p.write(verb, at, b)
	}
	if (verb == "read" || verb == "delete") && b.input != "" {
		p.fail(b.line+1, 1, "%s takes no body", verb)
	}
	if len(p.problems) == found {
		p.suite.cases = append(p.suite.cases, c)
		p.data = nil
	}
}

// want reads what a case expects.
func (p *suiteParser) want(b suiteBlock) string {
	if len(b.want) == 1 {
		word, rule, hasRule := strings.Cut(strings.TrimSpace(b.want[0]), ":")
		for long, short := range map[string]string{"allowed": "allow", "denied": "deny"} {
			if word != long && word != short {
				continue
			}
			if hasRule {
				return long + ": " + strings.Join(strings.Fields(rule), " ")
			}
			return long
		}
	}
	p.fail(b.line, 1, `the case must end with a line of four dashes and one that says "allowed" or "denied"`)
	return ""
}

// cutTarget takes the path off a command. One that has spaces is a JSON string.
func cutTarget(rest string) (target, options string) {
	if quoted, err := strconv.QuotedPrefix(rest); err == nil && quoted[0] == '"' {
		if target, err = strconv.Unquote(quoted); err == nil {
			return target, rest[len(quoted):]
		}
	}
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		return rest[:i], rest[i:]
	}
	return rest, ""
}

// queryNames are the parameters of a query, as REST spells them.
var queryNames = []string{"orderBy", "limitToFirst", "limitToLast", "startAt", "startAfter", "endAt", "endBefore", "equalTo"}

// options reads what stands behind the path of a case.
func (p *suiteParser) options(c *suiteCase, read bool, text string, b suiteBlock) {
	parameters := map[string]string{}
	for _, word := range splitWords(text) {
		name, value, ok := strings.Cut(word, "=")
		switch {
		case word == "!" && !read:
			c.keep = true
		case ok && name == "as":
			c.request.Auth = p.auth(value, b)
		case ok && read && slices.Contains(queryNames, name):
			parameters[name] = value
		default:
			p.fail(b.line, 1, "unknown option %q", word)
		}
	}
	q, ok, err := query.Parse(func(name string) (string, bool) {
		value, ok := parameters[name]
		return value, ok
	})
	if err != nil {
		p.fail(b.line, 1, "%v", err)
	}
	if ok {
		c.query = QueryOf(q)
	}
}

// auth returns the variable that as= gives.
func (p *suiteParser) auth(value string, b suiteBlock) tree.Node {
	if n, ok := p.auths[value]; ok {
		return n
	}
	n, err := tree.DecodeClaims([]byte(value))
	if err != nil {
		p.fail(b.line, 1, "as=%s is neither JSON nor a name that an auth block above gives", value)
	}
	return n
}

// splitWords splits at spaces that are outside strings and brackets.
func splitWords(text string) []string {
	var words []string
	start, depth, quoted := -1, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case (c == ' ' || c == '\t') && depth <= 0:
			if start >= 0 {
				words = append(words, text[start:i])
			}
			start = -1
			continue
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if start < 0 {
			start = i
		}
	}
	if start >= 0 && start < len(text) {
		words = append(words, text[start:])
	}
	return words
}

// write reads the write of a case.
func (p *suiteParser) write(verb string, at tree.Path, b suiteBlock) tree.Write {
	switch verb {
	case "patch":
		w, err := tree.DecodePatch(strings.NewReader(b.input), at, tree.DecodeOptions{})
		p.failDecode(b, err)
		return w
	case "priority":
		n, err := tree.DecodePriority(strings.NewReader(b.input), tree.DecodeOptions{})
		p.failDecode(b, err)
		return tree.PutPriority(at, n)
	case "delete":
		return tree.Put(at, tree.Node{})
	case "post":
		key, err := p.keys.Next(p.nowMillis)
		if err != nil || at.Depth() == tree.MaxDepth {
			p.fail(b.line, 1, "there is no room for a child at %s", at)
			return tree.Write{}
		}
		at = at.Child(key)
	}
	n, _ := p.decode(b, at)
	return tree.Put(at, n)
}

// decode reads the input of a block as data for a path.
func (p *suiteParser) decode(b suiteBlock, at tree.Path) (tree.Node, bool) {
	n, err := tree.DecodeBytes([]byte(b.input), tree.DecodeOptions{Depth: at.Depth()})
	return n, !p.failDecode(b, err)
}

// failDecode notes what is wrong with the JSON of a block.
func (p *suiteParser) failDecode(b suiteBlock, err error) bool {
	if err == nil {
		return false
	}
	if b.input == "" {
		p.fail(b.line, 1, "there must be JSON in the lines below")
		return true
	}
	line, column, text := 1, 1, err.Error()
	if at, ok := errors.AsType[*tree.DecodeError](err); ok {
		line, column, text = at.Line, at.Column, at.Problem
	}
	p.fail(b.line+line, column, "%s", text)
	return true
}
