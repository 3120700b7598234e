package expr

import (
	"fmt"
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

const (
	// MaxDepth bounds nesting: parentheses, arguments, unary operators and the
	// branches of ?: count.
	MaxDepth = 50
	// maxMembers bounds a run of members and calls, a.b().c()…
	maxMembers = 100
)

// A Syntax is an expression that was parsed and not yet checked.
type Syntax struct {
	root     node
	patterns int
}

// Parse reads an expression.
func Parse(source string) (s *Syntax, problem *Error) {
	p := &parser{scanner: scanner{source: source}}
	defer func() {
		if cause := recover(); cause != nil {
			var ok bool
			if problem, ok = cause.(*Error); !ok {
				panic(cause)
			}
		}
	}()
	p.advance()
	root := p.expression()
	if p.token.kind != tokenEnd {
		p.unexpected()
	}
	return &Syntax{root, p.patterns}, nil
}

// A parser descends by precedence. Like the scanner it ends by panic(*Error).
type parser struct {
	scanner
	token token // the next one
	depth int
}

func (p *parser) advance() token {
	t := p.token
	p.token = p.next()
	return t
}

// accept reads the token if it is this operator.
func (p *parser) accept(operator string) bool {
	if !p.token.is(operator) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(operator string) {
	if !p.accept(operator) {
		p.unexpected()
	}
}

// unexpected gives up at the next token.
func (p *parser) unexpected() {
	switch t := p.token; {
	case t.kind == tokenEnd:
		p.fail(t.offset, "Unexpected end of expression.")
	case t.is("="):
		p.fail(t.offset, "Rule expressions may not contain assignments.")
	default:
		p.fail(t.offset, "Unexpected '%s'.", t.text)
	}
}

// nest counts one level of nesting around read.
func (p *parser) nest(read func() node) node {
	if p.depth++; p.depth > MaxDepth {
		p.fail(p.token.offset, "The expression is more than %d levels deep.", MaxDepth)
	}
	defer func() { p.depth-- }()
	return read()
}

// expression reads a whole expression: ?: binds weakest, and to the right.
func (p *parser) expression() node {
	return p.nest(func() node {
		cond := p.binary(0)
		if !p.token.is("?") {
			return cond
		}
		t := &ternary{mark: mark{offset: cond.at().offset}, cond: cond}
		p.advance()
		t.yes = p.expression()
		p.expect(":")
		t.no = p.expression()
		return t
	})
}

// levels are the binary operators, those that bind weakest first. All of them
// bind to the left.
var levels = [][]string{
	{"||"},
	{"&&"},
	{"==", "!=", "===", "!=="},
	{"<", "<=", ">", ">="},
	{"+", "-"},
	{"*", "/", "%"},
}

// binary reads operators of a level and of those that bind stronger.
func (p *parser) binary(level int) node {
	if level == len(levels) {
		return p.unary()
	}
	first := p.binary(level + 1)
	var links []link
	for p.token.kind == tokenOperator && slices.Contains(levels[level], p.token.text) {
		op := p.advance().text
		links = append(links, link{op, p.binary(level + 1)})
	}
	if links == nil {
		return first
	}
	return &chain{mark: mark{offset: first.at().offset}, first: first, links: links}
}

func (p *parser) unary() node {
	if !p.token.is("!") && !p.token.is("-") {
		return p.postfix()
	}
	op := p.advance()
	x := p.nest(p.unary)
	return &unary{mark: mark{offset: op.offset}, op: op.text, x: x}
}

// postfix reads an operand with its members and calls.
func (p *parser) postfix() node {
	x := p.primary()
	for range maxMembers {
		switch {
		case p.accept("."):
			if p.token.kind != tokenName {
				p.unexpected()
			}
			name := p.advance()
			x = &member{mark: mark{offset: name.offset}, target: x, name: name.text}
		case p.token.is("["):
			x = p.index(x)
		case p.token.is("("):
			offset := p.advance().offset
			if m, ok := x.(*member); ok {
				offset = m.offset
			}
			x = &call{mark: mark{offset: offset}, callee: x, args: p.items(")")}
		default:
			return x
		}
	}
	p.fail(p.token.offset, "More than %d members in a row.", maxMembers)
	return nil
}

// index reads [expression]. A literal string is the same as a name.
func (p *parser) index(target node) node {
	m := &member{mark: mark{offset: p.advance().offset}, target: target}
	index := p.expression()
	if l, ok := index.(*literal); ok && l.leaf.Kind() == tree.String {
		m.name = l.leaf.Text()
	} else {
		m.index = index
	}
	p.expect("]")
	return m
}

// items reads expressions separated by commas up to the closing operator.
func (p *parser) items(closing string) []node {
	var items []node
	if p.accept(closing) {
		return nil
	}
	for {
		items = append(items, p.expression())
		if p.accept(closing) {
			return items
		}
		p.expect(",")
	}
}

// primary reads a literal, a name, a pattern, or something in brackets.
func (p *parser) primary() node {
	t := p.token
	at := mark{offset: t.offset}
	switch {
	case t.kind == tokenLiteral:
		p.advance()
		return &literal{at, t.leaf}
	case t.kind == tokenName:
		p.advance()
		switch t.text {
		case "true", "false":
			return &literal{at, tree.BooleanLeaf(t.text == "true")}
		case "null":
			return &literal{mark: at}
		}
		return &variable{mark: at, name: t.text}
	case t.is("/"):
		pattern := p.pattern(t.offset)
		p.advance()
		return pattern
	case t.is("("):
		p.advance()
		x := p.expression()
		p.expect(")")
		return x
	case t.is("["):
		p.advance()
		return &list{at, p.items("]")}
	}
	p.unexpected()
	panic(fmt.Sprintf("unexpected returned at %d", t.offset))
}
