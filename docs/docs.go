// Package docs is the manual, so that the command has it where there is no
// network: every page in this directory, under the name of its file without .md.
//
// A page begins with a heading, which is its title. A new page needs nothing but
// its file. The decisions are not in here: they are for readers of the source.
package docs

import (
	"bufio"
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed *.md
var pages embed.FS

const extension = ".md"

// A Page is one page of the manual.
type Page struct {
	Topic string // what it is asked for by
	Title string
	Text  string // Markdown, which is made to be read as it is
}

// Pages returns all pages by topic.
func Pages() ([]Page, error) {
	names, err := fs.Glob(pages, "*"+extension)
	if err != nil {
		return nil, err
	}
	var all []Page
	for _, name := range names {
		text, err := pages.ReadFile(name)
		if err != nil {
			return nil, err
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		all = append(all, Page{Topic: strings.TrimSuffix(path.Base(name), extension), Title: title, Text: string(text)})
	}
	slices.SortFunc(all, func(a, b Page) int { return strings.Compare(a.Topic, b.Topic) })
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
