package arch_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// namedTest is a test in a document, namedFile a file of tests.
	namedTest = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	namedFile = regexp.MustCompile("`([a-z0-9/]+_test\\.go)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	// namedPage is a test of the console's page in a document, pageTest one in its file.
	namedPage = regexp.MustCompile("`page: ([^`]+)`")
	pageTest  = regexp.MustCompile(`(?m)^(?:  async |test\()'([^']+)'`)
)

// TestNamedTestsExist: a promise of docs/reliability.md names what holds it. A test that
// was renamed or removed must not go on being named.
func TestNamedTestsExist(t *testing.T) {
	root := os.DirFS("../..")
	text, err := fs.ReadFile(root, "docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	problems, names, err := missingTests(root, string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
	if names < 50 {
		t.Errorf("docs/reliability.md names %d tests and files: are they still found?", names)
	}
	if problems, _, _ := missingTests(root, "`TestThatIsNotThere`, `trust/gone_test.go` and `page: safety 99`"); len(problems) != 3 {
		t.Errorf("of tests and a file that are not there, %q is told", problems)
	}
}

// missingTests returns a sentence for each test and test file that a text names and that
// is not there, and how many it names.
func missingTests(root fs.FS, text string) (problems []string, names int, err error) {
	there := map[string]bool{}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || len(d.Name()) > 1 && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, ".mjs"):
			return nil
		}
		there[path.Clean(name)] = true
		source, err := fs.ReadFile(root, name)
		pattern := testFunc
		if strings.HasSuffix(name, ".mjs") {
			pattern = pageTest
		}
		for _, found := range pattern.FindAllSubmatch(source, -1) {
			there[string(found[1])] = true
		}
		return err
	})
	for _, pattern := range []*regexp.Regexp{namedTest, namedFile, namedPage} {
		for _, found := range pattern.FindAllStringSubmatch(text, -1) {
			if names++; !there[found[1]] {
				problems = append(problems, "docs/reliability.md names "+found[1]+", which is not there")
			}
		}
	}
	return problems, names, err
}
