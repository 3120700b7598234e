package manual

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text returns blocks as text of lines that fit a width, for a terminal. Code and the
// words of a line are never cut.
func Text(blocks []Block, width int) string {
	t := textPrinter{width: max(width, 40)}
	t.blocks(blocks, "")
	return strings.TrimLeft(t.out.String(), "\n")
}

type textPrinter struct {
	out   strings.Builder
	width int
}

func (t *textPrinter) blocks(blocks []Block, indent string) {
	for _, b := range blocks {
		if b.Kind != Comment {
			t.out.WriteByte('\n')
			t.block(b, indent)
		}
	}
}

func (t *textPrinter) block(b Block, indent string) {
	switch b.Kind {
	case Heading:
		text := readable(b.Text)
		if b.Level <= 2 {
			text += "\n" + strings.Repeat(string("=-"[b.Level-1]), utf8.RuneCountInString(text))
		}
		t.lines(text, indent)
	case Paragraph:
		t.lines(wrapped(readable(b.Text), t.width-len(indent)), indent)
	case Code:
		t.lines(b.Text, indent+"    ")
	case List:
		t.list(b, indent)
	case Table:
		t.table(b, indent)
	case Comment:
	}
}

func (t *textPrinter) lines(text, indent string) {
	for line := range strings.SplitSeq(text, "\n") {
		t.out.WriteString(strings.TrimRight(indent+line, " ") + "\n")
	}
}

func (t *textPrinter) list(b Block, indent string) {
	for i, inside := range b.Items {
		mark := "- "
		if b.First > 0 {
			mark = fmt.Sprintf("%d. ", b.First+i)
		}
		below := textPrinter{width: t.width}
		below.blocks(inside, indent+strings.Repeat(" ", len(mark)))
		text := strings.TrimLeft(below.out.String(), "\n")
		t.out.WriteString(indent + mark + strings.TrimPrefix(text, indent+strings.Repeat(" ", len(mark))))
	}
}

// table prints columns where a row fits a line. Else each row is its first cell, and
// the others below it.
func (t *textPrinter) table(b Block, indent string) {
	var widths []int
	sum := len(indent)
	for _, row := range b.Rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(readable(cell)))
		}
	}
	for _, w := range widths {
		sum += w + 2
	}
	for n, row := range b.Rows {
		if sum-2 <= t.width {
			t.lines(columns(row, widths), indent)
			if n == 0 {
				t.lines(strings.Repeat("-", sum-2-len(indent)), indent)
			}
			continue
		}
		if n > 0 {
			t.row(b.Rows[0], row, indent)
		}
	}
}

func columns(row []string, widths []int) string {
	var line strings.Builder
	for i, cell := range row {
		text := readable(cell)
		line.WriteString(text + strings.Repeat(" ", widths[i]+2-utf8.RuneCountInString(text)))
	}
	return line.String()
}

// row prints a row over several lines; with more than two columns, each cell after its name.
func (t *textPrinter) row(names, row []string, indent string) {
	t.lines(readable(row[0]), indent)
	for i, cell := range row[1:] {
		if cell == "" {
			continue
		}
		text := readable(cell)
		if len(row) > 2 && i+1 < len(names) && names[i+1] != "" {
			text = readable(names[i+1]) + ": " + text
		}
		t.lines(wrapped(text, t.width-len(indent)-4), indent+"    ")
	}
}

// readable returns a line of Markdown as a person reads it: without its marks, and with
// the topic of a page that a link leads to.
func readable(line string) string {
	var text strings.Builder
	for _, s := range spans(line) {
		switch s.kind {
		case plainText, codeText:
			text.WriteString(s.text)
		case strongText, emphasis:
			text.WriteString(readable(s.text))
		case picture:
			text.WriteString("[picture: " + s.text + "]")
		case link:
			text.WriteString(readableLink(readable(s.text), s.url))
		}
	}
	return text.String()
}

func readableLink(text, url string) string {
	file, _, _ := strings.Cut(url, "#")
	topic, isPage := strings.CutSuffix(file, ".md")
	switch {
	case isPage && !strings.Contains(topic, "/") && text == file:
		return "livetree docs " + topic
	case isPage && !strings.Contains(topic, "/"):
		return text + " (livetree docs " + topic + ")"
	case strings.Contains(url, "://") && url != text:
		return text + " (" + url + ")"
	}
	return text
}

func wrapped(text string, width int) string {
	var out strings.Builder
	at := 0
	for word := range strings.FieldsSeq(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case at == 0:
		case at+1+length > width:
			out.WriteByte('\n')
			at = 0
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += length
	}
	return out.String()
}
