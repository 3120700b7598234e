package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// bagNames say nothing about what is inside, so everything ends up there.
var bagNames = []string{"util", "utils", "common", "base", "types", "helper", "helpers"}

// A layout is where the packages of a module are and what they may import.
// Directories are relative to the module's root, with slashes.
type layout struct {
	module string
	// order lists the packages; each may import those before it. A listed
	// package need not exist.
	order []string
	// support lists the packages that only serve tests. They import nothing of
	// the module, their tests included, and only test files and fixtures import them.
	support []string
	// fixtures are packages that serve tests, too, each by what it opens for them. They
	// may import that, what is above it in the order, the fixtures of what is above it, and support. Only test files import them,
	// also those of packages above. Such a test may import what is opened as well, if
	// it is outside of its package.
	fixtures map[string]string
	// suites lists the packages that hold nothing but tests of all the others.
	// Those may import everything in order; nothing imports a suite.
	suites []string
}

// A pkg is one directory of Go files, as far as the checks look into it.
type pkg struct {
	dir      string
	names    map[string]string // package name without _test -> a file that has it
	comments []string          // non-test files with a package comment
	badStart []string          // those whose comment does not start with the package's name
	imports  []importLine
}

// An importLine is one import of a package of this module.
type importLine struct {
	pos  token.Position
	dir  string // imported directory
	test bool   // in a test file
	// outside says that the test file is outside of the package that it tests.
	outside bool
}

// check reads all Go files below fsys, the root of the module, and returns one
// sentence for each thing that is out of place, in the order of the files. All
// files count, whatever their build constraints say. Nested modules, testdata,
// vendor and directories that the go command ignores are skipped.
func (l layout) check(fsys fs.FS) ([]string, error) {
	pkgs, err := l.read(fsys)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, p := range pkgs {
		problems = append(problems, l.checkPlace(p)...)
		problems = append(problems, checkComment(p)...)
		for _, i := range p.imports {
			if reason := l.refuse(p.dir, i); reason != "" {
				problems = append(problems, fmt.Sprintf("%s: %s imports %s, %s", i.pos, p.dir, i.dir, reason))
			}
		}
	}
	return problems, nil
}

// read returns the packages below fsys, sorted by directory.
func (l layout) read(fsys fs.FS) ([]*pkg, error) {
	byDir := map[string]*pkg{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && skipped(fsys, name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &pkg{dir: dir, names: map[string]string{}}
		}
		return l.readFile(fsys, name, byDir[dir])
	})
	if err != nil {
		return nil, err
	}
	pkgs := make([]*pkg, 0, len(byDir))
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		pkgs = append(pkgs, byDir[dir])
	}
	return pkgs, nil
}

// skipped reports whether the go command leaves dir out of this module.
func skipped(fsys fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

// readFile adds to p what the file says up to the end of its imports.
func (l layout) readFile(fsys fs.FS, name string, p *pkg) error {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(name, "_test.go")
	packageName, outside := file.Name.Name, false
	if test {
		packageName, outside = strings.CutSuffix(packageName, "_test")
	}
	p.names[packageName] = name
	if text := file.Doc.Text(); text != "" && !test {
		p.comments = append(p.comments, name)
		if packageName != "main" && !strings.HasPrefix(text, "Package "+packageName+" ") {
			p.badStart = append(p.badStart, name)
		}
	}
	for _, spec := range file.Imports {
		if dir, ok := l.importedDir(spec); ok {
			p.imports = append(p.imports, importLine{files.Position(spec.Pos()), dir, test, outside})
		}
	}
	return nil
}

// importedDir returns the directory of an imported package of this module.
func (l layout) importedDir(spec *ast.ImportSpec) (dir string, ok bool) {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return "", false // the parser has checked it
	}
	if imported == l.module {
		return ".", true
	}
	return strings.CutPrefix(imported, l.module+"/")
}

// checkPlace looks at where the package is and what it is called.
func (l layout) checkPlace(p *pkg) []string {
	var problems []string
	base := path.Base(p.dir)
	if slices.Contains(bagNames, base) {
		problems = append(problems, fmt.Sprintf("%s is named after nothing in particular: name it after what it holds", p.dir))
	}
	if !slices.Contains(slices.Concat(l.order, l.support, l.suites, slices.Collect(maps.Keys(l.fixtures))), p.dir) {
		return append(problems, fmt.Sprintf("%s is a package, but is not listed", p.dir))
	}
	want := base
	if path.Dir(p.dir) == "cmd" {
		want = "main"
	}
	for _, name := range slices.Sorted(maps.Keys(p.names)) {
		if name != want {
			problems = append(problems, fmt.Sprintf("%s: package %s in directory %s, want %s", p.names[name], name, p.dir, want))
		}
	}
	return problems
}

// checkComment wants exactly one package comment outside of the test files.
func checkComment(p *pkg) []string {
	var problems []string
	switch len(p.comments) {
	case 0:
		problems = append(problems, fmt.Sprintf("%s has no package comment", p.dir))
	case 1:
	default:
		problems = append(problems, fmt.Sprintf("%s has %d package comments, want one: %s",
			p.dir, len(p.comments), strings.Join(p.comments, ", ")))
	}
	for _, name := range p.badStart {
		problems = append(problems, fmt.Sprintf("%s: package comment does not start with \"Package \" and the name", name))
	}
	return problems
}

// refuse says why the package in dir may not have this import, or "".
func (l layout) refuse(dir string, i importLine) string {
	from, to := slices.Index(l.order, dir), slices.Index(l.order, i.dir)
	opened, isFixture := l.fixtures[dir]
	if isFixture {
		from = slices.Index(l.order, opened) + 1
	}
	apart := slices.Contains(l.support, dir) || slices.Contains(l.suites, dir)
	switch {
	case i.test && i.dir == dir:
		return ""
	case slices.Contains(l.suites, i.dir):
		return "which nothing may import"
	case slices.Contains(l.support, i.dir) || l.fixtures[i.dir] != "":
		isAbove := slices.Contains(l.support, i.dir) || slices.Index(l.order, l.fixtures[i.dir]) < from-1
		if i.test || isFixture && isAbove {
			return ""
		}
		return "which only tests may import"
	case to < 0:
		return "which is not listed"
	case i.test && slices.Contains(l.suites, dir):
		return ""
	case apart:
		return "but a package for tests imports nothing of the module"
	case from < 0:
		return "" // already reported as not listed; its place would decide
	case to >= from && i.outside && slices.Contains(slices.Collect(maps.Values(l.fixtures)), i.dir):
		return ""
	case to >= from:
		return "which is not above it in the list"
	}
	return ""
}
