// Package manual shows the pages of docs as text for a terminal, as a web site, and as
// man pages. All three come from the same Markdown, so there is one manual.
//
// Parse turns a page into blocks; Text, HTML and Man print blocks. The Markdown is the part
// of it that our pages use: headings, paragraphs, lists, tables, code in fences or
// indented, comments, and in a line code, strong and emphasized text, links and pictures.
// There is no other HTML. What is not understood is shown as it is written, never lost.
package manual

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// A Kind says what a block is.
type Kind int

// The kinds of blocks.
const (
	Heading Kind = iota
	Paragraph
	Code
	List
	Table
	Comment // of HTML: for programs that read the page, not for people
)

// A Block is a piece of a page.
type Block struct {
	Kind     Kind
	Line     int       // where it begins, from 1
	Level    int       // of a heading, from 1
	ID       string    // of a heading: what links lead to it by
	Text     string    // of a heading or paragraph as Markdown, of code and comments as it is
	Language string    // of code: all words after the fence
	First    int       // of a list: the number of its first item, 0 if it has no numbers
	Items    [][]Block // of a list
	Rows     [][]string
}

var (
	heading   = regexp.MustCompile(`^(#{1,6}) +(.+)$`)
	fence     = regexp.MustCompile("^```(.*)$")
	item      = regexp.MustCompile(`^(?:[-*]|([0-9]{1,4})\.) +`)
	firstItem = regexp.MustCompile(`^(?:[-*]|1\.) +`) // another number may be the end of a sentence
	tableRule = regexp.MustCompile(`^\|[-:| ]+\|$`)
)

// Parse returns the blocks of a page.
func Parse(page string) []Block {
	p := parser{ids: map[string]int{}}
	return p.blocks(strings.Split(strings.TrimSuffix(page, "\n"), "\n"), 1)
}

// A parser remembers the names of the headings of a page, so that no two are the same.
type parser struct{ ids map[string]int }

func (p *parser) blocks(lines []string, number int) []Block {
	var all []Block
	for i := 0; i < len(lines); {
		if strings.TrimSpace(lines[i]) == "" {
			i++
			continue
		}
		b, used := p.block(lines[i:], number+i)
		b.Line = number + i
		all = append(all, b)
		i += used
	}
	return all
}

// block returns the block that the lines begin with, and how many of them it takes.
func (p *parser) block(lines []string, number int) (Block, int) {
	first := lines[0]
	switch {
	case heading.MatchString(first):
		m := heading.FindStringSubmatch(first)
		return Block{Kind: Heading, Level: len(m[1]), Text: m[2], ID: p.id(m[2])}, 1
	case fence.MatchString(first):
		return fenced(lines)
	case strings.HasPrefix(first, "<!--"):
		return comment(lines)
	case strings.HasPrefix(first, "    "):
		return indented(lines)
	case strings.HasPrefix(first, "|"):
		return table(lines)
	case item.MatchString(first):
		return p.list(lines, number)
	}
	used := 1
	for used < len(lines) && !beginsBlock(lines[used]) {
		used++
	}
	return Block{Kind: Paragraph, Text: joined(lines[:used])}, used
}

// beginsBlock reports whether a line ends the paragraph before it.
func beginsBlock(line string) bool {
	return strings.TrimSpace(line) == "" || heading.MatchString(line) || fence.MatchString(line) || firstItem.MatchString(line) ||
		strings.HasPrefix(line, "|") || strings.HasPrefix(line, "<!--")
}

func joined(lines []string) string {
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		trimmed[i] = strings.TrimSpace(line)
	}
	return strings.Join(trimmed, " ")
}

// id returns the name that links lead to a heading by: as GitHub makes it.
func (p *parser) id(text string) string {
	var name strings.Builder
	for _, r := range strings.ToLower(Plain(text)) {
		switch {
		case r == ' ':
			name.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			name.WriteRune(r)
		}
	}
	id := name.String()
	p.ids[id]++
	if n := p.ids[id]; n > 1 {
		id += "-" + strconv.Itoa(n-1)
	}
	return id
}

