package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/livetree/livetree/docs"
)

func pages(t *testing.T) []docs.Page {
	t.Helper()
	all, err := docs.Pages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryPageIsInside(t *testing.T) {
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	if len(all) != len(files) {
		t.Errorf("there are %d pages of %d files", len(all), len(files))
	}
	for _, p := range all {
		text, err := os.ReadFile(p.Topic + ".md")
		if err != nil || string(text) != p.Text {
			t.Errorf("the page %s differs from its file: %v", p.Topic, err)
		}
		if !strings.HasPrefix(p.Text, "# "+p.Title+"\n") || p.Title == "" {
			t.Errorf("the page %s has the title %q, want its first heading", p.Topic, p.Title)
		}
	}
}

// link is one to a file, perhaps with a place in it.
var link = regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.Text, -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s.md has a link to %s: %v", p.Topic, m[1], err)
			}
		}
	}
}

func TestSearch(t *testing.T) {
	some := []docs.Page{
		{Topic: "a", Text: "# A\n\nOne word.\nNone.\n"},
		{Topic: "b", Text: "# Wording\n"},
	}
	got := docs.Search(some, "WORD")
	want := []docs.Line{{"a", 3, "One word."}, {"b", 1, "# Wording"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("the search found %v, want %v", got, want)
	}
	if got := docs.Search(some, "nothing"); len(got) != 0 {
		t.Errorf("the search for what is not there found %v", got)
	}
}
