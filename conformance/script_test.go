package conformance_test

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A script is one of the text files. README.md describes its form.
type script struct {
	file    string
	options []string // of the server
	cases   []testCase
}

// A testCase is a heading with what stands below it.
type testCase struct {
	line    int
	heading string
	prose   []string
	steps   []step
}

// A step is a request and its answer, as they stand in the file, or another
// action.
type step struct {
	line   int
	action action
	marks  []string // such as @plain
	stream string   // the name of the stream that it opens or is about
	words  []string // of an action
	method string
	target string
	header []field
	body   string
	want   answer
}

type field struct{ name, value string }

// An answer is what is expected. Its texts may hold holes such as <*>.
type answer struct {
	line   int
	status int
	header []field
	body   string
}

// errorForm is how every error looks.
const errorForm = "{\n  \"error\" : \"%s\"\n}\n"

// A parser reads the lines of a script.
type parser struct {
	script
	number int

	section byte // '>' or '<': which part of a step the last line was of
	inBody  bool
	marks   []string
	stream  string // the next request opens it
	begun   bool   // a body of several lines has its first line
}

// parse reads a script.
func parse(file, text string) (script, error) {
	p := &parser{script: script{file: file}}
	for line := range strings.Lines(text) {
		p.number++
		if err := p.line(strings.TrimSuffix(line, "\n")); err != nil {
			return script{}, fmt.Errorf("%s:%d: %w", file, p.number, err)
		}
	}
	if err := p.endStep(); err != nil {
		return script{}, fmt.Errorf("%s:%d: %w", file, p.number, err)
	}
	return p.script, nil
}

func (p *parser) line(line string) error {
	switch {
	case strings.HasPrefix(line, "#"):
		return p.heading(line)
	case strings.HasPrefix(line, "@"):
		return p.mark(line)
	case line == ">" || strings.HasPrefix(line, "> "):
		return p.request(strings.TrimPrefix(line[1:], " "))
	case line == "<" || strings.HasPrefix(line, "< "):
		return p.answer(strings.TrimPrefix(line[1:], " "))
	case strings.HasPrefix(line, "* "):
		return p.event(line[2:])
	}
	if err := p.endStep(); err != nil {
		return err
	}
	if line != "" && len(p.cases) > 0 {
		c := &p.cases[len(p.cases)-1]
		c.prose = append(c.prose, line)
	}
	return nil
}

var headingForm = regexp.MustCompile(`^# [A-Z][A-Za-z ,.()0-9-]*: ".+"$`)

func (p *parser) heading(line string) error {
	if err := p.endStep(); err != nil {
		return err
	}
	if !headingForm.MatchString(line) {
		return fmt.Errorf(`a heading looks like # Source 1: "sentence"`)
	}
	p.cases = append(p.cases, testCase{line: p.number, heading: strings.TrimPrefix(line, "# ")})
	return nil
}

var marks = []string{"@http1", "@http2", "@plain", "@plain-port"}

func (p *parser) mark(line string) error {
	if err := p.endStep(); err != nil {
		return err
	}
	words := strings.Fields(line)
	switch {
	case words[0] == "@server" && len(p.cases) == 0 && p.options == nil:
		p.options = words[1:]
	case slices.Contains(marks, words[0]) && len(words) == 1:
		p.marks = append(p.marks, words[0])
	case words[0] == "@stream" && len(words) == 2:
		p.stream = words[1]
	case actions[words[0]] != 0:
		return p.act(step{action: actions[words[0]], words: words[1:]})
	default:
		return fmt.Errorf("%s is not known, or not allowed here", words[0])
	}
	return nil
}

// request reads a line of a request, without its mark.
func (p *parser) request(text string) error {
	if p.section != '>' {
		return p.newRequest(text)
	}
	s := p.step()
	switch {
	case !p.inBody && text == "":
		p.inBody, p.begun = true, false
		return nil
	case p.inBody:
		s.body = p.join(s.body, text)
		return nil
	case requestForm.MatchString(text): // another one, without an answer between
		return fmt.Errorf("the request on line %d has no answer", s.line)
	}
	f, err := parseField(text)
	s.header = append(s.header, f)
	return err
}

var requestForm = regexp.MustCompile(`^[A-Za-z]+ [/*]`)