func fenced(lines []string) (Block, int) {
	b := Block{Kind: Code, Language: strings.TrimSpace(strings.TrimPrefix(lines[0], "```"))}
	end := 1
	for end < len(lines) && strings.TrimRight(lines[end], " ") != "```" {
		end++
	}
	b.Text = strings.Join(lines[1:end], "\n")
	return b, min(end+1, len(lines))
}

func indented(lines []string) (Block, int) {
	end := 0
	for i, line := range lines {
		if strings.HasPrefix(line, "    ") {
			end = i + 1
		} else if strings.TrimSpace(line) != "" {
			break
		}
	}
	code := make([]string, end)
	for i, line := range lines[:end] {
		code[i] = strings.TrimPrefix(line, "    ")
	}
	return Block{Kind: Code, Text: strings.Join(code, "\n")}, end
}

func comment(lines []string) (Block, int) {
	end := 0
	for end < len(lines)-1 && !strings.Contains(lines[end], "-->") {
		end++
	}
	text := strings.TrimPrefix(strings.Join(lines[:end+1], "\n"), "<!--")
	text, _, _ = strings.Cut(text, "-->")
	return Block{Kind: Comment, Text: strings.TrimSpace(text)}, end + 1
}

func table(lines []string) (Block, int) {
	b := Block{Kind: Table}
	used := 0
	for ; used < len(lines) && strings.HasPrefix(lines[used], "|"); used++ {
		if !tableRule.MatchString(lines[used]) {
			b.Rows = append(b.Rows, cells(lines[used]))
		}
	}
	return b, used
}

// cells returns the cells of a row. A bar inside code, or after a backslash, is part of a cell.
func cells(row string) []string {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	var all []string
	var cell strings.Builder
	inCode := false
	for i := 0; i < len(row); i++ {
		switch c := row[i]; {
		case c == '\\' && i+1 < len(row) && row[i+1] == '|':
			i++
			cell.WriteByte('|')
		case c == '|' && !inCode:
			all = append(all, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			inCode = inCode != (c == '`')
			cell.WriteByte(c)
		}
	}
	return append(all, strings.TrimSpace(cell.String()))
}

func (p *parser) list(lines []string, number int) (Block, int) {
	b := Block{Kind: List}
	if m := item.FindStringSubmatch(lines[0]); m[1] != "" {
		b.First, _ = strconv.Atoi(m[1])
	}
	used := 0
	for used < len(lines) {
		mark := item.FindString(lines[used])
		if mark == "" || (item.FindStringSubmatch(lines[used])[1] != "") != (b.First > 0) {
			break
		}
		inside := []string{lines[used][len(mark):]}
		next := used + 1
		for next < len(lines) && belongs(lines, next, len(mark)) {
			inside = append(inside, dedented(lines[next], len(mark)))
			next++
		}
		b.Items = append(b.Items, p.blocks(inside, number+used))
		for next < len(lines) && strings.TrimSpace(lines[next]) == "" {
			next++
		}
		used = next
	}
	for used > 0 && strings.TrimSpace(lines[used-1]) == "" {
		used--
	}
	return b, used
}

// belongs reports whether a line is part of the item before it: it is indented, or goes on with its text.
func belongs(lines []string, i, indent int) bool {
	if strings.HasPrefix(lines[i], strings.Repeat(" ", indent)) {
		return true
	}
	if strings.TrimSpace(lines[i]) == "" {
		return i+1 < len(lines) && strings.HasPrefix(lines[i+1], strings.Repeat(" ", indent))
	}
	return !beginsBlock(lines[i]) && !item.MatchString(lines[i])
}

func dedented(line string, indent int) string {
	return strings.TrimPrefix(line, strings.Repeat(" ", min(indent, len(line)-len(strings.TrimLeft(line, " ")))))
}
