// Package docs is the manual, so that the command has it where there is no
// network: every page in this directory, under the name of its file without .md.
//
// A page begins with a heading, which is its title. README.md is no page of its own: it
// names all pages in the order in which they are read, by parts. A new page needs its
// file and a line there. The decisions are not in here: they are for readers of the source.
package docs

import (
	"bufio"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed *.md *.json *.txt images/*.png images/*.svg
var files embed.FS

//go:embed README.md
var index string

const extension = ".md"

// A Page is one page of the manual.
type Page struct {
	Topic string // what it is asked for by
	Title string
	Part  string // of the manual, which it belongs to
	Text  string // Markdown, which is made to be read as it is
}

// Index returns README.md, which introduces the pages in their order.
func Index() string { return index }

// Files returns the pages and what they show and link to, by their names in this directory.
func Files() fs.FS { return files }

// entry is a line of README.md that names a part or a page.
var entry = regexp.MustCompile(`(?m)^(?:## (.+)|(?:-|\d+\.) \[[^\]]+\]\(([a-z-]+)\.md\).*)$`)

// Pages returns all pages in the order in which they are read.
func Pages() ([]Page, error) {
	var all []Page
	part := ""
	for _, m := range entry.FindAllStringSubmatch(index, -1) {
		if m[1] != "" {
			part = m[1]
			continue
		}
		text, err := files.ReadFile(m[2] + extension)
		if err != nil {
			return nil, fmt.Errorf("a page of the manual: %w", err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		all = append(all, Page{Topic: m[2], Title: title, Part: part, Text: string(text)})
	}
	return all, nil
}

// A Line is a line of a page that a search has found.
type Line struct {
	Topic  string
	Number int
	Text   string
}

// Search returns the lines that hold a word, in any letter case.
func Search(pages []Page, word string) []Line {
	var found []Line
	word = strings.ToLower(word)
	for _, p := range pages {
		lines := bufio.NewScanner(strings.NewReader(p.Text))
		lines.Buffer(nil, len(p.Text)+1)
		for n := 1; lines.Scan(); n++ {
			if strings.Contains(strings.ToLower(lines.Text()), word) {
				found = append(found, Line{p.Topic, n, lines.Text()})
			}
		}
	}
	return found
}
