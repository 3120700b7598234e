package expr

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The compiled form of a pattern is bounded, and of all patterns of an expression
// together, in instructions: some characters can ask for thousands of them.
const (
	maxPatternSize  = 10_000
	maxPatternsSize = 50_000
)

// A regex is a pattern as matches() uses it.
type regex struct {
	compiled *regexp.Regexp
	size     int  // in instructions: what a byte of text costs at most
	anchored bool // it can match at the beginning of a text alone
}

// steps is what matching a text of n bytes costs.
func (r *regex) steps(n int) int { return 1 + n*r.size/1000 }

// work is what matching a text of n bytes is charged beside that. A pattern that is not anchored may begin at every byte,
// and then a counted one keeps most of its instructions busy all the time.
func (r *regex) work(n int) int {
	if r.anchored {
		return n/2 + n*r.size/16
	}
	return n/2 + n*r.size/4
}

// compileRegex translates a pattern into one of package regexp, which takes time
// linear in the text.
//
// The language is small: literals, escapes, . and the classes \s \w \d \S \W \D,
// [sets], (groups), | and the quantifiers * + ? {n} {n,} {n,m}; ^ is only the
// first and $ only the last character of the whole pattern. The live service
// refuses an empty alternative, too. What it does not document (look-around,
// (?: groups, back-references, lazy quantifiers) is refused here.
func compileRegex(text string, ignoreCase bool) (*regex, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("not valid UTF-8")
	}
	t := &translator{rest: text, ignoreCase: ignoreCase}
	if err := t.whole(); err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(t.out.String(), syntax.Perl)
	if err != nil {
		return nil, errors.New("a repetition is too large")
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxPatternSize {
		return nil, errors.New("it is too large")
	}
	compiled, err := regexp.Compile(t.out.String())
	if err != nil {
		return nil, err
	}
	return &regex{compiled, len(prog.Inst), prog.StartCond()&syntax.EmptyBeginText != 0}, nil
}

// A translator reads a pattern and writes it in the language of package regexp.
type translator struct {
	rest       string
	ignoreCase bool
	out        strings.Builder
	depth      int // of groups
}

func (t *translator) accept(c byte) bool {
	if t.rest == "" || t.rest[0] != c {
		return false
	}
	t.rest = t.rest[1:]
	return true
}

// rune reads one character.
func (t *translator) rune() rune {
	r, size := utf8.DecodeRuneInString(t.rest)
	t.rest = t.rest[size:]
	return r
}

func (t *translator) whole() error {
	if t.accept('^') {
		t.out.WriteByte('^')
	}
	if err := t.alternatives(); err != nil {
		return err
	}
	if t.rest == "$" {
		t.out.WriteByte('$')
		return nil
	}
	if t.rest != "" {
		return fmt.Errorf("unexpected %q", t.rest[0])
	}
	return nil
}

// alternatives reads up to the end of the pattern or of a group.
func (t *translator) alternatives() error {
	for {
		pieces := 0
		for t.rest != "" && t.rest != "$" && t.rest[0] != '|' && t.rest[0] != ')' {
			if err := t.piece(); err != nil {
				return err
			}
			pieces++
		}
		if pieces == 0 {
			return errors.New("an alternative is empty")
		}
		if !t.accept('|') {
			return nil
		}
		t.out.WriteByte('|')
	}
}

// piece reads something that can be repeated, and its quantifier.
func (t *translator) piece() error {
	if err := t.atom(); err != nil {
		return err
	}
	if t.rest == "" || strings.IndexByte("*+?{", t.rest[0]) < 0 {
		return nil
	}
	if t.rest[0] == '{' {
		if err := t.bounds(); err != nil {
			return err
		}
	} else {
		t.out.WriteRune(t.rune())
	}
	if t.rest != "" && strings.IndexByte("*+?{", t.rest[0]) >= 0 {
		return errors.New("two quantifiers in a row")
	}
	return nil
}

// bounds reads {n}, {n,} or {n,m}.
func (t *translator) bounds() error {
	inside, rest, ok := strings.Cut(t.rest[1:], "}")
	low, high, both := strings.Cut(inside, ",")
	n, lowOK := count(low)
	m, highOK := count(high)
	if !ok || !lowOK || both && high != "" && (!highOK || m < n) {
		return errors.New("a repetition must be {n}, {n,} or {n,m}")
	}
	t.rest = rest
	t.out.WriteString("{" + inside + "}")
	return nil
}

func count(digits string) (int, bool) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

func (t *translator) atom() error {
	switch r := t.rune(); r {
	case '(':
		return t.group()
	case '[':
		return t.set()
	case '.':
		t.out.WriteByte('.')
	case '\\':
		return t.escaped()
	case '*', '+', '?', '{':
		return fmt.Errorf("nothing to repeat before %q", r)
	case '^', '$':
		return fmt.Errorf("%q can only be at the start or the end of the pattern", r)
	default:
		t.literal(r)
	}
	return nil
}

