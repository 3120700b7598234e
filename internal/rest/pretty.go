package rest

import "io"

// A prettyWriter lays out compact JSON for people as it passes through: two
// spaces for each level of objects, spaces around colons, arrays on one line.
type prettyWriter struct {
	w   io.Writer
	buf []byte

	stack   []byte // the open brackets
	level   int    // how many of them are braces
	fresh   bool   // the innermost one was opened just now
	quoted  bool   // inside a string
	escaped bool   // behind a backslash
}

func (p *prettyWriter) Write(text []byte) (int, error) {
	for _, c := range text {
		p.byte(c)
		if len(p.buf) > bufferBytes/2 {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(text), nil
}

func (p *prettyWriter) flush() error {
	_, err := p.w.Write(p.buf)
	p.buf = p.buf[:0]
	return err
}

// Close writes what is left.
func (p *prettyWriter) Close() error { return p.flush() }

func (p *prettyWriter) byte(c byte) {
	if p.quoted {
		p.buf = append(p.buf, c)
		switch {
		case p.escaped:
			p.escaped = false
		case c == '\\':
			p.escaped = true
		case c == '"':
			p.quoted = false
		}
		return
	}
	switch c {
	case '}', ']':
		p.close(c)
		return
	case ',':
		p.buf = append(p.buf, ',')
		p.item()
		return
	case ':':
		p.buf = append(p.buf, " : "...)
		return
	}
	if p.fresh {
		p.fresh = false
		p.item()
	}
	p.buf = append(p.buf, c)
	switch c {
	case '{':
		p.level++
		fallthrough
	case '[':
		p.stack = append(p.stack, c)
		p.fresh = true
	case '"':
		p.quoted = true
	}
}

// item moves to where the next member or element goes.
func (p *prettyWriter) item() {
	if p.stack[len(p.stack)-1] == '[' {
		p.buf = append(p.buf, ' ')
		return
	}
	p.line()
}

func (p *prettyWriter) line() {
	p.buf = append(p.buf, '\n')
	for range p.level {
		p.buf = append(p.buf, "  "...)
	}
}

func (p *prettyWriter) close(c byte) {
	p.stack = p.stack[:len(p.stack)-1]
	if c == '}' {
		p.level--
	}
	if c == '}' && !p.fresh {
		p.line()
	} else {
		p.buf = append(p.buf, ' ')
	}
	p.fresh = false
	p.buf = append(p.buf, c)
}
