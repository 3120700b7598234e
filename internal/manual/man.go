package manual

import (
	"fmt"
	"strings"
)

// Man returns a page as a man page of section 7.
func Man(topic, title, version string, blocks []Block) string {
	name := "livetree-" + topic
	m := manPrinter{}
	m.print(".TH %s 7 \"\" %s Livetree\n", quotedRoff(strings.ToUpper(name)), quotedRoff("Livetree "+version))
	m.print(".SH NAME\n%s \\- %s\n", roff(name), roff(Plain(title)))
	for i, b := range blocks {
		if i > 0 || b.Kind != Heading { // the first heading is the title
			m.block(b)
		}
	}
	m.print(".SH SEE ALSO\n.BR livetree (1)\n")
	return m.out.String()
}

type manPrinter struct{ out strings.Builder }

func (m *manPrinter) print(format string, args ...any) { fmt.Fprintf(&m.out, format, args...) }

func (m *manPrinter) block(b Block) {
	switch b.Kind {
	case Heading:
		macro := ".SS"
		if b.Level <= 2 {
			macro = ".SH"
		}
		m.print("%s %s\n", macro, quotedRoff(Plain(b.Text)))
	case Paragraph:
		m.print(".PP\n%s\n", roffLine(b.Text))
	case Code:
		m.print(".PP\n.RS 4\n.nf\n")
		for line := range strings.SplitSeq(b.Text, "\n") {
			m.print("%s\n", roff(line))
		}
		m.print(".fi\n.RE\n")
	case List:
		m.list(b)
	case Table:
		m.table(b)
	case Comment:
	}
}

func (m *manPrinter) list(b Block) {
	for i, inside := range b.Items {
		mark := `\(bu`
		if b.First > 0 {
			mark = fmt.Sprintf("%d.", b.First+i)
		}
		m.print(".IP %s 4\n", mark)
		for n, below := range inside {
			if n == 0 && below.Kind == Paragraph {
				m.print("%s\n", roffLine(below.Text))
				continue
			}
			m.print(".RS 4\n")
			m.block(below)
			m.print(".RE\n")
		}
	}
}

// table prints each row as its first cell and the others below, which fits every screen.
func (m *manPrinter) table(b Block) {
	for _, row := range b.Rows[min(1, len(b.Rows)):] {
		m.print(".TP\n%s\n", roffLine(row[0]))
		for i, cell := range row[1:] {
			if cell == "" {
				continue
			}
			text := roffLine(cell)
			if len(row) > 2 && i+1 < len(b.Rows[0]) && b.Rows[0][i+1] != "" {
				text = roffLine(b.Rows[0][i+1] + ": " + cell)
			}
			if i > 0 {
				m.print(".br\n")
			}
			m.print("%s\n", text)
		}
	}
}

// roffLine returns a line of Markdown as roff.
func roffLine(line string) string {
	var out strings.Builder
	for _, s := range spans(line) {
		switch s.kind {
		case plainText, picture:
			out.WriteString(escapeRoff(s.text))
		case codeText, strongText:
			out.WriteString(`\fB` + escapeRoff(Plain(s.text)) + `\fP`)
		case emphasis:
			out.WriteString(`\fI` + escapeRoff(Plain(s.text)) + `\fP`)
		case link:
			out.WriteString(escapeRoff(readableLink(readable(s.text), s.url)))
		}
	}
	return guarded(out.String())
}

func escapeRoff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
}

func roff(text string) string { return guarded(escapeRoff(text)) }

// guarded keeps a line that begins with a control character from being a request.
func guarded(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

func quotedRoff(text string) string {
	return `"` + strings.ReplaceAll(escapeRoff(text), `"`, `\(dq`) + `"`
}
