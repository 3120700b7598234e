package manual

import "strings"

// A spanKind says what a span is.
type spanKind int

const (
	plainText spanKind = iota
	codeText
	strongText
	emphasis
	link
	picture
)

// A span is a piece of a line. Its text is Markdown where spans may be in it: in strong and
// emphasized text and in links.
type span struct {
	kind spanKind
	text string
	url  string
}

// spans cuts a line into its pieces.
func spans(line string) []span {
	var all []span
	var text strings.Builder
	for i := 0; i < len(line); {
		s, used := spanAt(line, i)
		if used == 0 {
			text.WriteByte(line[i])
			i++
			continue
		}
		if text.Len() > 0 {
			all = append(all, span{text: text.String()})
			text.Reset()
		}
		all = append(all, s)
		i += used
	}
	if text.Len() > 0 {
		all = append(all, span{text: text.String()})
	}
	return all
}

// spanAt returns the span that begins at a place, and its length; 0 if there is only text.
func spanAt(line string, i int) (span, int) {
	rest := line[i:]
	switch {
	case rest[0] == '\\' && len(rest) > 1 && strings.IndexByte("\\`*_[]<>|#-.", rest[1]) >= 0:
		return span{text: rest[1:2]}, 2
	case rest[0] == '`':
		ticks := len(rest) - len(strings.TrimLeft(rest, "`"))
		mark := rest[:ticks]
		if end := strings.Index(rest[ticks:], mark); end > 0 {
			return span{kind: codeText, text: strings.TrimSpace(rest[ticks : ticks+end])}, end + 2*ticks
		}
	case strings.HasPrefix(rest, "**"):
		if end := strings.Index(rest[2:], "**"); end > 0 {
			return span{kind: strongText, text: rest[2 : 2+end]}, end + 4
		}
	case rest[0] == '*' && (i == 0 || strings.IndexByte(" (|", line[i-1]) >= 0):
		if end := strings.IndexByte(rest[1:], '*'); end > 0 && rest[1] != ' ' {
			return span{kind: emphasis, text: rest[1 : 1+end]}, end + 2
		}
	case strings.HasPrefix(rest, "!["):
		if text, url, used := target(rest[1:]); used > 0 {
			return span{kind: picture, text: text, url: url}, used + 1
		}
	case rest[0] == '[':
		if text, url, used := target(rest); used > 0 {
			return span{kind: link, text: text, url: url}, used
		}
	}
	return span{}, 0
}

// target reads [text](url).
func target(rest string) (text, url string, used int) {
	depth, end := 0, -1
	for i := 0; i < len(rest) && end < 0; i++ {
		switch rest[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				end = i
			}
		}
	}
	if end < 0 || end+1 >= len(rest) || rest[end+1] != '(' {
		return "", "", 0
	}
	length := strings.IndexByte(rest[end+2:], ')')
	if length < 0 {
		return "", "", 0
	}
	return rest[1:end], rest[end+2 : end+2+length], end + 3 + length
}

// Plain returns a line without its marks.
func Plain(line string) string {
	var text strings.Builder
	for _, s := range spans(line) {
		if s.kind == plainText || s.kind == codeText || s.kind == picture {
			text.WriteString(s.text)
		} else {
			text.WriteString(Plain(s.text))
		}
	}
	return text.String()
}

// Links returns where the links and pictures of blocks lead.
func Links(blocks []Block) []string {
	var all []string
	each(blocks, func(line string) {
		all = append(all, linksOf(line)...)
	})
	return all
}

func linksOf(line string) []string {
	var all []string
	for _, s := range spans(line) {
		switch s.kind {
		case link:
			all = append(append(all, s.url), linksOf(s.text)...)
		case picture:
			all = append(all, s.url)
		case strongText, emphasis:
			all = append(all, linksOf(s.text)...)
		case plainText, codeText:
		}
	}
	return all
}

// each calls a function with every line of Markdown in blocks.
func each(blocks []Block, do func(line string)) {
	for _, b := range blocks {
		switch b.Kind {
		case Heading, Paragraph:
			do(b.Text)
		case List:
			for _, inside := range b.Items {
				each(inside, do)
			}
		case Table:
			for _, row := range b.Rows {
				for _, cell := range row {
					do(cell)
				}
			}
		case Code, Comment:
		}
	}
}