func (p *parser) newRequest(text string) error {
	if err := p.endStep(); err != nil {
		return err
	}
	if len(p.cases) == 0 {
		return fmt.Errorf("a request stands before the first heading")
	}
	method, rest, _ := strings.Cut(text, " ")
	target, body, _ := strings.Cut(rest, " ")
	if target == "" || !requestForm.MatchString(text) {
		return fmt.Errorf("a request looks like > METHOD /target.json BODY")
	}
	c := &p.cases[len(p.cases)-1]
	c.steps = append(c.steps, step{line: p.number, marks: p.marks, stream: p.stream, method: method, target: target, body: body})
	p.section, p.inBody, p.marks, p.stream = '>', false, nil, ""
	return nil
}

// answer reads a line of an answer, without its mark.
func (p *parser) answer(text string) error {
	switch p.section {
	case '>':
		p.section, p.inBody = '<', false
		return p.newAnswer(text)
	case '<':
	default:
		return fmt.Errorf("an answer without a request")
	}
	want := &p.step().want
	switch {
	case !p.inBody && text == "":
		if want.body != "" {
			return fmt.Errorf("the answer has a body already")
		}
		p.inBody, p.begun = true, false
		return nil
	case p.inBody:
		want.body = p.join(want.body, text)
		return nil
	}
	f, err := parseField(text)
	want.header = append(want.header, f)
	return err
}

func (p *parser) newAnswer(text string) error {
	status, body, _ := strings.Cut(text, " ")
	number, err := strconv.Atoi(status)
	if err != nil || number < 200 || number > 599 {
		return fmt.Errorf("an answer looks like < STATUS BODY")
	}
	if message, ok := strings.CutPrefix(body, "error "); ok {
		body = fmt.Sprintf(errorForm, message)
	}
	p.step().want = answer{line: p.number, status: number, body: body}
	return nil
}

// join adds a line to a body of several.
func (p *parser) join(body, line string) string {
	if !p.begun {
		p.begun = true
		return line
	}
	return body + "\n" + line
}

func parseField(text string) (field, error) {
	name, value, ok := strings.Cut(text, ":")
	if !ok || strings.Contains(name, " ") {
		return field{}, fmt.Errorf("a header looks like NAME: VALUE")
	}
	return field{name, strings.TrimPrefix(value, " ")}, nil
}

func (p *parser) step() *step {
	steps := p.cases[len(p.cases)-1].steps
	return &steps[len(steps)-1]
}

// endStep is called where no line of the last step can follow.
func (p *parser) endStep() error {
	if p.section == '>' {
		return fmt.Errorf("the request on line %d has no answer", p.step().line)
	}
	p.section, p.inBody = 0, false
	return nil
}

var (
	repeats = regexp.MustCompile(`<([^<>]+)\*([0-9]+)>`)
	bytesOf = regexp.MustCompile(`<0x([0-9A-F]+)>`)
	holes   = regexp.MustCompile(`<(?:(\*)|([a-z][a-z0-9]*)(?::([a-z]+))?)>`)
)

// kinds are what <name:kind> stands for.
var kinds = map[string]string{
	"key":    `[-0-9A-Z_a-z]{20}`,
	"millis": `[0-9]{13}`,
	"etag":   `[-0-9A-Za-z_]{8,}`,
	"number": `[0-9]+`,
	"text":   `[^\n]+`,
	// session is the id of a connection of an SDK.
	"session": `[0-9A-Za-z]{32}`,
}

// texts are what was kept under the names of a case.
type texts map[string]string

// literal replaces what stands for fixed bytes.
func literal(text string) string {
	text = repeats.ReplaceAllStringFunc(text, func(s string) string {
		parts := repeats.FindStringSubmatch(s)
		count, _ := strconv.Atoi(parts[2]) // digits
		return strings.Repeat(parts[1], count)
	})
	return bytesOf.ReplaceAllStringFunc(text, func(s string) string {
		b, err := hex.DecodeString(bytesOf.FindStringSubmatch(s)[1])
		if err != nil {
			return s
		}
		return string(b)
	})
}

