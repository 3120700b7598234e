package docs_test

import (
	"os"
	"path/filepath"
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
	for _, file := range files {
		topic := strings.TrimSuffix(file, ".md")
		named := 0
		for _, p := range all {
			if p.Topic == topic {
				named++
			}
		}
		if topic != "README" && named != 1 {
			t.Errorf("README.md, which gives the order of the pages, names %s %d times, want once", file, named)
		}
	}
	for _, p := range all {
		text, err := os.ReadFile(p.Topic + ".md")
		if err != nil || string(text) != p.Text {
			t.Errorf("the page %s differs from its file: %v", p.Topic, err)
		}
		if !strings.HasPrefix(p.Text, "# "+p.Title+"\n") || p.Title == "" {
			t.Errorf("the page %s has the title %q, want its first heading", p.Topic, p.Title)
		}
		if p.Part == "" {
			t.Errorf("the page %s is in no part of the manual", p.Topic)
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
