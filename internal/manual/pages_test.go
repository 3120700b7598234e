package manual_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/docs"
	"github.com/livetree/livetree/internal/manual"
)

func pages(t *testing.T) []docs.Page {
	t.Helper()
	all, err := docs.Pages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// places returns the names of the headings of a file, which links lead to.
func places(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, b := range manual.Parse(string(text)) {
		if b.Kind == manual.Heading {
			all = append(all, b.ID)
		}
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, from := range append(files, "../../README.md") {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range manual.Links(manual.Parse(string(text))) {
			found++
			name, place, _ := strings.Cut(link, "#")
			file := filepath.Join(filepath.Dir(from), name)
			if name == "" {
				file = from
			}
			if strings.Contains(link, "://") {
				continue
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s has a link to %s: %v", from, link, err)
			} else if place != "" && !slices.Contains(places(t, file), place) {
				t.Errorf("%s has a link to %s, but that page has no such heading", from, link)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d links are found", found)
	}
}

// TestErrorTextsAreThere: the page is found by the texts that people see, so they must be those
// of the program.
func TestErrorTextsAreThere(t *testing.T) {
	sources := map[string]string{}
	for _, dir := range []string{"..", "../../cmd"} {
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			sources[name] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, b := range manual.Parse(string(page)) {
		text := strings.Trim(b.Text, "`")
		if b.Kind != manual.Heading || text == b.Text {
			continue
		}
		found++
		isThere := false
		for _, source := range sources {
			all := true
			for part := range strings.SplitSeq(text, "…") {
				all = all && strings.Contains(source, strings.TrimSpace(part))
			}
			isThere = isThere || all
		}
		if !isThere {
			t.Errorf("troubleshooting.md explains %q, which no source has", text)
		}
	}
	if found < 30 {
		t.Errorf("only %d texts are found", found)
	}
}