// fill returns a text of a request with everything in its place.
func (t texts) fill(text string) (string, error) {
	var missing error
	filled := holes.ReplaceAllStringFunc(literal(text), func(s string) string {
		parts := holes.FindStringSubmatch(s)
		kept, ok := t[parts[2]]
		if !ok || parts[1] != "" || parts[3] != "" {
			missing = fmt.Errorf("nothing is kept under %s", s)
		}
		return kept
	})
	return filled, missing
}

// match compares what came with what is expected, and keeps what is named. The
// problem is empty if they are equal.
func (t texts) match(want, got string) (problem string) {
	want = literal(want)
	if want == got {
		return "" // and no expression of several megabytes is made
	}
	different := fmt.Sprintf("got  %s\nwant %s", show(got), show(want))
	if !holes.MatchString(want) {
		return different
	}
	pattern, names, err := t.pattern(want)
	if err != nil {
		return err.Error()
	}
	groups := pattern.FindStringSubmatch(widen(got))
	if groups == nil {
		return different
	}
	for i, n := range names {
		text := narrow(groups[i+1])
		if kept, ok := t[n.name]; ok && kept != text {
			return fmt.Sprintf("<%s> is %q here, and was %q", n.name, text, kept)
		}
		if problem := checkKind(n.kind, text); problem != "" {
			return problem
		}
		t[n.name] = text
	}
	return ""
}

type named struct{ name, kind string }

// pattern returns the expression for an expected text in which only holes are
// left, and what its groups are.
func (t texts) pattern(want string) (*regexp.Regexp, []named, error) {
	var expression strings.Builder
	var names []named
	expression.WriteString(`^`)
	want = widen(want)
	last := 0
	for _, at := range holes.FindAllStringSubmatchIndex(want, -1) {
		expression.WriteString(regexp.QuoteMeta(want[last:at[0]]))
		last = at[1]
		parts := holes.FindStringSubmatch(want[at[0]:at[1]])
		kept, isKept := t[parts[2]]
		isNew := !slices.ContainsFunc(names, func(n named) bool { return n.name == parts[2] })
		switch {
		case parts[1] != "":
			expression.WriteString(`(?s:.*)`)
		case parts[3] == "" && isKept:
			expression.WriteString(regexp.QuoteMeta(widen(kept)))
		case parts[3] == "" && isNew:
			return nil, nil, fmt.Errorf("nothing is kept under <%s>", parts[2])
		case parts[3] == "":
			names = append(names, named{name: parts[2]})
			expression.WriteString(`([^\n]+?)`)
		case kinds[parts[3]] == "" || !isNew || isKept:
			return nil, nil, fmt.Errorf("<%s:%s>: the kind is not known, or the name is taken", parts[2], parts[3])
		default:
			names = append(names, named{parts[2], parts[3]})
			expression.WriteString("(" + kinds[parts[3]] + ")")
		}
	}
	expression.WriteString(regexp.QuoteMeta(want[last:]) + `$`)
	pattern, err := regexp.Compile(expression.String())
	return pattern, names, err
}

// widen returns a text with a character for each byte: expressions know only
// characters, and an answer can be of any bytes.
func widen(text string) string {
	wide := make([]rune, len(text))
	for i := range len(text) {
		wide[i] = rune(text[i])
	}
	return string(wide)
}

// narrow undoes widen.
func narrow(wide string) string {
	var text []byte
	for _, r := range wide {
		text = append(text, byte(r))
	}
	return string(text)
}

// checkKind looks at what an expression cannot see.
func checkKind(kind, text string) string {
	var millis int64
	switch {
	case kind == "key":
		const alphabet = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
		for i := range 8 {
			millis = millis<<6 | int64(strings.IndexByte(alphabet, text[i]))
		}
	case kind == "millis":
		millis, _ = strconv.ParseInt(text, 10, 64) // digits
	case kind == "etag" && text == "null_etag":
		return "the ETag is that of no data"
	default:
		return ""
	}
	if off := time.Since(time.UnixMilli(millis)).Abs(); off > time.Minute {
		return fmt.Sprintf("%q is off the present time by %v", text, off)
	}
	return ""
}

// show returns a text for a message: quoted if it is not plain, and not all of
// it if it is long.
func show(text string) string {
	const most = 300
	if len(text) > most {
		return fmt.Sprintf("%q… (%d bytes)", text[:most], len(text))
	}
	return fmt.Sprintf("%q", text)
}
