package manual

import (
	"fmt"
	"html"
	"strings"
)

// HTML returns blocks as HTML. Links go where lead says, and are shown as it says if that is not
// ""; a link that leads to "" is shown as text.
func HTML(blocks []Block, lead func(url, text string) (to, shown string)) string {
	h := htmlPrinter{lead: lead}
	h.blocks(blocks)
	return h.out.String()
}

type htmlPrinter struct {
	out  strings.Builder
	lead func(url, text string) (to, shown string)
}

func (h *htmlPrinter) print(format string, args ...any) { fmt.Fprintf(&h.out, format, args...) }

func (h *htmlPrinter) blocks(blocks []Block) {
	for _, b := range blocks {
		switch b.Kind {
		case Heading:
			h.heading(b)
		case Paragraph:
			h.print("<p>%s</p>\n", h.line(b.Text))
		case Code:
			// The block scrolls, so the keyboard must reach it.
			h.print("<pre tabindex=\"0\"><code>%s</code></pre>\n", html.EscapeString(b.Text))
		case List:
			h.list(b)
		case Table:
			h.table(b)
		case Comment:
		}
	}
}

func (h *htmlPrinter) heading(b Block) {
	if b.Level == 1 {
		h.print("<h1 id=\"%s\">%s</h1>\n", html.EscapeString(b.ID), h.line(b.Text))
		return
	}
	id, name := html.EscapeString(b.ID), html.EscapeString(Plain(b.Text))
	h.print("<h%d id=\"%s\">%s <a class=\"here\" href=\"#%s\" aria-label=\"Link to: %s\">#</a></h%d>\n", b.Level, id, h.line(b.Text), id, name, b.Level)
}

func (h *htmlPrinter) list(b Block) {
	name, attributes := "ul", ""
	if b.First > 0 {
		name = "ol"
	}
	if b.First > 1 {
		attributes = fmt.Sprintf(" start=\"%d\"", b.First)
	}
	h.print("<%s%s>\n", name, attributes)
	for _, inside := range b.Items {
		h.print("<li>")
		if len(inside) == 1 && inside[0].Kind == Paragraph {
			h.print("%s", h.line(inside[0].Text))
		} else {
			h.blocks(inside)
		}
		h.print("</li>\n")
	}
	h.print("</%s>\n", name)
}

func (h *htmlPrinter) table(b Block) {
	h.print("<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>\n")
	for n, row := range b.Rows {
		cell, attributes := "td", ""
		if n == 0 {
			cell, attributes = "th", " scope=\"col\""
		}
		h.print("<tr>")
		for _, text := range row {
			h.print("<%s%s>%s</%s>", cell, attributes, h.line(text), cell)
		}
		h.print("</tr>\n")
	}
	h.print("</table></div>\n")
}

// line returns a line of Markdown as HTML.
func (h *htmlPrinter) line(line string) string {
	var out strings.Builder
	for _, s := range spans(line) {
		switch s.kind {
		case plainText:
			out.WriteString(html.EscapeString(s.text))
		case codeText:
			out.WriteString("<code>" + html.EscapeString(s.text) + "</code>")
		case strongText:
			out.WriteString("<strong>" + h.line(s.text) + "</strong>")
		case emphasis:
			out.WriteString("<em>" + h.line(s.text) + "</em>")
		case link:
			out.WriteString(h.link(s))
		case picture:
			to, _ := h.lead(s.url, s.text)
			fmt.Fprintf(&out, "<img src=\"%s\" alt=\"%s\" loading=\"lazy\">", html.EscapeString(to), html.EscapeString(s.text))
		}
	}
	return out.String()
}

func (h *htmlPrinter) link(s span) string {
	to, text := h.lead(s.url, s.text)
	if text != "" {
		text = html.EscapeString(text)
	} else {
		text = h.line(s.text)
	}
	if to == "" {
		return text
	}
	return fmt.Sprintf("<a href=\"%s\">%s</a>", html.EscapeString(to), text)
}
