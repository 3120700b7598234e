package arch_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// texts returns the files of the repository with one of the extensions, by name.
// Directories that begin with a dot are left out, and modules of others.
func texts(t *testing.T, extensions ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	fsys := os.DirFS(root)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "node_modules" || d.Name() == "fuzz"):
			return fs.SkipDir
		case d.IsDir() || !slices.Contains(extensions, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		all[name] = string(text)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

// section is the sign of a section of a document, with the word before it. No document
// of the repository has numbered sections. It is spelled so that this file holds none.
var section = regexp.MustCompile(`(\w+,? )?` + "\u00a7")

// page is the name of a markdown file, with the directories that are given.
var page = regexp.MustCompile(`[A-Za-z0-9_./-]+\.md\b`)

// TestDocumentsThatAreReferredToAreHere: a reader must find what a text rests on.
func TestDocumentsThatAreReferredToAreHere(t *testing.T) {
	for name, text := range texts(t, ".go", ".md", ".txt", ".txtar") {
		inGo := path.Ext(name) == ".go"
		for line := range strings.Lines(text) {
			if strings.Contains(line, "\u00a7") {
				mark := section.FindString(line)
				t.Errorf("%s refers to %q, a document that is not in the repository: say there what it says", name, mark)
			}
			if inGo {
				_, line, _ = strings.Cut(line, "//")
			}
			for _, mentioned := range pages(line) {
				if !isPage(name, mentioned) {
					t.Errorf("%s mentions %s, which is not in the repository", name, mentioned)
				}
			}
		}
	}
}

// pages returns the markdown files that a line mentions. Most lines have none, and are
// not looked through.
func pages(line string) []string {
	if !strings.Contains(line, ".md") {
		return nil
	}
	return page.FindAllString(line, -1)
}

// isPage reports whether a page that a file mentions is there: from the root, beside
// the file, or in docs/. Those of other sites are not looked up.
func isPage(name, mentioned string) bool {
	if strings.Contains(mentioned, "//") || strings.Contains(mentioned, "LICENSE") {
		return true
	}
	for _, dir := range []string{".", path.Dir(name), "docs"} {
		if _, err := os.Stat(path.Join(root, dir, mentioned)); err == nil {
			return true
		}
	}
	return false
}

// TestDocsTellWhatIsThere: the state column of the table of packages is the one place
// for what is planned.
func TestDocsTellWhatIsThere(t *testing.T) {
	for name, text := range texts(t, ".md") {
		if strings.Contains(text, "(planned)") {
			t.Errorf("%s describes something that is (planned): describe what is there", name)
		}
	}
}

// namedSetting is the name of a setting of a database, or what those of a kind begin
// with.
var namedSetting = regexp.MustCompile(`(?m)^(?:const)?\s*(?:Setting|OptionPrefix)\w* *= "([^"]+)"`)

// TestFormatNamesEverySetting: internal/store/FORMAT.md draws all that is on disk.
func TestFormatNamesEverySetting(t *testing.T) {
	all := texts(t, ".go", ".md")
	format := all["internal/store/FORMAT.md"]
	found := 0
	for name, text := range all {
		if path.Dir(name) != "internal/state" || path.Ext(name) != ".go" {
			continue
		}
		for _, setting := range namedSetting.FindAllStringSubmatch(text, -1) {
			found++
			if !strings.Contains(format, "04 db '"+setting[1]) {
				t.Errorf("internal/store/FORMAT.md does not name the setting %q of %s", setting[1], name)
			}
		}
	}
	if found < 5 {
		t.Errorf("%d settings are found in internal/state, want at least 5", found)
	}
}

var decision = regexp.MustCompile(`(?s)^# [1-9][0-9]*\. [^\n]+\n\nStatus: (?:accepted|replaced by [^\n]+), \d{4}-\d\d-\d\d\.\n\n## Context\n`)

// TestDecisionsHaveOneForm: see docs/decisions/README.md.
func TestDecisionsHaveOneForm(t *testing.T) {
	want := []string{"## Context", "## Decision", "## Consequences", "## What was considered"}
	for name, text := range texts(t, ".md") {
		if path.Dir(name) != "docs/decisions" || path.Base(name) == "README.md" {
			continue
		}
		if !decision.MatchString(text) {
			t.Errorf("%s does not begin with its number and title, a status with its date, and the context", name)
		}
		if got := regexp.MustCompile(`(?m)^## .*`).FindAllString(text, -1); !slices.Equal(got, want) {
			t.Errorf("%s has the sections %q, want %q", name, got, want)
		}
	}
}

// numbered is a row of a table that counts its rows.
var numbered = regexp.MustCompile(`^\| (\d+) \|`)

// TestNumberedTablesCountFromOne: the rows of a table whose first column is # are in an
// order, which their numbers say. Two rows may share one.
func TestNumberedTablesCountFromOne(t *testing.T) {
	found := 0
	for name, text := range texts(t, ".md") {
		last, inTable := 0, false
		for line := range strings.Lines(text) {
			switch row := numbered.FindStringSubmatch(line); {
			case strings.HasPrefix(line, "| # |"):
				last, inTable, found = 0, true, found+1
			case !strings.HasPrefix(line, "|"):
				inTable = false
			case inTable && row != nil:
				n, err := strconv.Atoi(row[1])
				if err != nil || n != last+1 && (n != last || n == 0) {
					t.Errorf("%s has the row %s after row %d of its table", name, row[1], last)
				}
				last = n
			}
		}
	}
	if found < 3 {
		t.Errorf("%d tables are found whose rows are numbered, want at least 3", found)
	}
}
