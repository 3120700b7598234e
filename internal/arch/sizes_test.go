package arch_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// bounds says how large things may be before somebody has to think about them.
type bounds struct {
	packageCode int // lines of a package with code in them, without tests
	methods     int // of one type
	file        int // lines of a file without tests
	testFile    int // lines of a file with tests
	function    int // lines of a function without tests
}

var livetreeBounds = bounds{packageCode: 4000, methods: 40, file: 425, testFile: 600, function: 70}

// TestSizes holds what a newcomer can take in.
func TestSizes(t *testing.T) {
	sizes, err := measure(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range sizes.over(livetreeBounds) {
		t.Error(problem)
	}
	if testing.Verbose() {
		t.Log(sizes)
	}
}

// sizes are those of a module.
type sizes struct {
	code      map[string]int // lines of code by package
	methods   map[string]int // by package and type
	files     map[string]int // lines by name
	functions map[string]int // lines by package and name
}

func measure(module fs.FS) (sizes, error) {
	s := sizes{code: map[string]int{}, methods: map[string]int{}, files: map[string]int{}, functions: map[string]int{}}
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		return s.add(name, text)
	})
	return s, err
}

func (s sizes) add(name string, text []byte) error {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.files[name] = files.File(parsed.FileStart).LineCount()
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	dir := path.Dir(name)
	s.code[dir] += codeLines(text)
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		id := dir + "." + f.Name.Name
		if f.Recv != nil {
			receiver := dir + "." + receiverName(f.Recv.List[0].Type)
			s.methods[receiver]++
			id = receiver + "." + f.Name.Name
		}
		s.functions[id] = files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
	}
	return nil
}

// receiverName returns the name of the type that a method belongs to.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// codeLines counts the lines on which a token of the language begins.
func codeLines(text []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines, last := 0, 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		if line := files.Position(pos).Line; line != last {
			lines, last = lines+1, line
		}
	}
}

// over lists what is larger than its bound, the largest first.
func (s sizes) over(b bounds) []string {
	var problems []string
	report := func(what string, found map[string]int, bound func(name string) int) {
		for _, name := range bySize(found) {
			if most := bound(name); found[name] > most {
				problems = append(problems, fmt.Sprintf("%s has %d %s, more than %d", name, found[name], what, most))
			}
		}
	}
	report("lines of code", s.code, func(string) int { return b.packageCode })
	report("methods", s.methods, func(string) int { return b.methods })
	report("lines", s.files, func(name string) int {
		if strings.HasSuffix(name, "_test.go") {
			return b.testFile
		}
		return b.file
	})
	report("lines", s.functions, func(string) int { return b.function })
	return problems
}

// String shows the five largest of each kind.
func (s sizes) String() string {
	var b strings.Builder
	for _, kind := range []struct {
		what  string
		found map[string]int
	}{{"lines of code", s.code}, {"methods", s.methods}, {"lines of files", s.files}, {"lines of functions", s.functions}} {
		fmt.Fprintf(&b, "%s:\n", kind.what)
		names := bySize(kind.found)
		for _, name := range names[:min(5, len(names))] {
			fmt.Fprintf(&b, "  %6d %s\n", kind.found[name], name)
		}
	}
	return b.String()
}

func bySize(found map[string]int) []string {
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(found[b], found[a]), cmp.Compare(a, b))
	})
	return names
}

// TestSizesAreFound plants one thing of each kind that is too large.
func TestSizesAreFound(t *testing.T) {
	module := fstest.MapFS{
		"p/a.go":            {Data: []byte("package p\n\n// A comment.\ntype T[K any] struct{}\n\nfunc (t *T[K]) one() {}\nfunc (T[K]) two() {}\n\nfunc long() {\n\t_ = 1\n\t_ = 2\n}\n")},
		"p/a_test.go":       {Data: []byte("package p\n\n\n\n\n\nfunc (T[K]) three() {}\n")},
		"p/testdata/bad.go": {Data: []byte("no code")},
	}
	s, err := measure(module)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.over(bounds{packageCode: 8, methods: 2, file: 12, testFile: 7, function: 4}); got != nil {
		t.Errorf("within the bounds there is %q", got)
	}
	want := []string{
		"p has 8 lines of code, more than 7",
		"p.T has 2 methods, more than 1",
		"p/a.go has 12 lines, more than 11",
		"p/a_test.go has 7 lines, more than 6",
		"p.long has 4 lines, more than 3",
	}
	if got := s.over(bounds{packageCode: 7, methods: 1, file: 11, testFile: 6, function: 3}); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
