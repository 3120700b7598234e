package manual

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/livetree/livetree/docs"
)

//go:embed site/style.css site/search.js
var assets embed.FS

// indexTopic is the page that a site begins with.
const indexTopic = "index"

// WriteSite writes the manual as a web site into a directory, which it makes. The site needs no
// server: it also works from file:// addresses. Files that are there already are replaced;
// others are left alone.
func WriteSite(dir, version string) error {
	all, err := docs.Pages()
	if err != nil {
		return err
	}
	s := site{dir: dir, version: version, pages: all, files: docs.Files()}
	s.add(docs.Page{Topic: indexTopic, Title: "The Livetree manual", Text: docs.Index()})
	for _, p := range all {
		s.add(p)
	}
	err = errors.Join(s.copyFiles(), s.writeHeadings())
	return errors.Join(err, s.err)
}

// A site is written page by page, up to the first error.
type site struct {
	dir, version string
	pages        []docs.Page
	files        fs.FS
	headings     []foundHeading
	err          error
}

// A foundHeading is what the search of a site looks through.
type foundHeading struct {
	Page string `json:"page"`
	Text string `json:"text"`
	URL  string `json:"url"`
}

func (s *site) write(name, text string) {
	if s.err != nil {
		return
	}
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	if s.err = MakeDirectory(filepath.Dir(file)); s.err == nil {
		// The manual is to be read by everybody, unlike all else that commands write.
		s.err = os.WriteFile(file, []byte(text), 0o644)
	}
	if s.err == nil {
		s.err = os.Chmod(file, 0o644)
	}
}

// MakeDirectory makes a directory, and those above it, so that everybody can read them. Those that are there keep their mode.
func MakeDirectory(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if above := filepath.Dir(dir); above != dir {
		if err := MakeDirectory(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755) // whatever the umask is
}

func (s *site) add(p docs.Page) {
	blocks := Parse(p.Text)
	for _, b := range blocks {
		if b.Kind == Heading && p.Topic != indexTopic {
			s.headings = append(s.headings, foundHeading{p.Title, Plain(b.Text), p.Topic + ".html#" + b.ID})
		}
	}
	title := p.Title
	if p.Topic != indexTopic {
		title += " · Livetree"
	}
	s.write(p.Topic+".html", fmt.Sprintf(pageHTML, html.EscapeString(title), s.navigation(p.Topic), HTML(blocks, s.lead), s.neighbours(p.Topic), html.EscapeString(s.version)))
}

// pageHTML is a page: title, navigation, content, neighbours, version.
const pageHTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<link rel="stylesheet" href="style.css">
<script src="headings.js" defer></script>
<script src="search.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="name" href="index.html">Livetree</a>
<div class="search" role="search" hidden>
<label for="search">Search the headings</label>
<input id="search" type="search" autocomplete="off" spellcheck="false" aria-controls="found">
<ul id="found" aria-live="polite"></ul>
</div>
</header>
<div class="columns">
<nav aria-label="The manual">
%s</nav>
<main id="content" tabindex="-1">
%s<nav class="neighbours" aria-label="Before and after">
%s</nav>
<footer>Livetree %s</footer>
</main>
</div>
</body>
</html>
`

// navigation lists all pages, by the parts of the manual.
func (s *site) navigation(current string) string {
	var out strings.Builder
	part := ""
	for _, p := range s.pages {
		if p.Part != part {
			if part != "" {
				out.WriteString("</ul>\n")
			}
			part = p.Part
			fmt.Fprintf(&out, "<h2>%s</h2>\n<ul>\n", html.EscapeString(part))
		}
		here := ""
		if p.Topic == current {
			here = ` aria-current="page"`
		}
		fmt.Fprintf(&out, "<li><a href=\"%s.html\"%s>%s</a></li>\n", p.Topic, here, html.EscapeString(Plain(p.Title)))
	}
	return out.String() + "</ul>\n"
}

// neighbours links to the pages before and after one.
func (s *site) neighbours(topic string) string {
	at := -1
	for i, p := range s.pages {
		if p.Topic == topic {
			at = i
		}
	}
	out := ""
	if at > 0 {
		out += fmt.Sprintf("<a rel=\"prev\" href=\"%s.html\">← %s</a>\n", s.pages[at-1].Topic, html.EscapeString(Plain(s.pages[at-1].Title)))
	}
	if at+1 < len(s.pages) {
		out += fmt.Sprintf("<a rel=\"next\" href=\"%s.html\">%s →</a>\n", s.pages[at+1].Topic, html.EscapeString(Plain(s.pages[at+1].Title)))
	}
	return out
}

// lead says where a link of a page goes in the site: files of the source are not there. A link that
// is shown as the name of a file is shown as the title of its page.
func (s *site) lead(url, text string) (to, shown string) {
	file, place, hasPlace := strings.Cut(url, "#")
	if hasPlace {
		place = "#" + place
	}
	switch {
	case strings.Contains(url, "://") || file == "":
		return url, ""
	case file == "README.md":
		return indexTopic + ".html" + place, ""
	}
	for _, p := range s.pages {
		if p.Topic+".md" == file {
			if text == file {
				shown = Plain(p.Title)
			}
			return p.Topic + ".html" + place, shown
		}
	}
	if _, err := fs.Stat(s.files, file); err == nil {
		return file, ""
	}
	return "", ""
}

// copyFiles writes what belongs to the pages: pictures, and files that they link to.
func (s *site) copyFiles() error {
	for _, name := range []string{"style.css", "search.js"} {
		text, err := assets.ReadFile("site/" + name)
		if err != nil {
			return err
		}
		s.write(name, string(text))
	}
	return fs.WalkDir(s.files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, ".md") {
			return err
		}
		text, err := fs.ReadFile(s.files, name)
		s.write(name, string(text))
		return err
	})
}

// writeHeadings writes what the search looks through. It is a script, because a page
// from a file may not read other files.
func (s *site) writeHeadings() error {
	text, err := json.Marshal(s.headings)
	if err != nil {
		return err
	}
	s.write("headings.js", "const headings = "+string(text)+";\n")
	return nil
}

// WriteMan writes the manual as man pages of section 7 into a directory, which it makes.
func WriteMan(dir, version string) error {
	all, err := docs.Pages()
	if err != nil {
		return err
	}
	s := site{dir: dir}
	for _, p := range all {
		s.write("livetree-"+p.Topic+".7", Man(p.Topic, p.Title, version, Parse(p.Text)))
	}
	return s.err
}