func (t *translator) group() error {
	if t.depth++; t.depth > MaxDepth {
		return fmt.Errorf("groups are more than %d levels deep", MaxDepth)
	}
	t.out.WriteString("(?:")
	if strings.HasPrefix(t.rest, "?") {
		return errors.New("(? is not supported")
	}
	if err := t.alternatives(); err != nil {
		return err
	}
	if !t.accept(')') {
		return errors.New("a group is not closed")
	}
	t.depth--
	t.out.WriteByte(')')
	return nil
}

// classes are what stands for a kind of character, as the inside of a set.
var classes = map[rune]string{
	'd': `0-9`, 'w': `0-9A-Za-z_`, 's': `\t\n\v\f\r `,
	'D': `\x00-/:-\x{10FFFF}`, 'W': "\\x00-/:-@\\[-\\^`{-\\x{10FFFF}", 'S': `\x00-\x08\x0E-\x1F!-\x{10FFFF}`,
}

// escaped reads what follows a backslash outside of a set.
func (t *translator) escaped() error {
	r := t.rune()
	if class, ok := classes[r]; ok {
		t.out.WriteString("[" + class + "]")
		return nil
	}
	r, err := literalEscape(r)
	if err == nil {
		t.literal(r)
	}
	return err
}

// literalEscape returns the character that an escape stands for.
func literalEscape(r rune) (rune, error) {
	switch {
	case r == 't':
		return '\t', nil
	case r == 'n':
		return '\n', nil
	case r == 'r':
		return '\r', nil
	case r == utf8.RuneError:
		return r, errors.New("a backslash at the end")
	case r < utf8.RuneSelf && isNameByte(byte(r)) && r != '_':
		return r, fmt.Errorf(`\%c is not supported`, r)
	}
	return r, nil
}

// literal writes one character, as a set if its case does not matter.
func (t *translator) literal(r rune) {
	if !t.ignoreCase || unicode.SimpleFold(r) == r {
		t.out.WriteString(quote(r))
		return
	}
	t.out.WriteByte('[')
	t.folded(r)
	t.out.WriteByte(']')
}

// folded writes a character of a set in both cases. A folding that leads out of
// ASCII is left out: /[a-z]/i must not match the Kelvin sign.
func (t *translator) folded(r rune) {
	t.out.WriteString(quote(r))
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if (f < utf8.RuneSelf) == (r < utf8.RuneSelf) {
			t.out.WriteString(quote(f))
		}
	}
}

// quote spells a character such that it means itself, also in a set.
func quote(r rune) string {
	if r < utf8.RuneSelf && !isNameByte(byte(r)) {
		return fmt.Sprintf(`\x%02X`, r)
	}
	return string(r)
}

// set reads [set] or [^set], behind its bracket.
func (t *translator) set() error {
	t.out.WriteByte('[')
	if t.accept('^') {
		t.out.WriteByte('^')
	}
	if strings.HasPrefix(t.rest, "]") {
		return errors.New("a set is empty")
	}
	for !t.accept(']') {
		if t.rest == "" {
			return errors.New("a set is not closed")
		}
		if err := t.setItem(); err != nil {
			return err
		}
	}
	t.out.WriteByte(']')
	return nil
}

// setItem reads a character, a class or a range. A dash beside a class, or at an
// end of the set, means itself.
func (t *translator) setItem() error {
	low, class, err := t.setRune()
	if err != nil || class != "" {
		t.out.WriteString(class)
		return err
	}
	if len(t.rest) < 2 || t.rest[0] != '-' || t.rest[1] == ']' {
		return t.charRange(low, low)
	}
	before := t.rest
	t.rest = t.rest[1:]
	high, class, err := t.setRune()
	if err != nil {
		return err
	}
	if class != "" { // [a-\w] is a, a dash, and \w
		t.rest = before
		return t.charRange(low, low)
	}
	return t.charRange(low, high)
}

// setRune reads a character of a set, or a class.
func (t *translator) setRune() (r rune, class string, err error) {
	if r = t.rune(); r != '\\' {
		return r, "", nil
	}
	r = t.rune()
	if class, ok := classes[r]; ok {
		return 0, class, nil
	}
	r, err = literalEscape(r)
	return r, "", err
}

// maxFolded is the largest range whose characters beyond ASCII are folded.
const maxFolded = 1024

// charRange writes a range of characters.
func (t *translator) charRange(low, high rune) error {
	if low > high {
		return errors.New("a range is upside down")
	}
	t.out.WriteString(quote(low) + "-" + quote(high))
	if !t.ignoreCase {
		return nil
	}
	for r := low; r <= min(high, unicode.MaxASCII); r++ {
		if unicode.IsLetter(r) {
			t.folded(r)
		}
	}
	if low = max(low, utf8.RuneSelf); high-low < maxFolded {
		for r := low; r <= high; r++ {
			if unicode.SimpleFold(r) != r {
				t.folded(r)
			}
		}
	}
	return nil
}
